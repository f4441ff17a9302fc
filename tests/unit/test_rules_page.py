"""The page of rules names tests that exist, at each of three depths."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
ROW: Final = re.compile(r"\| ([A-Z]\d+) \| (.+?) \| (.+) \| (.+) \| (.+) \|")
NAMED: Final = re.compile(r"`(\w+)` ([a-z0-9 ]+)")
CHAPTERS: Final = "TAOLJF"


def rows() -> list[tuple[str, list[str]]]:
    page = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    found = [ROW.fullmatch(line) for line in page.splitlines() if line.startswith("| ")]
    return [(row[1], [row[3], row[4], row[5]]) for row in found if row]


def known() -> set[tuple[str, str]]:
    """Every test there is, by its file and its sentence."""
    return {
        (path.stem.removeprefix("test_"), name.replace("_", " "))
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def test_(\w+)", path.read_text(encoding="utf-8"))
    }


def test_every_test_that_is_named_exists() -> None:
    there = known()

    missing = {
        rule: lost
        for rule, depths in rows()
        if (lost := [part for cell in depths for part in NAMED.findall(cell) if part not in there])
    }

    assert missing == {}


@pytest.mark.parametrize("depth", [0, 1, 2], ids=["pure", "stores", "system"])
def test_at_each_depth_there_is_a_test_or_a_word_why_not(depth: int) -> None:
    silent = [
        rule
        for rule, depths in rows()
        for part in depths[depth].split("<br>")
        if not (NAMED.fullmatch(part) or part.startswith("— "))
    ]

    assert silent == []


def test_the_rules_are_numbered_without_a_gap() -> None:
    names = [rule for rule, _ in rows()]

    counts = {chapter: sum(name.startswith(chapter) for name in names) for chapter in CHAPTERS}
    assert names == [f"{chapter}{number}" for chapter in CHAPTERS for number in range(1, counts[chapter] + 1)]
    assert all(counts.values())
