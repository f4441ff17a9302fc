"""Pipelines run in tests: `run(pipeline, {"name": "Ann"})` goes through all stages and tells what became of them.

    def test_a_slow_mirror_is_tried_again():
        told = run(pipeline, {"name": "Ann"}, fails={"fetch": [TryAgain("away")]}, loses=["think"])
        assert (told.status, [each.stage for each in told.tries]) == ("ready", ["fetch"])

It runs in the process of the test: no server, and commands without a sandbox. Pauses between tries are not waited.
With `isolated=True` the worker's own spawner, process and sandbox run it, which are in `headgate-server`.
"""

import asyncio
import importlib
import json
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from headgate_pipeline.pipeline import Pipeline
from headgate_pipeline.testing.course import Walk
from headgate_pipeline.testing.hands import OwnHands
from headgate_pipeline.testing.providers import providers_of
from headgate_pipeline.testing.questions import AnsweringUser
from headgate_pipeline.testing.record import FailedTry, PipelineRun, ProviderPause, ProviderRequest, SlotsAsked

__all__ = ["FailedTry", "PipelineRun", "ProviderPause", "ProviderRequest", "SlotsAsked", "run", "run_async"]

ISOLATED: Final = "services.worker.trial"


def run(pipeline: Pipeline, content: Any = None, **how: Any) -> PipelineRun:
    """The same as `run_async`, from a test that is no coroutine."""
    return asyncio.run(run_async(pipeline, content, **how))


async def run_async(
    pipeline: Pipeline,
    content: Any = None,
    *,
    fails: Mapping[str, Sequence[BaseException]] | None = None,
    loses: Collection[str] = (),
    providers: Mapping[str, Sequence[Any]] | None = None,
    full: Collection[str] = (),
    answers: Mapping[str, Any] | None = None,
    iterations: int = 3,
    isolated: bool = False,
) -> PipelineRun:
    """Go through the pipeline with this input.

    `fails`: errors by stage, each raised once in its place. `loses`: stages after which the worker is lost, so that
    the next one begins elsewhere with what is kept. `providers`: what each answers, one after the other: a number is a
    status (429), a text a chat completion, all else JSON. `full`: providers and groups without a free slot.
    `answers`: what its user answers, by the key of the question or its text; one without ends the run there.
    """
    told = PipelineRun()
    with (
        tempfile.TemporaryDirectory(prefix="headgate-pipeline-") as folder,
        providers_of(providers or {}, told) as endpoints,
    ):
        kind = _isolated() if isolated else OwnHands
        user = AnsweringUser(dict(answers or {}), told)
        async with kind(
            pipeline, json.dumps(content or {}), told, folder=Path(folder), endpoints=endpoints, full=full, user=user
        ) as hands:
            await Walk(hands, told, fails or {}, loses, iterations).walk()
    return told


def _isolated() -> type[OwnHands]:
    """The worker's, which are made and asked in the same way."""
    try:
        return importlib.import_module(ISOLATED).IsolatedHands
    except ModuleNotFoundError as missing:
        wrong = f"isolated=True runs the worker's own code, and {missing.name} is not installed"
        raise RuntimeError(f"{wrong}: install headgate-server, which `make wheels` makes") from missing
