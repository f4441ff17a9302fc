"""The two pacts, from their consumers' side: what each team reads stands in its pact. The other side is a real run,
in `tests/e2e/test_other_teams.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pact import Pact

from headgate_contracts.examples import examples
from tests.fixtures.pacts import ENDS, audit, billing, bills, keeps


@pytest.mark.parametrize(("pact", "reads"), [(billing(), bills), (audit(), keeps)], ids=["billing", "audit"])
def test_a_team_finds_in_its_pact_all_that_it_reads(pact: Pact, reads: Callable[..., Any]) -> None:
    told: list[str] = []

    pact.verify(lambda body, metadata: told.append(reads(body, metadata)), "Async")

    assert len(told) == (len(ENDS) if pact.consumer == "billing" else len(examples()))


def test_a_team_that_reads_more_than_its_pact_says_is_found_out() -> None:
    told: list[str] = []

    found = billing().verify(lambda body, metadata: told.append(keeps(body, metadata)), "Async", raises=False)

    assert found is not None
    assert (len(found), told) == (len(ENDS), [])


def test_both_teams_read_every_golden_example_that_is_theirs() -> None:
    for event in examples():
        assert event.id in keeps(event.encode(), {})
        if event.type.split(".")[3] in ENDS:
            assert event.id in bills(event.encode(), {})
