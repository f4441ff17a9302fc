"""`make mutants`: tries them, keeps what became of each, and writes the page from all that is kept."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Final

from tests.mutants.kept import LETTERS, Part, keep, kept, made_of, untried
from tests.mutants.report import PAGE, page_of, reasons, unexplained
from tests.mutants.running import Fate, get_ready, is_sound, tried
from tests.mutants.targets import TARGETS, Target

KEPT_EVERY: Final = 10
ENOUGH: Final = 0.9


def main() -> int:
    asked = _arguments().parse_args()
    get_ready()
    good = [_try(target, asked) for target in TARGETS if not asked.only or target.name in asked.only.split(",")]
    PAGE.write_text(page_of(kept(TARGETS), reasons()), encoding="utf-8")
    return 0 if all(good) else 1


def _try(target: Target, asked: argparse.Namespace) -> bool:
    """Whether enough of one target's were noticed, and the others have their reasons."""
    if not is_sound(target):
        _print(f"{target.name}: without a mistake something is found too")
        return False
    part = kept([target]).get(target.name, untried(target)) if asked.rest else untried(target)
    mutants, began_s, before = made_of(target), time.monotonic(), part
    for count, (number, fate) in enumerate(tried(target, mutants, part.left(), width=asked.processes), 1):
        part = part.with_fate(number, fate)
        if fate is Fate.SURVIVED:
            _print(f"survives: {target.name}: {mutants[number].name}")
        if count % KEPT_EVERY == 0:
            keep(target, part.dated(took_s=time.monotonic() - began_s))
            _print(f"{target.name}: {part.tried} of {len(mutants)} tried, {part.count(Fate.SURVIVED)} survive")
    if part != before:
        keep(target, part := part.dated(took_s=time.monotonic() - began_s))
    return _tell(target, part)


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
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
