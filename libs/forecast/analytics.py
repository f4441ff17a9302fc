"""What waiting was like, and what the forecasts were worth: from the first starts that the ledger remembers.

Pure. Owns the numbers behind `GET /v1/queue/analytics`.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Final

from headgate_contracts.events import Estimate
from headgate_contracts.shown import Analytics, HitRate, Waits
from headgate_contracts.vocabulary import Priority, Tier
from libs.capacity.paces import Wait
from libs.forecast.intervals import quantile

NAME: Final = "analytics"  # under which it is published


def analytics_of(waits: Iterable[Wait]) -> Analytics:
    """By priority and tier, and the forecast's worth by tier, that of all of them first, and by class."""
    known = list(waits)
    told = [wait for wait in known if wait.estimate is not None]
    by_tier = {tier: [wait for wait in told if wait.tier == tier] for tier in Tier}
    by_class = {each: [wait for wait in told if wait.shown_in is each] for each in Priority}
    return Analytics(
        since=min((wait.at for wait in known), default=None),
        waits=tuple(waits_by_kind((wait.priority, wait.tier, wait.wait_s) for wait in known)),
        forecast=(
            *([_hit_rate(told)] if told else ()),
            *(_hit_rate(of_tier, tier=tier) for tier, of_tier in by_tier.items() if of_tier),
        ),
        by_class=tuple(_hit_rate(of_class, priority=each) for each, of_class in by_class.items() if of_class),
    )


def waits_by_kind(waited: Iterable[tuple[str, str, float]]) -> list[Waits]:
    """From priority, tier and seconds of each to one line a kind, in the order of the classes."""
    found: defaultdict[tuple[Priority, Tier], list[float]] = defaultdict(list)
    for priority, tier, wait_s in waited:
        found[Priority(priority), Tier(tier)].append(wait_s)
    kinds = [(priority, tier) for priority in Priority for tier in Tier if (priority, tier) in found]
    return [_waits(priority, tier, sorted(found[priority, tier])) for priority, tier in kinds]


def is_hit(estimate: Estimate, wait_s: float) -> bool:
    """Whether the wait lay inside what was shown, to the second in which it was shown."""
    return estimate.lower_bound <= round(wait_s) <= estimate.upper_bound


def _waits(priority: Priority, tier: Tier, ordered: Sequence[float]) -> Waits:
    return Waits(
        priority=priority,
        tier=tier,
        count=len(ordered),
        mean=round(fmean(ordered), 3),
        p50=round(quantile(ordered, 0.5), 3),
        p90=round(quantile(ordered, 0.9), 3),
        p99=round(quantile(ordered, 0.99), 3),
    )


def _hit_rate(told: Sequence[Wait], *, tier: Tier | None = None, priority: Priority | None = None) -> HitRate:
    pairs = [(wait.estimate, wait.wait_s) for wait in told if wait.estimate is not None]
    return HitRate(
        tier=tier,
        priority=priority,
        count=len(pairs),
        hit_rate=round(fmean(is_hit(estimate, wait_s) for estimate, wait_s in pairs), 4),
        error=round(fmean(abs(wait_s - estimate.estimate_seconds) for estimate, wait_s in pairs), 3),
    )
