"""From the errors of past estimates to the interval around the next one.

A past estimate and the real wait are a pair. Their difference, measured against the estimate and one turn of a slot
together, is comparable between near and far estimates; its quantiles, by how far ahead the estimate was, are the ends
of the next interval. Of n errors the k-th smallest is at least the next one with a chance of k / (n + 1): so few pairs
give wide intervals, and the first ones that can hold so many reach from the least to the greatest error. With fewer
the policy's fixed spread is used.

Pure. Owns no clock and no pairs: the ledger keeps them.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

COVERED: Final = 0.9  # of the real waits; between 80 and 95 % is aimed at, so that a drift stays inside
FIRST: Final = 19  # pairs: from the least to the greatest error of them is nine of ten
BAND_MIN: Final = 60  # of each band, where there are several
BANDS_MAX: Final = 6


@dataclass(frozen=True, slots=True)
class Pair:
    """What was shown and what came, in seconds."""

    shown_s: float
    real_s: float


@dataclass(frozen=True, slots=True)
class Band:
    """Estimates up to `upto_s`: how much sooner and later than shown the real start is, in units of the estimate."""

    upto_s: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Spread:
    """Interval ends for any estimate. `turn_s` keeps a near estimate from having an interval of no width."""

    turn_s: float = 0.0
    bands: tuple[Band, ...] = ()
    fixed: float = 0.3

    def around(self, wait_s: float) -> tuple[float, float]:
        """Lower and upper end for this estimate."""
        if not self.bands:
            return wait_s * (1 - self.fixed), wait_s * (1 + self.fixed)
        band = self.bands[min(bisect_left([band.upto_s for band in self.bands], wait_s), len(self.bands) - 1)]
        unit_s = wait_s + self.turn_s
        return max(0.0, wait_s + band.low * unit_s), max(0.0, wait_s + band.high * unit_s)


def learn(pairs: Sequence[Pair], *, turn_s: float, fixed: float, covered: float = COVERED) -> Spread:
    """The spread of these pairs, in as many bands as they fill."""
    if len(pairs) < FIRST:
        return Spread(fixed=fixed)
    count = max(1, min(BANDS_MAX, len(pairs) // BAND_MIN))
    ordered = sorted(pairs, key=lambda pair: (pair.shown_s, pair.real_s))
    edges = [len(ordered) * number // count for number in range(count + 1)]
    bands = [_band(ordered[start:end], turn_s, covered) for start, end in pairwise(edges)]
    return Spread(turn_s, tuple(bands), fixed)


def _band(pairs: Sequence[Pair], turn_s: float, covered: float) -> Band:
    errors = sorted((pair.real_s - pair.shown_s) / (pair.shown_s + turn_s) for pair in pairs)
    missed = (1 - covered) / 2
    return Band(pairs[-1].shown_s, chance(errors, missed), chance(errors, 1 - missed))


def chance(ordered: Sequence[float], share: float) -> float:
    """What the next one is below with this chance; of too few, the outermost."""
    return _between(ordered, share * (len(ordered) + 1) - 1)


def quantile(ordered: Sequence[float], share: float) -> float:
    """Between two neighbours as far as the share says."""
    return _between(ordered, share * (len(ordered) - 1))


def _between(ordered: Sequence[float], at: float) -> float:
    at = min(max(at, 0.0), len(ordered) - 1.0)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)
