"""What an estimate is made of besides a forecast: its numbers, how sure it is, and averages before any was measured.

Pure.
"""

from collections.abc import Mapping
from typing import Literal

from headgate_contracts.events import Estimate
from headgate_contracts.vocabulary import Tier
from libs.policy import Policy


def estimate_between(wait_s: float, bounds_s: tuple[float, float], *, confidence: Literal["medium", "low"]) -> Estimate:
    """In whole seconds, at least one: nothing starts in the moment it is asked about."""
    seconds = max(1, round(wait_s))
    lower, upper = (max(0, round(bound_s)) for bound_s in bounds_s)
    return Estimate(
        estimate_seconds=seconds,
        lower_bound=min(lower, seconds),
        upper_bound=max(upper, seconds),
        confidence=confidence,
    )


def confidence_at(position: int, policy: Policy) -> Literal["medium", "low"]:
    """Those near the front are told with more confidence."""
    return "medium" if position < policy.forecast.medium_below else "low"


def first_averages(policy: Policy) -> dict[str, float]:
    """Durations by tier, before any was measured."""
    return {tier.value: policy.tier_limits(tier).first_duration_s for tier in Tier}


def average_over(averages: Mapping[str, float], queued: Mapping[str, int], *, tier: str) -> float:
    """The mean duration of the queued jobs, by how many there are of each tier; of an empty queue that of `tier`."""
    jobs = sum(queued.values())
    if not jobs:
        return averages[tier]
    return sum(averages[each] * count for each, count in queued.items()) / jobs
