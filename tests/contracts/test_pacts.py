"""The two pacts, from their consumers' side: what each team reads stands in its pact. The other side is a real run,
in `tests/e2e/test_other_teams.py`."""

from __future__ import annotations

from types import ModuleType

import pytest

from headgate_contracts.examples import examples


@pytest.fixture
def pacts() -> ModuleType:
    """Imported by its own tests alone: pact puts itself before every import of a process, which slows all others."""
    from tests.fixtures import pacts

    return pacts


@pytest.mark.parametrize(("team", "reads"), [("billing", "bills"), ("audit", "keeps")])
def test_a_team_finds_in_its_pact_all_that_it_reads(pacts: ModuleType, team: str, reads: str) -> None:
    told: list[str] = []

    read = getattr(pacts, reads)
    getattr(pacts, team)().verify(lambda body, metadata: told.append(read(body, metadata)), "Async")

    assert len(told) == (len(pacts.ENDS) if team == "billing" else len(examples()))


def test_a_team_that_reads_more_than_its_pact_says_is_found_out(pacts: ModuleType) -> None:
    told: list[str] = []

    found = pacts.billing().verify(
        lambda body, metadata: told.append(pacts.keeps(body, metadata)), "Async", raises=False
    )

    assert found is not None
    assert (len(found), told) == (len(pacts.ENDS), [])


def test_both_teams_read_every_golden_example_that_is_theirs(pacts: ModuleType) -> None:
    for event in examples():
        assert event.id in pacts.keeps(event.encode(), {})
        if event.type.split(".")[3] in pacts.ENDS:
            assert event.id in pacts.bills(event.encode(), {})
