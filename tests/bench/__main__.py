"""`make bench`: measures, and writes docs/performance.md with its pictures. ONLY=latency,drain ROUNDS=1 SHARE=0.1

Each part is written into its place as soon as it is done, so that a run that is broken off has kept what it has. A run
with a share of the usual sizes prints what it found and leaves the page alone.
"""

from __future__ import annotations

import asyncio
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.bench import race
from tests.bench.asked import Asked, Part, Told
from tests.bench.capacity import capacity
from tests.bench.footprint import footprint
from tests.bench.growth import grown
from tests.bench.lone import lone
from tests.bench.machine import described, load
from tests.bench.page import rewritten
from tests.bench.streams import streams
from tests.bench.tables import printed

PAGE: Final = Path("docs/performance.md")
PICTURES: Final = Path("docs/performance")
PARTS: Final[Mapping[str, Part]] = {
    "latency": race.latency,
    "drain": race.drain,
    "streams": streams,
    "growth": grown,
    "log": printed("bench_log.py"),
    "lone": lone,
    "view": printed("bench_view.py"),
    "lists": printed("bench_lists.py"),
    "worker": printed("bench_worker.py"),
    "tracing": printed("bench_tracing.py"),
    "recovery": printed("bench_recovery.py"),
    "forecast": printed("bench_forecast.py"),
    "footprint": footprint,
    "capacity": capacity,
}


def main() -> int:
    args = _words()
    for name in args.only.split(",") if args.only else PARTS:
        before = load()
        with TemporaryDirectory(prefix="headgate-bench-") as folder:
            asked = Asked(rounds=args.rounds, share=args.share, folder=Path(folder))
            asked.say(f"{name}: begins, load average {before}")
            told = asyncio.run(PARTS[name](asked))
        text = f"{told.text}\n\n{_when(args, before)}"
        sys.stdout.write(f"\n## {name}\n\n{text}\n")
        if args.share >= 1:
            _write(name, text, told)
    return 0


def _write(name: str, text: str, told: Told) -> None:
    PICTURES.mkdir(exist_ok=True)
    for picture, svg in told.pictures.items():
        (PICTURES / f"{picture}.svg").write_text(svg, encoding="utf-8")
    shown = "\n".join(f"![{picture}](performance/{picture}.svg)" for picture in told.pictures)
    page = rewritten(PAGE.read_text(encoding="utf-8"), {name: f"{text}\n\n{shown}"})
    PAGE.write_text(page, encoding="utf-8")


def _when(args: Namespace, before: str) -> str:
    rounds = "round" if args.rounds == 1 else "rounds"
    return f"Measured {described()}; {args.rounds} {rounds}; load average {before} before and {load()} after."


def _words() -> Namespace:
    parser = ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", default="", help=f"parts, with commas: {', '.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0)
    args = parser.parse_args()
    if unknown := set(filter(None, args.only.split(","))) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}: there are {', '.join(PARTS)}")
    return args


if __name__ == "__main__":
    sys.exit(main())
