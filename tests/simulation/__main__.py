"""`make simulate`: many seeds, or one as a story.

python -m tests.simulation --seeds 10000 --processes 2          seeds 1 to 10000
python -m tests.simulation --seed 4711                          that one, told
python -m tests.simulation --seed 4711 --shrink                 the shortest plan that fails as it does
python -m tests.simulation --seeds 10000 --proof docs/proof/simulation.md
python -m tests.simulation --seeds 2000 --planted               which of tests/planted are found, each alone
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.planted import BUGS
from tests.simulation.drawing import plan_of
from tests.simulation.hunting import hunt_all
from tests.simulation.plan import JOBS, Plan
from tests.simulation.proof import proof_of
from tests.simulation.run import Run, Stuck, simulate
from tests.simulation.shrink import shrink
from tests.simulation.story import story_of

SAID_EVERY = 100
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one seed, as it comes back from its process."""

    seed: int
    findings: tuple[str, ...]
    records: int
    log_sha256: str


def verdict_of(seed: int, jobs: int) -> Verdict:
    try:
        run = simulate(plan_of(seed, jobs=jobs))
    except Stuck as stuck:
        return Verdict(seed, (f"{type(stuck).__name__}: {Stuck.__doc__}",), 0, "")
    return Verdict(seed, tuple(map(str, run.findings)), len(run.records), run.log_sha256)


def main() -> int:
    asked = _arguments().parse_args()
    if asked.seed is not None:
        return _tell(asked.seed, jobs=asked.jobs, shortest=asked.shrink)
    if asked.planted:
        return _hunt(asked.seeds, asked.jobs, asked.processes)
    began_s = time.monotonic()
    verdicts = list(_said(_verdicts(asked.seeds, asked.jobs, asked.processes)))
    took_s, wrong = time.monotonic() - began_s, [each for each in verdicts if each.findings]
    records = sum(each.records for each in verdicts)
    _print(f"{len(verdicts)} seeds, {records} records, {took_s:.0f} s: {len(wrong)} with findings")
    for each in wrong[:SHOWN]:
        _print(f"seed {each.seed}: {each.findings[0]}")
    if wrong:
        _tell(wrong[0].seed, jobs=asked.jobs, shortest=True)
    elif asked.proof:
        Path(asked.proof).write_text(proof_of(len(verdicts), records, took_s, asked.processes), encoding="utf-8")
    return 1 if wrong else 0


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make simulate")
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--jobs", type=int, default=JOBS, help="of each seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--proof")
    parser.add_argument("--planted", action="store_true")
    return parser


def _hunt(seeds: int, jobs: int, processes: int) -> int:
    missed = 0
    for hunt in hunt_all(BUGS, seeds=seeds, jobs=jobs, processes=processes):
        missed += hunt.finding is None
        _print(f"{hunt.bug:<40} {f'{hunt.seeds:>5}  {hunt.finding}' if hunt.finding else '    –  not found'}")
    _print(f"{len(BUGS) - missed} of {len(BUGS)} found within {seeds} seeds")
    return 1 if missed else 0


def _verdicts(seeds: int, jobs: int, processes: int) -> Iterator[Verdict]:
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(verdict_of, range(1, seeds + 1), [jobs] * seeds, chunksize=10)


def _said(verdicts: Iterator[Verdict]) -> Iterator[Verdict]:
    for verdict in verdicts:
        if verdict.findings or verdict.seed % SAID_EVERY == 0:
            _print(f"seed {verdict.seed}: {verdict.findings[0] if verdict.findings else 'nothing found yet'}")
        yield verdict


def _tell(seed: int, *, jobs: int, shortest: bool) -> int:
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
