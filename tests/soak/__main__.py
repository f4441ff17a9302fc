"""`make soak MINUTES=60`: the system under a steady load for long, and whether what it holds stays flat.

Ends with 1 where anything has grown that should not, or a job did not end as it should. PROOF= names the page.
"""

from __future__ import annotations

import asyncio
import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.bench.field import ROOMY
from tests.fixtures.installation import installed
from tests.soak.flatness import Point, judged
from tests.soak.load import USERS, Load
from tests.soak.report import WHOLE_MINUTES, Soaked, page
from tests.soak.sampling import Probe, allowed

UNCONTAINED: Final = {"HEADGATE_SANDBOX": "trusted"}  # these jobs start no command, so any machine will do
READINGS: Final = 240  # over the whole time, and none more often than each second
WARM_UP: Final = 0.25  # of the time, ten minutes at most
LONGEST_WARM_UP_S: Final = 600.0


def main() -> int:
    args = _words()
    with TemporaryDirectory(prefix="headgate-soak-") as folder:
        soaked = asyncio.run(_soaked(Path(folder), args))
    text = page(soaked) + "\n"
    sys.stdout.write(text)
    if args.proof:
        args.proof.write_text(text, encoding="utf-8")
    return 0 if soaked.is_well else 1


async def _soaked(folder: Path, args: Namespace) -> Soaked:
    series: dict[str, list[Point]] = {}
    length_s = args.minutes * 60
    async with (
        installed(folder, policy=ROOMY, workers=2, slots=4, environ=UNCONTAINED) as there,
        Probe.of(there) as probe,
        Load.on(there, every_s=args.every) as load,
    ):
        begun = time.monotonic()
        while (at_s := time.monotonic() - begun) < length_s:
            for name, value in (await probe.read()).items():
                series.setdefault(name, []).append(Point(at_s, load.ended, value))
            await asyncio.sleep(max(1.0, length_s / READINGS))
        ran_s = time.monotonic() - begun
    warm_up_s = min(LONGEST_WARM_UP_S, ran_s * WARM_UP)
    return Soaked(
        minutes=ran_s / 60,
        warm_up_minutes=warm_up_s / 60,
        jobs=load.ended,
        readings=len(series["view keys"]),
        load=f"a job each {args.every:g} s by {USERS} users who follow it; of ten one is cancelled, one holds a slot",
        verdicts=[judged(name, points, allowed(name), warm_up_s=warm_up_s) for name, points in series.items()],
        faults=load.faults,
        unanswered=load.unanswered,
    )


def _words() -> Namespace:
    parser = ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=WHOLE_MINUTES)
    parser.add_argument("--every", type=float, default=0.5, help="seconds from one submission to the next")
    parser.add_argument("--proof", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
