"""`make mutants`: tries them all, and writes the page."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Final

from tests.mutants.mutant import mutants_of
from tests.mutants.report import page_of, reasons, share_noticed, survivors, unexplained
from tests.mutants.running import Fate, Tried, get_ready, is_sound, tried
from tests.mutants.targets import ROOT, TARGETS

PAGE: Final = ROOT / "docs/proof/mutants.md"
SAID_EVERY: Final = 25
ENOUGH: Final = 0.9


def main() -> int:
    asked = _arguments().parse_args()
    targets = [target for target in TARGETS if not asked.only or target.name in asked.only.split(",")]
    get_ready()
    if broken := [target.name for target in targets if not is_sound(target)]:
        _print(f"without a mistake something is found too: {', '.join(broken)}")
        return 1
    mutants = [
        (target, each) for target in targets for each in mutants_of(target.module, target.source, data=target.data)
    ]
    began_s, all_tried = time.monotonic(), list[Tried]()
    for each in tried(mutants, width=asked.processes):
        all_tried.append(each)
        if each.fate is Fate.SURVIVED:
            _print(f"survives: {each.target.name}: {each.mutant.name}")
        if len(all_tried) % SAID_EVERY == 0:
            _print(f"{len(all_tried)} of {len(mutants)}: {len(survivors(all_tried))} survive")
    return _tell(all_tried, whole=not asked.only, took_s=time.monotonic() - began_s)


def _tell(all_tried: list[Tried], *, whole: bool, took_s: float) -> int:
    why = reasons()
    if whole:
        Path(PAGE).write_text(page_of(all_tried, why, took_s), encoding="utf-8")
    for each in unexplained(all_tried, why):
        _print(f"survives without a reason: {each.target.name}: {each.mutant.name}")
    _print(f"{len(all_tried)} mutants, {share_noticed(all_tried):.1%} noticed, {took_s:.0f} s")
    return 0 if share_noticed(all_tried) >= ENOUGH and not unexplained(all_tried, why) else 1


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make mutants")
    parser.add_argument("--only", help=f"{', '.join(target.name for target in TARGETS)}; with commas")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    return parser


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
