"""Jobs and orders as a ledger would hand them to a view, in the tests' own words.

Owns the numbers the tests begin with, the rows and requests of jobs, and what orders add up to. Refuses to ask a view.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from libs.capacity.answers import HeldLease, Request
from libs.capacity.rows import OperatorOrder, Pause, Resume, Row, SetLimit, StandingOrders, UnsetLimit

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
TODAY: Final = 20_000
NOW_MS: Final = TODAY * DAY_MS + 8 * HOUR_MS
LEASE_MS: Final = 30_000
INPUT_MS: Final = 60_000  # how long an input outlives its job
BOOSTS: Final = {"bootstrapper": 0, "partner": 2, "cto_scale": 5}
DEFAULTS: Final = {
    "user/bootstrapper": 2,
    "user/partner": 3,
    "user/cto_scale": 10,
    "project/bootstrapper": 2,
    "project/partner": 3,
    "project/cto_scale": 5,
    "workflows": 5,
    "llm:ollama": 4,
    "llm:global": 12,
    "group": 1,
}
IN_QUEUE: Final = "queued"
ENDS: Final = frozenset({"ready", "failed", "cancelled"})
Details = dict[str, Any]


@dataclass(slots=True)
class Orders:
    """What a ledger would know beside the jobs, in the tests' own words."""

    defaults: dict[str, int] = field(default_factory=dict[str, int])
    tiers: dict[str, str] = field(default_factory=dict[str, str])
    limits: dict[str, int] = field(default_factory=dict[str, int])
    pauses: dict[str, Pause] = field(default_factory=dict[str, Pause])
    arrivals: int = 0

    def fold(self, row: Row | None, order: OperatorOrder | None, *, is_new: bool) -> None:
        if row is not None:
            self.arrivals = max(self.arrivals, row.arrival or 0)
            if is_new:
                self._begin(row)
        match order:
            case Pause(scope):
                self.pauses[scope] = order
            case Resume(scope):
                self.pauses.pop(scope, None)
            case SetLimit(group, limit):
                self.limits[group] = limit
            case UnsetLimit(group):
                self.limits.pop(group, None)
            case _:
                pass

    def _begin(self, row: Row) -> None:
        self.tiers[row.user] = row.tier
        for group, limit in row.limits.items():
            if group not in self.defaults and f"group/{group.split(':')[-1]}" not in self.defaults:
                self.limits.setdefault(group, limit)

    def standing(self) -> StandingOrders:
        return StandingOrders(self.arrivals, self.tiers, self.limits, self.defaults, tuple(self.pauses.values()))

    def limit(self, group: str, row: Row | None) -> int:
        kind, _, name = group.partition(":")
        defaults, last = self.defaults, group.rsplit(":", maxsplit=1)[-1]
        if group in self.limits:
            return self.limits[group]
        if kind == "user":
            return defaults.get(f"user/{self.tiers[name]}", defaults["group"])
        if kind == "project" and row is not None:
            return defaults.get(f"project/{row.tier}", defaults["group"])
        if kind == "stage" and last.isdigit():
            return int(last)
        by_last_name = defaults.get(f"group/{last}") if kind == "group" else None
        return next(found for found in (defaults.get(group), by_last_name, defaults["group"]) if found is not None)


_WHO: Final[Details] = {"user": "ann", "project": "shop", "pool": "default", "class_number": 50, "workflow": None}
_BOUNDS: Final[Details] = {
    "takes_day": True,
    "per_day": 200,
    "horizon_days": 30,
    "cap": 100,
    "user_share": 50,
    "passed_bound": 10,
    "lapse_ms": 60_000,
}


def request(job: str, *, tier: str = "bootstrapper", **details: Any) -> Request:
    """What admission asks for a job with these details; what only its row has is left out."""
    of_row = {"groups", "gates", "limits", "input_bytes"}
    inputs = {job: details["input_bytes"]} if details.get("input_bytes") else {}
    asked = {**_WHO, **_BOUNDS, "boost": BOOSTS[tier], "inputs": inputs, **details}
    return Request(job=job, **{name: value for name, value in asked.items() if name not in of_row})


def row(
    job: str,
    *,
    tier: str = "bootstrapper",
    groups: tuple[str, ...] = (),
    gates: tuple[str, ...] = (),
    limits: Mapping[str, int] | None = None,
    **details: Any,
) -> Row:
    """A job's row before anything is known of its place; what only its request has is left out."""
    who = {name: details.get(name, plain) for name, plain in _WHO.items()}
    own = (f"user:{who['user']}", f"project:{who['project']}", *(("workflows",) if who["workflow"] else ()))
    return Row(
        id=job,
        status=IN_QUEUE,
        seq=0,
        first_seq=0,
        attempt=0,
        tier=tier,
        boost=details.get("boost", BOOSTS[tier]),
        arrival=None,
        place=None,
        entered_ms=None,
        groups=(*own, *groups),
        gates=gates,
        limits=limits or {},
        input_bytes=details.get("input_bytes", 0),
        job=f'{{"id":"{job}"}}',
        **who,
    )


def held(lease: str, *groups: str, owner: str) -> HeldLease:
    return HeldLease(lease, owner, groups)


def let_go(running: Row) -> Row:
    return replace(running, holder=None, started_ms=None, worker=None, cancelling=False)
