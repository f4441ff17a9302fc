"""Which of the planted bugs the adversary finds, and after how many seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from tests.planted import BUGS, Bug
from tests.simulation.drawing import plan_of
from tests.simulation.planting import planted
from tests.simulation.run import Stuck, simulate


@dataclass(frozen=True, slots=True)
class Hunt:
    """One bug, looked for in so many seeds."""

    bug: str
    seeds: int
    finding: str | None  # null: not found


def hunt_all(bugs: Sequence[Bug], *, seeds: int, jobs: int, processes: int) -> Iterator[Hunt]:
    names = [bug.name for bug in bugs]
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(hunt, names, [seeds] * len(names), [jobs] * len(names))


def hunt(name: str, seeds: int, jobs: int) -> Hunt:
    """By its name, since a function that makes a twin goes to no other process."""
    bug = next(each for each in BUGS if each.name == name)
    with planted(bug.where, bug.make):
        for seed in range(1, seeds + 1):
            if (finding := _finding(seed, jobs)) is not None:
                return Hunt(name, seed, finding)
    return Hunt(name, seeds, None)


def _finding(seed: int, jobs: int) -> str | None:
    try:
        findings = simulate(plan_of(seed, jobs=jobs)).findings
    except Stuck:
        return "Stuck"
    return findings[0].invariant if findings else None
