"""The page of a long run: what was run, what was found, and what would have been."""

from __future__ import annotations

import platform

from tests.simulation.evidence import Finding
from tests.simulation.hunting import Hunt
from tests.simulation.judge import INVARIANTS
from tests.simulation.proof import Swept, proof_of

HUNTS = (Hunt("early", 7, Finding("I5", "user:ann", "has 3 of 2")), Hunt("late", 2000, None))


def rows_of(page: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]


def test_the_page_says_after_how_many_seeds_each_bug_was_found_and_by_what() -> None:
    rows = rows_of(proof_of(Swept(300, 60_000, took_s=20.0, processes=2), HUNTS))

    assert ["early", "7", "I5"] in rows
    assert ["late", "–", "not found in 2000"] in rows
    assert ["planted bugs", "1 of 2 found, each alone"] in rows


def test_the_page_says_what_was_run_and_on_what() -> None:
    page = proof_of(Swept(300, 60_000, took_s=20.0, processes=2), HUNTS)

    told = dict(row for row in rows_of(page) if len(row) == 2)
    assert told["took"] == "20 s, 15.0 seeds a second"
    assert told["seeds"].startswith("1 to 300,")
    assert platform.python_version() in told["with"]
    assert {f"`{each.__name__}`" for each in INVARIANTS} <= told.keys()
