"""Room between places: which neighbours of a class stand too close, and how to spread the fewest of them.

    … 65536 · 65537 · 131072 …      no number is left between the first two
    … 65536 · 98304 · 131072 …      the second was moved: same order, room on both sides

Jobs that run, or ask their user, keep the number they return to: they are bounds and never move, and nothing crosses
them. Owns the arithmetic alone; it is told who stands where.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from headgate_contracts import Job, Status
from libs.capacity.rows import ARRIVAL_STEP

SPREAD_MAX = 20  # jobs moved at once: what one commit holds
ROOM = 2  # so far apart, a number is left between two
RETURNING = frozenset({Status.QUEUED, Status.AWAITING_CONFIRMATION})  # beside those that run: they have a place

PlacedJob = tuple[int, str]  # place, job


@dataclass(slots=True)
class Places:
    """class → who stands where in it, in order, and `narrow`: the left ones of neighbours without room between."""

    by_class: dict[int, list[PlacedJob]] = field(default_factory=dict[int, list[PlacedJob]])
    narrow: dict[str, int] = field(default_factory=dict[str, int])  # job → its class

    def fold(self, before: Job | None, job: Job) -> None:
        """The job stands here now, or nowhere."""
        was, now = before and _spot_of(before), _spot_of(job)
        if was == now:
            return
        if was is not None:
            self._take_out(*was)
        if now is not None:
            self._put_in(*now)

    def near(self, job: Job) -> list[PlacedJob]:
        """The jobs that may have to move with it, and one more on each side."""
        where = _spot_of(job)
        if where is None:
            return []
        class_number, spot = where
        spots = self.by_class[class_number]
        index = bisect_left(spots, spot)
        return spots[max(0, index - SPREAD_MAX) : index + SPREAD_MAX + 2]

    def _put_in(self, class_number: int, spot: PlacedJob) -> None:
        spots = self.by_class.setdefault(class_number, [])
        insort(spots, spot)
        index = bisect_left(spots, spot)
        self._compare(class_number, index - 1)
        self._compare(class_number, index)

    def _take_out(self, class_number: int, spot: PlacedJob) -> None:
        spots = self.by_class[class_number]
        index = bisect_left(spots, spot)
        del spots[index]
        self.narrow.pop(spot[1], None)
        self._compare(class_number, index - 1)
        if not spots:
            del self.by_class[class_number]

    def _compare(self, class_number: int, left: int) -> None:
        spots = self.by_class[class_number]
        if not 0 <= left < len(spots):
            return
        place, job = spots[left]
        if left + 1 < len(spots) and spots[left + 1][0] - place < ROOM:
            self.narrow[job] = class_number
        else:
            self.narrow.pop(job, None)


def spread(spots: Sequence[PlacedJob], narrow: str, *, fixed: Collection[str], arrivals: int) -> list[PlacedJob]:
    """New places for the fewest jobs around `narrow` and its right neighbour, in an order of which no part changes that
    of the queue; empty where no number is left, or none of them may move.

    `fixed` are those that do not move. No job moves behind the place of the next arrival.
    """
    index = next((number for number, (_, job) in enumerate(spots) if job == narrow), None)
    if index is None or index + 1 >= len(spots) or spots[index + 1][0] - spots[index][0] >= ROOM:
        return []
    for size in range(1, SPREAD_MAX + 1):
        windows = _windows(spots, index, size, fixed=fixed)
        steps = ((_step(spots, *window, arrivals=arrivals), window) for window in windows)
        step, window = max(steps, default=(0, (0, 0)))
        if step >= ROOM:
            return _moves(spots, *window, step=step)
    return []


def _windows(spots: Sequence[PlacedJob], index: int, size: int, *, fixed: Collection[str]) -> Iterator[tuple[int, int]]:
    """Each row of so many movable neighbours that has at least one of the two too close ones."""
    for first in range(max(0, index - size + 1), min(index + 1, len(spots) - size) + 1):
        if not any(spots[number][1] in fixed for number in range(first, first + size)):
            yield first, first + size


def _step(spots: Sequence[PlacedJob], first: int, end: int, *, arrivals: int) -> int:
    left, right = _bounds(spots, first, end, arrivals=arrivals)
    return (right - left) // (end - first + 1)


def _bounds(spots: Sequence[PlacedJob], first: int, end: int, *, arrivals: int) -> tuple[int, int]:
    left = spots[first - 1][0] if first else 0
    right = spots[end][0] if end < len(spots) else (arrivals + 1) * ARRIVAL_STEP
    return left, right


def _moves(spots: Sequence[PlacedJob], first: int, end: int, *, step: int) -> list[PlacedJob]:
    """Who goes right goes before those on its left, who goes left after them: so no job ever crosses another."""
    left = spots[first - 1][0] if first else 0
    moved = [(old, left + step * number, job) for number, (old, job) in enumerate(spots[first:end], start=1)]
    rightward = [(new, job) for old, new, job in reversed(moved) if new > old]
    leftward = [(new, job) for old, new, job in moved if new < old]
    return [*rightward, *leftward]


def _spot_of(job: Job) -> tuple[int, PlacedJob] | None:
    if job.standing is None or not (job.status in RETURNING or job.status.is_running):
        return None
    return job.priority.class_number, (job.standing.place, job.id)
