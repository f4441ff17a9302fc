"""Which of the planted bugs the adversary finds, and after how many seeds.

Each bug's seeds are tried in pieces, in their order and by all processors: first some of each bug, then more of those
that are still at large. What is told is the first seed that finds it, however many processors there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from typing import Final

from tests.planted import BUGS, Bug
from tests.simulation.drawing import plan_of
from tests.simulation.evidence import Finding
from tests.simulation.planting import planted
from tests.simulation.run import Stuck, simulate

PIECE: Final = 10  # seeds
SAID_EVERY: Final = 100


@dataclass(frozen=True, slots=True)
class Hunt:
    """What came of one bug: found in its last seed, or in none."""

    bug: str
    seeds: int
    finding: Finding | None

    def __str__(self) -> str:
        if self.finding is None:
            return f"{self.bug:<40} not found in {self.seeds}"
        return f"{self.bug:<40} {self.seeds:>5}  {self.finding.invariant:<7} {self.finding.about}: {self.finding.what}"


class _Chase:
    """One bug while it is looked for."""

    def __init__(self, bug: str, seeds: int, *, after: int = 0) -> None:
        self.bug = bug
        self._seeds = seeds
        self._taken = after
        self._out: list[range] = []
        self._found: tuple[int, Finding] | None = None

    def take(self) -> range | None:
        if self._found or self._taken == self._seeds:
            return None
        piece = range(self._taken + 1, min(self._taken + PIECE, self._seeds) + 1)
        self._taken = piece[-1]
        self._out.append(piece)
        return piece

    def hear(self, piece: range, found: tuple[int, Finding] | None) -> Hunt | None:
        """What it came to, once no earlier seed is being tried."""
        was_over = self._is_over()
        self._out.remove(piece)
        self._found = min(filter(None, (self._found, found)), default=None, key=lambda each: each[0])
        if was_over or not self._is_over():
            return None
        return Hunt(self.bug, *self._found) if self._found else Hunt(self.bug, self._seeds, None)

    def so_far(self) -> Hunt | None:
        """Where it is given up now, and no seed is being tried; null where it was told already."""
        return None if self._is_over() else Hunt(self.bug, self._taken, None)

    def _is_over(self) -> bool:
        if self._found is None:
            return self._taken == self._seeds and not self._out
        return all(piece[0] > self._found[0] for piece in self._out)


def chosen(names: str | None) -> tuple[Bug, ...]:
    """`name,name`; all of them where none is named."""
    if not names:
        return BUGS
    by_name = {bug.name: bug for bug in BUGS}
    if unknown := [name for name in names.split(",") if name not in by_name]:
        raise SystemExit(f"no such bug: {', '.join(unknown)}. There are: {', '.join(by_name)}")
    return tuple(by_name[name] for name in names.split(","))


def hunt_all(
    bugs: Sequence[Bug],
    *,
    seeds: int,
    jobs: int,
    pool: ProcessPoolExecutor,
    width: int,
    tell: Callable[[str], None],
    searched: Callable[[str], int] = lambda bug: 0,
    is_late: Callable[[], bool] = lambda: False,
) -> Iterator[Hunt]:
    """As they are found; `width` pieces at once. Those that were searched before are looked for behind that, and where
    the time is over it is told how far each was."""
    chases, said = deque(_Chase(bug.name, seeds, after=searched(bug.name)) for bug in bugs), 0
    out: dict[Future[tuple[int, Finding] | None], tuple[_Chase, range]] = {}
    while out or (chases and not is_late()):
        while chases and len(out) < width and not is_late():
            chase = chases.popleft()
            if (piece := chase.take()) is not None:
                out[pool.submit(search, chase.bug, piece, jobs)] = chase, piece
                chases.append(chase)
                if piece[-1] >= said + SAID_EVERY:
                    said = piece[-1]
                    tell(f"{len(chases)} still at large at seed {said}")
        for done in wait(out, return_when=FIRST_COMPLETED).done:
            chase, piece = out.pop(done)
            if (hunt := chase.hear(piece, done.result())) is not None:
                yield hunt
    yield from filter(None, (chase.so_far() for chase in chases))


def search(name: str, seeds: range, jobs: int) -> tuple[int, Finding] | None:
    """By its name, since a function that makes a twin goes to no other process."""
    (bug,) = chosen(name)
    with planted(bug.where, bug.make):
        return next(((seed, finding) for seed in seeds if (finding := _finding(seed, jobs))), None)


def _finding(seed: int, jobs: int) -> Finding | None:
    try:
        findings = simulate(plan_of(seed, jobs=jobs)).findings
    except Stuck:
        return Finding("Stuck", "the system", Stuck.__doc__ or "")
    return findings[0] if findings else None
