"""The page of a long run: what was run, what was found, and what would have been."""

from __future__ import annotations

import platform
from pathlib import Path

from tests.simulation.evidence import Finding
from tests.simulation.hunting import Hunt
from tests.simulation.judge import INVARIANTS
from tests.simulation.proof import Swept, proof_of
from tests.simulation.slices import Slices

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


def test_a_proof_goes_on_where_the_slice_before_it_was_ended(tmp_path: Path) -> None:
    before = Slices.of(tmp_path / "page.md", rest=False)
    before.sweep(Swept(100, 20_000, took_s=10.0, processes=2))
    before.sweep(Swept(200, 21_000, took_s=11.0, processes=2))
    for hunt in HUNTS:
        before.hunt(hunt)

    after = Slices.of(tmp_path / "page.md", rest=True)

    assert after.swept == Swept(200, 41_000, took_s=21.0, processes=2)
    assert after.hunts == {hunt.bug: hunt for hunt in HUNTS}
    assert after.at_large(["early", "late", "new"], within=2000) == ["new"]
    assert after.at_large(["early", "late", "new"], within=3000) == ["late", "new"]
    assert Slices.of(tmp_path / "page.md", rest=False).hunts == {}
