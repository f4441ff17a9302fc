"""What comes of one seed, in a process of its own: not in `__main__`, which such a process cannot import."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import dataclass

from tests.simulation.drawing import plan_of
from tests.simulation.run import Stuck, simulate


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


def settle_in() -> None:
    """What was imported is never garbage, and a run makes much that lives as long as it does."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    if (tasks := getattr(asyncio.tasks, "_all_tasks", None)) is not None:
        tasks.add = lambda task: None  # nobody here asks which tasks there are, and noting them is 2 % of a run
