"""Whether what was measured for long has stayed flat: pure.

After the warm-up the rest is cut into three. The medians of the first and of the last part are compared: a median does
not mind a peak, and what leaks is higher in the last part than in the first, whatever it did in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

LEAST_POINTS: Final = 9  # three in each part


class TooFewPointsError(Exception):
    """{name}: {points} points after the warm-up, and {least} are needed to say anything: let it run for longer."""

    def __init__(self, name: str, points: int) -> None:
        super().__init__((type(self).__doc__ or "").format(name=name, points=points, least=LEAST_POINTS))


@dataclass(frozen=True, slots=True)
class Point:
    """One reading: when, after how many jobs, and what."""

    at_s: float
    jobs: int
    value: float


@dataclass(frozen=True, slots=True)
class Allowed:
    """How much higher the last part may be: a share of the first or a number, whichever is more, and what each job
    leaves on purpose."""

    share: float
    noise: float
    a_job: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one series did, in its own unit."""

    name: str
    first: float
    last: float
    allowed: float
    hours: float  # from the middle of the first part to the middle of the last

    @property
    def grown(self) -> float:
        return self.last - self.first

    @property
    def an_hour(self) -> float:
        return self.grown / self.hours

    @property
    def is_flat(self) -> bool:
        return self.grown <= self.allowed


def judged(name: str, points: Sequence[Point], allowed: Allowed, *, warm_up_s: float) -> Verdict:
    warm = [point for point in points if point.at_s >= warm_up_s]
    if len(warm) < LEAST_POINTS:
        raise TooFewPointsError(name, len(warm))
    third = len(warm) // 3
    first, last = warm[:third], warm[-third:]
    before = median(point.value for point in first)
    jobs = median(point.jobs for point in last) - median(point.jobs for point in first)
    return Verdict(
        name,
        first=before,
        last=median(point.value for point in last),
        allowed=max(allowed.share * before, allowed.noise) + allowed.a_job * jobs,
        hours=(median(point.at_s for point in last) - median(point.at_s for point in first)) / 3600,
    )
