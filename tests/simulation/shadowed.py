"""The engine's plans beside the view's, through simulated bad days: how many were the same, and why others were not.

python -m tests.simulation.shadowed --seeds 60 --proof docs/proof/planning.md

`services/scheduler/shadow.py` says what each verdict means. One that differs fails the command.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from services.scheduler import shadow
from tests.simulation.drawing import plan_of
from tests.simulation.run import simulate

MEANS: Final = {
    shadow.SAME: "the same jobs, limits and slots",
    shadow.BORDER: "the same, once the engine knew who holds what the log does not tell of",
    shadow.WORKERS: "one of them had heard of a worker, or given it up, before the other",
    shadow.APART: "not folded up to the same record, or not all looked at: not compared",
    shadow.DIFFERS: "not the same, looked at again and again: a fault",
}


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """The verdicts of every replica that is made meanwhile."""
    made: Any = shadow.Shadow
    verdicts, sound = Counter[str](), made.__init__

    def begin(self: shadow.Shadow, *args: Any) -> None:
        sound(self, *args)
        self.verdicts = verdicts

    made.__init__ = begin
    try:
        yield verdicts
    finally:
        made.__init__ = sound


def page_of(verdicts: Counter[str], *, seeds: int) -> str:
    rows = [f"| {verdict} | {verdicts[verdict]:,} | {means} |" for verdict, means in MEANS.items()]
    lines = (
        "# The engine's plans beside the view's",
        "",
        f"Written by `python -m tests.simulation.shadowed --seeds {seeds} --proof docs/proof/planning.md`:",
        "simulated bad days, in which whoever leads compares its plan with the view's once a second. The conformance",
        "suite compares each plan of its histories, in memory and on Valkey.",
        "",
        "| verdict | plans | means |",
        "|---|---:|---|",
        *rows,
        "",
    )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--proof", type=Path)
    asked = parser.parse_args()
    with counted() as verdicts:
        for seed in range(1, asked.seeds + 1):
            simulate(plan_of(seed))
    page = page_of(verdicts, seeds=asked.seeds)
    if asked.proof is not None:
        asked.proof.write_text(page, encoding="utf-8")
    sys.stdout.write(page)
    return 1 if verdicts[shadow.DIFFERS] else 0


if __name__ == "__main__":
    sys.exit(main())
