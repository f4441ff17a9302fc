"""Lines: when a pool or a group would have a slot for a job that comes anew.

    places   the score of each queued job, and when it starts: a job that goes before it starts no later
    ends     when the last one of a class starts; of a group, when it has a slot for good
    slots    of a pool, and how many of them nobody wants now

Pure. A group that is full at no time has no line: it holds nobody up. Moments are milliseconds since the runs began,
and means over all of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from libs.capacity.rows import CLASS_STEP, Row
from libs.forecast.machine import PoolSlots
from libs.forecast.run import Hold, RunResult, Scene

StartTimes = Mapping[str, int | None]  # of queued jobs; null: no start
ANY: Final = 0  # the class of a group's end
FOREVER: Final = 2**63  # behind every score


@dataclass(frozen=True, slots=True)
class WaitingLine:
    """One pool's, or one group's."""

    places: tuple[tuple[int, int], ...] = ()
    ends: Mapping[int, int] = field(default_factory=dict[int, int])
    slots: int = 0
    idle: int = 0

    def sooner(self, score: int, position: int, *, start_ms: int) -> int:
        """How many of those ahead start no later than this, with those whom no run knew."""
        known = [other_ms for other, other_ms in self.places if other < score]
        return sum(other_ms <= start_ms for other_ms in known) + max(0, position - 1 - len(known))

    def strangers(self, score: int, position: int) -> float:
        """How many times a slot has to come free first for those ahead whom no run knew, as they came since: a share of
        one slot's time each."""
        unknown = max(0, position - 1 - sum(other < score for other, _ in self.places))
        waits = max(0, unknown - self.idle + 1) if self.idle else unknown
        return waits / max(1, self.slots)

    def offer(self, score: int) -> int | None:
        """When a new job of this score gets a slot here; null: nobody knows."""
        number = score // CLASS_STEP
        # A pool starts a lower class sooner where that is owed a turn, which no other class can take.
        behind = FOREVER if ANY in self.ends else (number + 1) * CLASS_STEP
        starts = [start_ms for other, start_ms in self.places if score < other < behind]
        end_ms = self.ends.get(number, self.ends.get(ANY))
        return min(starts if end_ms is None else [*starts, end_ms], default=None)


def lines_of(scene: Scene, courses: Sequence[RunResult], starts: StartTimes) -> dict[str, WaitingLine]:
    """The line of every pool, and of every group that is full at some time."""
    lines: dict[str, WaitingLine] = {}
    for pool in scene.pools:
        places = _places((row for row in scene.waiting if row.pool == pool.pool), starts)
        ends = _pool_ends(pool.pool, courses, scene.now_ms)
        lines[f"pool:{pool.pool}"] = WaitingLine(places, ends, pool.slots, _idle(pool, courses, scene.now_ms))
    for group, open_ms in _openings(courses, scene.now_ms).items():
        places = _places((row for row in scene.waiting if group in row.groups), starts)
        lines[group] = WaitingLine(places, {ANY: open_ms})
    return lines


def _places(rows: Iterable[Row], starts: StartTimes) -> tuple[tuple[int, int], ...]:
    places = ((row.score, starts.get(row.id)) for row in rows)
    return tuple(sorted((score, start_ms) for score, start_ms in places if score is not None and start_ms is not None))


def _idle(pool: PoolSlots, courses: Sequence[RunResult], now_ms: int) -> int:
    """Slots that are free when all have started that can now: in each run the same."""
    taken = (hold.row.pool == pool.pool and hold.start_ms <= now_ms for hold in courses[0].holds)
    return max(0, pool.slots - sum(taken))


def _pool_ends(pool: str, courses: Sequence[RunResult], now_ms: int) -> dict[int, int]:
    """Of the classes whose last one starts in more than half of the runs."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for course in courses:
        for (named, number), end_ms in course.ends.items():
            if named == pool:
                found[number].append(end_ms - now_ms)
    return {number: round(fmean(ends)) for number, ends in found.items() if 2 * len(ends) > len(courses)}


def _openings(courses: Sequence[RunResult], now_ms: int) -> dict[str, int]:
    """When each group that is full at some time has a slot for good: the end of its last full time."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for course in courses:
        holds: defaultdict[str, list[Hold]] = defaultdict(list)
        for hold in course.holds:
            for group in hold.row.groups:
                holds[group].append(hold)
        for group, limit in course.limits.items():
            if len(holds[group]) >= limit:
                found[group].append(_full_until(holds[group], limit) - now_ms)
    return {group: round(sum(ends) / len(courses)) for group, ends in found.items() if max(ends) > 0}


def _full_until(holds: Iterable[Hold], limit: int) -> int:
    """When the last time ends at which `limit` are held at once; 0 where they never are."""
    changes = sorted(change for hold in holds for change in ((hold.start_ms, 1), (hold.end_ms, -1)))
    active, until_ms, was_full = 0, 0, False
    for at_ms, change in changes:
        active += change
        until_ms = at_ms if was_full and active < limit else until_ms
        was_full = active >= limit
    return until_ms
