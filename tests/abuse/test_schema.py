"""Whatever the OpenAPI document allows, and what it does not, is answered as the document says, and never by a fault.

Jobs stand in every status, and the client owns them and is an operator too: no operation ends at its first question.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import cycle
from typing import Any, Final

import hypothesis
import pytest
import pytest_asyncio
import schemathesis
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from headgate_contracts import Tier
from headgate_contracts.openapi import openapi_document
from tests.abuse.scene import Scene, a_scene

POLICY: Final = """
[tiers.partner]
cycles_per_batch = 1
[submissions]
per_minute = 100_000
bytes_per_minute = 1_000_000_000
changes_per_minute = 100_000
[webhooks]
hosts = ["hooks.example"]
"""
EXAMPLES: Final = 20  # of each operation in each mode
SLOW: Final = (hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.filter_too_much)
ALWAYS_THE_SAME: Final = hypothesis.settings(derandomize=True, database=None, deadline=None, suppress_health_check=SLOW)
STATUSES: Final = ("queued", "running", "ready", "failed", "asking", "scheduled", "waiting", "cancelled")
SCHEMA: Final = schemathesis.openapi.from_dict(openapi_document())
OPERATIONS: Final[dict[str, APIOperation]] = {
    found.ok().label: found.ok()
    for found in SCHEMA.get_all_operations()
    if isinstance(found, Ok) and not found.ok().path.endswith("stream")  # has no end: its rows are in the tables
}
BEYOND_IT: Final = (  # a document cannot say which cursor was given out, nor that an empty list is not sent at all
    positive_data_acceptance,
    negative_data_rejection,
)
MODES: Final = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)


@pytest_asyncio.fixture(scope="module")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    """One of its own: it is paused, emptied and erased as it comes."""
    async with a_scene(tmp_path_factory.mktemp("schema"), policy=POLICY) as scene:
        yield scene


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("label", OPERATIONS)
async def test_each_answer_is_one_of_the_document(scene: Scene, label: str, mode: GenerationMode) -> None:
    headers = {"Authorization": f"Bearer {scene.there.token('ann', Tier.PARTNER, scope='jobs:read jobs:write ops')}"}
    there = cycle([scene.names[status] for status in STATUSES])

    @hypothesis.settings(ALWAYS_THE_SAME, max_examples=EXAMPLES)
    @hypothesis.given(case=OPERATIONS[label].as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        if mode is GenerationMode.POSITIVE and "job_id" in (case.path_parameters or {}):
            case.path_parameters["job_id"] = next(there)
        case.call_and_validate(base_url=scene.there.up.url, headers=headers, excluded_checks=BEYOND_IT)

    await asyncio.to_thread(ask)
