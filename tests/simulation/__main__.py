"""`make simulate`: many seeds, one as a story, or a hunt for planted bugs.

python -m tests.simulation --seeds 10000 --processes 2          seeds 1 to 10000
python -m tests.simulation --seed 4711                          that one, told
python -m tests.simulation --seed 4711 --shrink                 the shortest plan that fails as it does
python -m tests.simulation --seeds 2000 --planted               which of tests/planted are found, each alone
python -m tests.simulation --seeds 2000 --bugs name,name        only those; with --seed: the story of one of them
python -m tests.simulation --seeds 5 --hashes                   of each log, to be compared with another machine's
python -m tests.simulation --seeds 10000 --proof docs/proof/simulation.md     the seeds, then the hunt, and their page
python -m tests.simulation --seeds 10000 --proof docs/proof/simulation.md --rest     the same in slices
python -m tests.simulation --seeds 500 --proof docs/proof/simulation.md --rest --minutes 20     a slice, and its page
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from tests.planted import BUGS
from tests.simulation.drawing import plan_of
from tests.simulation.hunting import Hunt, chosen, hunt_all
from tests.simulation.plan import JOBS, Plan
from tests.simulation.planting import planted
from tests.simulation.proof import Swept, proof_of
from tests.simulation.run import Run, simulate
from tests.simulation.shrink import shrink
from tests.simulation.slices import Slices
from tests.simulation.story import story_of
from tests.simulation.verdicts import Verdict, settle_in, verdict_of

SAID_EVERY: Final = 100
SWEPT_AT_ONCE: Final = 200  # seeds of a proof: at their end one process waits for the other
GIVEN_AT_ONCE: Final = 3  # to a process
SHOWN: Final = 20


def main() -> int:
    asked = _arguments().parse_args()
    if asked.seed is not None:
        return _tell(asked.seed, jobs=asked.jobs, shortest=asked.shrink, bugs=asked.bugs)
    with ProcessPoolExecutor(asked.processes, initializer=settle_in) as pool:
        if asked.hashes:
            for verdict in _verdicts(asked, pool):
                _print(f"{verdict.seed} {verdict.log_sha256}")
            return 0
        if asked.planted or asked.bugs:
            hunts = _hunt(asked, asked.seeds, pool)
            return 0 if all(hunt.finding for hunt in hunts) else 1
        wrong = _prove(asked, pool) if asked.proof else _sweep(asked, pool)[1]
        if wrong:
            _tell(wrong, jobs=asked.jobs, shortest=True)
    return 1 if wrong else 0


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make simulate")
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--jobs", type=int, default=JOBS, help="of each seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--proof")
    parser.add_argument("--within", type=int, default=2000, help="seeds for each planted bug, beside a proof")
    parser.add_argument("--rest", action="store_true", help="of a proof: what earlier slices have not done")
    parser.add_argument("--minutes", type=float, help="of a proof: then the page says how far it has come")
    parser.add_argument("--hashes", action="store_true")
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--bugs", help="names of tests/planted, with commas")
    return parser


def _prove(asked: argparse.Namespace, pool: ProcessPoolExecutor) -> int | None:
    """The seeds, then the hunt, and their page; the first seed in which something was found. In slices: what is done is
    kept as it goes."""
    page = Path(asked.proof)
    slices, is_late = Slices.of(page, rest=asked.rest), _later_than(asked.minutes)
    while slices.swept.seeds < asked.seeds and not is_late():
        after = slices.swept.seeds
        piece = argparse.Namespace(**{**vars(asked), "seeds": min(asked.seeds, after + SWEPT_AT_ONCE)})
        swept, wrong = _sweep(piece, pool, after=after)
        if wrong:
            return wrong
        slices.sweep(swept)
    _print("now the planted bugs")
    names = slices.at_large([bug.name for bug in BUGS], within=asked.within)
    for hunt in _hunted(asked, names, asked.within, pool, searched=slices.searched, is_late=is_late):
        slices.hunt(hunt)
    hunts = [slices.hunts[bug.name] for bug in BUGS]
    page.write_text(proof_of(slices.swept, hunts), encoding="utf-8")
    return None


def _later_than(minutes: float | None) -> Callable[[], bool]:
    began_s = time.monotonic()
    return lambda: minutes is not None and time.monotonic() - began_s > 60 * minutes


def _sweep(asked: argparse.Namespace, pool: ProcessPoolExecutor, *, after: int = 0) -> tuple[Swept, int | None]:
    """All seeds, and the first of those in which something was found."""
    began_s = time.monotonic()
    verdicts = list(_said(_verdicts(asked, pool, after=after)))
    wrong = [each for each in verdicts if each.findings]
    records = sum(each.records for each in verdicts)
    swept = Swept(asked.seeds, records, time.monotonic() - began_s, asked.processes)
    _print(f"{swept.seeds} seeds, {records} records, {swept.took_s:.0f} s: {len(wrong)} with findings")
    for each in wrong[:SHOWN]:
        _print(f"seed {each.seed}: {each.findings[0]}")
    return swept, wrong[0].seed if wrong else None


def _verdicts(asked: argparse.Namespace, pool: ProcessPoolExecutor, *, after: int = 0) -> Iterator[Verdict]:
    return pool.map(verdict_of, range(after + 1, asked.seeds + 1), [asked.jobs] * asked.seeds, chunksize=GIVEN_AT_ONCE)


def _said(verdicts: Iterator[Verdict]) -> Iterator[Verdict]:
    for verdict in verdicts:
        if verdict.findings or verdict.seed % SAID_EVERY == 0:
            _print(f"seed {verdict.seed}: {verdict.findings[0] if verdict.findings else 'nothing found yet'}")
        yield verdict


def _hunt(asked: argparse.Namespace, seeds: int, pool: ProcessPoolExecutor) -> list[Hunt]:
    """Told as they come."""
    names = [bug.name for bug in chosen(asked.bugs)]
    hunts = list(_hunted(asked, names, seeds, pool, searched=lambda bug: 0))
    found = sum(hunt.finding is not None for hunt in hunts)
    _print(f"{found} of {len(names)} found within {seeds} seeds")
    return hunts


def _hunted(
    asked: argparse.Namespace,
    names: Sequence[str],
    seeds: int,
    pool: ProcessPoolExecutor,
    *,
    searched: Callable[[str], int],
    is_late: Callable[[], bool] = lambda: False,
) -> Iterator[Hunt]:
    bugs = chosen(",".join(names)) if names else ()
    how: dict[str, Any] = {"jobs": asked.jobs, "pool": pool, "width": asked.processes + 1, "tell": _print}
    for hunt in hunt_all(bugs, seeds=seeds, searched=searched, is_late=is_late, **how):
        _print(str(hunt))
        yield hunt


def _tell(seed: int, *, jobs: int, shortest: bool, bugs: str | None = None) -> int:
    with ExitStack() as planting:
        for bug in chosen(bugs) if bugs else ():
            planting.enter_context(planted(bug.where, bug.make))
        run = simulate(plan_of(seed, jobs=jobs))
        if run.findings and shortest:
            run = simulate(shrink(run.plan, lambda plan: fails_alike(plan, run)))
    _print(story_of(run))
    return 1 if run.findings else 0


def fails_alike(plan: Plan, run: Run) -> bool:
    """Whether the plan breaks the invariant that the run broke first."""
    return run.findings[0].invariant in {finding.invariant for finding in simulate(plan).findings}


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
