"""Mutants are made of every line that decides, are named, and stand where the sound function stood."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from tests.mutants.kept import keep, kept, made_of, untried
from tests.mutants.mutant import mutants_of
from tests.mutants.report import page_of, reasons, unexplained
from tests.mutants.running import Fate
from tests.mutants.targets import TARGETS, Target

TURNS: Final = next(target for target in TARGETS if target.name == "turns")
ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = '''
LIMIT = 3

class Door:
    def __init__(self) -> None:
        self.open = False

    def fits(self, width: int) -> bool:
        """Whether it goes through."""
        return self.open and width < LIMIT
'''
PLANTED: Final = """
from libs.capacity.turns import owed
from tests.mutants.mutant import mutants_of
from tests.mutants.targets import TARGETS

target = next(each for each in TARGETS if each.name == "turns")
wrong = next(each for each in mutants_of(target.module, target.source, data=False) if "return None" in each.name
             and each.function == "owed")
wrong.plant()
print(owed({}, now_ms=0, after_ms=0, every=1), wrong.function)
"""


def test_each_line_of_a_function_is_mistaken_in_each_way() -> None:
    names = {mutant.name for mutant in mutants_of("door", SOURCE, data=False)}

    assert names == {
        "Door.__init__: `self.open = False` → `nothing`",
        "Door.__init__: `False` → `True`",
        "Door.fits: `return self.open and width < LIMIT` → `return None`",
        "Door.fits: `self.open and width < LIMIT` → `self.open or width < LIMIT`",
        "Door.fits: `width < LIMIT` → `width <= LIMIT`",
        "Door.fits: `width < LIMIT` → `width > LIMIT`",
    }


def test_rows_of_a_table_lose_elements_and_name_other_members() -> None:
    source = "TABLE = (Row(EventName.QUEUED, _A, _from(NEW), Status.QUEUED, WHY), Row(EventName.READY, _W, _from(NEW)))"

    names = {mutant.name for mutant in mutants_of("table", source, data=True)}

    assert "data: `_A` → `_S`" in names
    assert "data: `Status.QUEUED` → `Status.SCHEDULED`" in names
    assert len(names) == 8


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_each_mutant_has_a_name_of_its_own_and_compiles(target: Target) -> None:
    mutants = list(mutants_of(target.module, target.source, data=target.data))

    assert len({mutant.name for mutant in mutants}) == len(mutants) > 10
    assert all(mutant.code() for mutant in mutants)


def test_a_mutant_stands_where_it_was_imported_to() -> None:
    said = subprocess.run((sys.executable, "-c", PLANTED), cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603

    assert said.stdout.split() == ["None", "owed"]


def test_each_reason_is_about_a_mutant_that_there_is() -> None:
    made = {
        target.name: {each.name for each in mutants_of(target.module, target.source, data=target.data)}
        for target in TARGETS
    }

    assert [(name, each) for name, whys in reasons().items() for each in whys if each not in made.get(name, ())] == []


def test_what_was_measured_is_kept_until_other_mutants_are_made(tmp_path: Path) -> None:
    path, part = tmp_path / "mutants.json", untried(TURNS).with_fate(0, Fate.TEST).dated(took_s=2)
    settling = next(target for target in TARGETS if target.name == "settling")

    keep(TURNS, part, path=path)
    keep(settling, replace(untried(settling), made="of an older file"), path=path)

    assert kept(TARGETS, path=path) == {"turns": part}


def test_the_rest_is_what_was_not_tried_and_what_survived() -> None:
    part = untried(TURNS).with_fate(0, Fate.TEST).with_fate(1, Fate.SURVIVED).with_fate(2, Fate.HUNG)

    assert sorted(part.left()) == [1, *range(3, len(made_of(TURNS)))]
    assert (part.tried, round(part.share_noticed, 2)) == (3, 0.67)
    assert unexplained(TURNS, part, {}) == [made_of(TURNS)[1].name]


def test_the_page_says_what_was_not_tried() -> None:
    part = untried(TURNS).with_fate(0, Fate.TEST).with_fate(1, Fate.SURVIVED)

    page = page_of({"turns": part}, {})

    assert page.startswith("# Mutants: 50% of 2 are noticed\n")
    assert f"{len(part.fates) - 2} of [libs/capacity/turns.py]" in page
    assert f"{len(made_of(TARGETS[0]))} of [{TARGETS[0].file}]" in page
    assert f"| {made_of(TURNS)[1].name} | **none yet** |" in page
