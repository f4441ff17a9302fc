"""How long jobs will hold their slots, from how long jobs of their tier held them lately.

What was observed counts as it was, with its failures and its many iterations; a job that runs already is one of those
that ran longer than it has. Each job draws by its own id, so it is dealt the same each time the queue is run forward,
and what is shown of it does not jump. Pure.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

GOLDEN: Final = 0.6180339887498949  # steps of this share never come close to each other
FEW: Final = 3  # observed holds: with less, a guess around the average, which follows slowly
LONGER: Final = 0.5  # of what it has run: how much longer, at the least, a job runs that outlasted all that were seen


@dataclass(frozen=True, slots=True)
class Observed:
    """The holds of one tier, shortest first, and their average."""

    average_s: float
    holds_s: tuple[float, ...]

    def is_outlasted(self, age_s: float) -> bool:
        """A job that has held its slot for so long is like none that was seen."""
        return len(self.holds_s) >= FEW and age_s > self.holds_s[-1]

    def draw(self, share: float, *, age_s: float = 0.0) -> float:
        """How much longer a job holds its slot that has held it for so long: at `share` of what may come."""
        if len(self.holds_s) < FEW:
            return max(self.average_s * (0.5 + share) - age_s, self.average_s * 0.2)
        longer = len(self.holds_s) - (first := bisect_right(self.holds_s, age_s))
        if not longer:
            return age_s * (LONGER + share)  # not from nothing on: of several, one would always end at once
        return self.holds_s[first + int(share * longer)] - age_s


@dataclass(frozen=True, slots=True)
class Durations:
    """The durations that one simulated run has drawn."""

    tiers: Mapping[str, Observed]
    number: int = 0

    def hold_s(self, job: str, tier: str, *, age_s: float = 0.0) -> float:
        """How much longer this job holds its slots."""
        return self.tiers[tier].draw((share_of(job) + self.number * GOLDEN) % 1.0, age_s=age_s)


def observed(average_s: float, holds_s: Sequence[float]) -> Observed:
    return Observed(average_s, tuple(sorted(holds_s)))


def share_of(job: str) -> float:
    """A number from 0 to below 1 that follows from the job's id."""
    return int.from_bytes(blake2b(job.encode(), digest_size=6).digest()) / 2**48
