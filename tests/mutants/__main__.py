"""`make mutants`: tries them, keeps what became of each, and writes the page from all that is kept."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Final

from tests.mutants.kept import LETTERS, Part, keep, kept, made_of, untried
from tests.mutants.report import PAGE, page_of, reasons, unexplained
from tests.mutants.running import Fate, are_seeds_sound, get_ready, unsound_of
from tests.mutants.targets import TARGETS, Target

KEPT_EVERY: Final = 20
ENOUGH: Final = 0.9
OUT: Final = sys.stdout  # while tests run, what they write goes nowhere


def main() -> int:
    asked = _arguments().parse_args()
    get_ready()
    if not are_seeds_sound():
        _print("without a mistake some seeds find something too")
        return 1
    good = [_try(target, asked) for target in TARGETS if not asked.only or target.name in asked.only.split(",")]
    PAGE.write_text(page_of(kept(TARGETS), reasons()), encoding="utf-8")
    return 0 if all(good) else 1


def _try(target: Target, asked: argparse.Namespace) -> bool:
    """Whether enough of one target's were noticed, and the others have their reasons."""
    before = kept([target]).get(target.name, untried(target)) if asked.rest else untried(target)
    mutants, why = made_of(target), reasons().get(target.name, {})
    left = {number: mutants[number] for number in before.left()}
    unexplained = [number for number, mutant in left.items() if mutant.name not in why]
    notes = _Notes(target, before)
    unsound = unsound_of(target, left, seeded=unexplained, width=asked.processes, ended=notes.add)
    for name in unsound:
        _print(f"{target.name}: without a mistake it fails too: {name}")
    return not unsound and _tell(target, notes.kept())


class _Notes:
    """Keeps what became of each, and says it."""

    def __init__(self, target: Target, part: Part) -> None:
        self._target, self._part, self._mutants = target, part, made_of(target)
        self._began_s, self._count = time.monotonic(), 0

    def add(self, number: int, fate: Fate) -> None:
        self._part = self._part.with_fate(number, fate)
        self._count += 1
        if fate is Fate.SURVIVED:
            _print(f"survives: {self._target.name}: {self._mutants[number].name}")
        if self._count % KEPT_EVERY == 0:
            part = self.kept()
            _print(f"{self._target.name}: {part.tried} of {len(part.fates)} tried, {part.count(Fate.SURVIVED)} survive")

    def kept(self) -> Part:
        if self._count == 0:
            return self._part
        part = self._part.dated(took_s=time.monotonic() - self._began_s)
        keep(self._target, part)
        return part


def _tell(target: Target, part: Part) -> bool:
    left = unexplained(target, part, reasons())
    for name in left:
        _print(f"survives without a reason: {target.name}: {name}")
    counts = ", ".join(f"{fate.name.lower()} {part.count(fate)}" for fate in LETTERS)
    _print(f"{target.name}: {part.share_noticed:.1%} noticed of {part.tried}: {counts}; {part.took_s:.0f} s")
    return part.share_noticed >= ENOUGH and not left


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make mutants")
    parser.add_argument("--only", help=f"{', '.join(target.name for target in TARGETS)}; with commas")
    parser.add_argument("--rest", action="store_true", help="what is not tried yet, and what survived, alone")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    return parser


def _print(text: str) -> None:
    OUT.write(f"{text}\n")
    OUT.flush()


if __name__ == "__main__":
    sys.exit(main())
