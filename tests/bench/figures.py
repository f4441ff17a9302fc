"""What measurements say: medians with their spread, percentiles, ratios of one run, and how a cost grows. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure of several rounds: the median, and between what it lay."""

    low: float
    mid: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        told = sorted(values)
        return cls(told[0], median(told), told[-1])

    def __str__(self) -> str:
        return rounded(self.mid) if self.low == self.high else f"{rounded(self.mid)} ({self.between})"

    @property
    def between(self) -> str:
        return f"{rounded(self.low)}–{rounded(self.high)}"


@dataclass(frozen=True, slots=True)
class Growth:
    """cost = factor × size ^ exponent, fitted on logarithms. `last` is the exponent between the two largest sizes."""

    exponent: float
    factor: float
    last: float

    def __str__(self) -> str:
        return f"{self.exponent:+.2f} (last step {self.last:+.2f})"


def percentile(values: Sequence[float], percent: float) -> float:
    """Between the two values that are nearest, in proportion."""
    told = sorted(values)
    place = (len(told) - 1) * percent / 100
    below = math.floor(place)
    above = min(below + 1, len(told) - 1)
    return told[below] + (told[above] - told[below]) * (place - below)


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Round by round, as what else the machine did in a round met both."""
    return Spread.of(one / other for one, other in zip(ours, theirs, strict=True))


def growth(points: Iterable[tuple[float, float]]) -> Growth | None:
    """None of fewer than two sizes. What is not above nothing has no logarithm and is left out."""
    logs = sorted((math.log(size), math.log(cost)) for size, cost in points if size > 0 and cost > 0)
    if len({size for size, _ in logs}) < 2:
        return None
    exponent = _slope(logs)
    factor = math.exp(fmean(cost for _, cost in logs) - exponent * fmean(size for size, _ in logs))
    two = sorted({size for size, _ in logs})[-2:]
    return Growth(exponent, factor, _slope([point for point in logs if point[0] in two]))


def rounded(value: float) -> str:
    """Three digits that say something, and no more."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """Least squares."""
    at, of = fmean(x for x, _ in points), fmean(y for _, y in points)
    return sum((x - at) * (y - of) for x, y in points) / sum((x - at) ** 2 for x, _ in points)
