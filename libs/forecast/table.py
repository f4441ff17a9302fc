"""What the leader has worked out and every replica shows: who starts when, and what a new job would meet.

    start of a queued job ──────────────────────────────────────────┐
                                                                    ├──► estimate, with the spread of past errors
    lines of its pool and of its full groups ── what all offer ─────┘

Pure. Refuses to run anything: that is `run`. It is no fact and goes with the view; without it, and before any job has
ended, nothing is told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headgate_contracts import Job
from headgate_contracts.events import Estimate
from libs.capacity.projection import groups_of
from libs.capacity.rows import CLASS_STEP
from libs.capacity.scopes import OWNERS, scopes_of
from libs.forecast.intervals import Band, Spread
from libs.forecast.lines import WaitingLine
from libs.forecast.plain import average_over, confidence_at, estimate_between, first_averages
from libs.policy import Policy

NAME: Final = "forecast"  # under which it is published
SHAPE: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRequest:
    """A job that somebody asks an estimate for. `full`: groups of it in which it would get no slot now."""

    pool: str
    tier: str
    score: int
    position: int
    groups: tuple[str, ...]
    workflow: str | None = None
    full: tuple[str, ...] = ()


def wanted_of(job: Job, *, score: int, position: int) -> EstimateRequest:
    """A job of the log, where it stands now."""
    asked = job.submission
    return EstimateRequest(
        pool=asked.pool,
        tier=asked.tier.value,
        score=score,
        position=position,
        groups=groups_of(job),
        workflow=asked.workflow,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What several runs say together. A start is null where nothing will start the job as things stand: paused, or no
    worker."""

    policy: Policy = field(repr=False)
    made_ms: int | None = None  # null: nothing was run
    learned: bool = False  # from jobs that ended, which not all that run have outlasted: more than a guess
    averages: Mapping[str, float] = field(default_factory=dict[str, float])  # tier → seconds
    queued: Mapping[str, int] = field(default_factory=dict[str, int])  # tier → jobs
    starts: Mapping[str, int | None] = field(default_factory=dict[str, "int | None"])  # ms since it was made
    lines: Mapping[str, WaitingLine] = field(default_factory=dict[str, WaitingLine])
    paused: frozenset[str] = frozenset()  # scopes
    spread: Spread = field(default_factory=Spread)
    spreads: Mapping[int, Spread] = field(default_factory=dict[int, Spread])  # class → its own, where it has one

    def average_s(self, queued: Mapping[str, int] | None = None, *, tier: str) -> float:
        """How long a job takes, over the tiers of those queued."""
        averages = {**first_averages(self.policy), **self.averages}
        return average_over(averages, self.queued if queued is None else queued, tier=tier)

    def estimate_of(self, job_id: str, wanted: EstimateRequest, *, now_ms: int) -> Estimate | None:
        """When this queued job starts; null where nothing will start it, or nobody knows."""
        if job_id not in self.starts:
            return self.estimate_new(wanted, now_ms=now_ms)
        return self._estimate(self.starts[job_id], wanted, now_ms=now_ms)

    def estimate_new(self, wanted: EstimateRequest, *, now_ms: int) -> Estimate | None:
        """When a job would start that the runs did not know; null where nothing will start it, or nobody knows."""
        return self._estimate(self._offer(wanted), wanted, now_ms=now_ms, crowd_ms=self._strangers_ms(wanted))

    def sooner(self, job_id: str, wanted: EstimateRequest) -> int:
        """How many of the jobs ahead start before this one. Whom no run knew is taken for one of them."""
        ahead, line = wanted.position - 1, self._line(wanted)
        start_ms = self.starts[job_id] if job_id in self.starts else self._offer(wanted)
        return ahead if start_ms is None else min(ahead, line.sooner(wanted.score, wanted.position, start_ms=start_ms))

    def _offer(self, wanted: EstimateRequest) -> int | None:
        """When the pool and every group of it has a slot for a new one. A group that is full now and was not in any
        run offers nothing that is known."""
        names = {f"pool:{wanted.pool}", *wanted.full, *(group for group in wanted.groups if group in self.lines)}
        if not names <= set(self.lines) or any(scope in self.paused for scope in _scopes(wanted)):
            return None
        offers = [self.lines[name].offer(wanted.score) for name in names]
        known = [start_ms for start_ms in offers if start_ms is not None]
        return max(known) if len(known) == len(offers) else None

    def _line(self, wanted: EstimateRequest) -> WaitingLine:
        return self.lines.get(f"pool:{wanted.pool}", WaitingLine())

    def _strangers_ms(self, wanted: EstimateRequest) -> int:
        """A crowd that came since the runs is not in them: each of those ahead takes an average job's share."""
        share = self._line(wanted).strangers(wanted.score, wanted.position)
        return round(share * self.average_s(tier=wanted.tier) * 1000)

    def _estimate(
        self, start_ms: int | None, wanted: EstimateRequest, *, now_ms: int, crowd_ms: int = 0
    ) -> Estimate | None:
        """The crowd may be held by limits of its own, so it moves the lower end not at all."""
        if self.made_ms is None or start_ms is None or not self.learned:
            return None
        soonest_s = max(0, self.made_ms + start_ms - now_ms) / 1000
        wait_s = max(0, self.made_ms + start_ms + crowd_ms - now_ms) / 1000
        spread = self.spreads.get(wanted.score // CLASS_STEP, self.spread)
        bounds_s = (spread.around(soonest_s)[0], spread.around(wait_s)[1])
        return estimate_between(wait_s, bounds_s, confidence=confidence_at(wanted.position, self.policy))

    # ── as it is published ────────────────────────────────────────────────────

    def dump(self) -> str:
        said: dict[str, Any] = {
            "shape": SHAPE,
            "made_ms": self.made_ms,
            "learned": self.learned,
            "averages": {tier: round(average_s, 3) for tier, average_s in self.averages.items()},
            "queued": dict(self.queued),
            "starts": dict(self.starts),
            "lines": {name: [line.places, line.ends, line.slots, line.idle] for name, line in self.lines.items()},
            "paused": sorted(self.paused),
            "spread": _spread_as_json(self.spread),
            "spreads": {number: _spread_as_json(each) for number, each in self.spreads.items()},
        }
        return json.dumps(said, separators=(",", ":"))

    @classmethod
    def load(cls, text: str | None, policy: Policy) -> Forecast:
        """What was published. Of nothing, or of another version's shape, nothing is known."""
        said: dict[str, Any] = json.loads(text) if text else {}
        if said.get("shape") != SHAPE:
            return cls(policy=policy)
        fixed = policy.forecast.spread
        return cls(
            policy=policy,
            made_ms=said["made_ms"],
            learned=said["learned"],
            averages=said["averages"],
            queued=said["queued"],
            starts=said["starts"],
            lines={name: _line(*parts) for name, parts in said["lines"].items()},
            paused=frozenset(said["paused"]),
            spread=_spread(*said["spread"], fixed=fixed),
            spreads={int(number): _spread(*each, fixed=fixed) for number, each in said["spreads"].items()},
        )


def _spread_as_json(spread: Spread) -> list[Any]:
    return [spread.turn_s, [(each.upto_s, each.low, each.high) for each in spread.bands]]


def _spread(turn_s: float, bands: list[list[float]], *, fixed: float) -> Spread:
    return Spread(turn_s, tuple(Band(*band) for band in bands), fixed)


def _line(places: list[list[int]], ends: dict[str, int], slots: int, idle: int) -> WaitingLine:
    """JSON knows no tuples, and no numbers as keys."""
    return WaitingLine(
        tuple((score, start_ms) for score, start_ms in places),
        {int(number): end_ms for number, end_ms in ends.items()},
        slots,
        idle,
    )


def _scopes(wanted: EstimateRequest) -> tuple[str, ...]:
    owners = [group for group in wanted.groups if group.startswith(OWNERS)]
    flow = [f"workflow:{wanted.workflow}"] if wanted.workflow else []
    return scopes_of(wanted.score // CLASS_STEP, wanted.pool, (*owners, *flow))
