"""What the leader has worked out and every replica shows: who starts when, and what a new job would meet.

    start of a queued job ──────────────────────────────────────────┐
                                                                    ├──► estimate, with the spread of past errors
    lines of its pool and of its full groups ── what all offer ─────┘

Pure. Refuses to run anything: that is `run`. It is no fact and goes with the view; without it the plain formula is
shown.
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
from libs.capacity.scopes import scopes_of
from libs.forecast.errors import Band, Spread
from libs.forecast.lines import WaitingLine
from libs.forecast.plain import average_over, confidence_at, estimate_between, first_averages, plain_estimate
from libs.policy import Policy

NAME: Final = "forecast"  # under which it is published
SHAPE: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRequest:
    """A job that somebody asks an estimate for. `slots`: those of its pool, 0 where the asker does not know."""

    pool: str
    tier: str
    score: int
    position: int
    groups: tuple[str, ...]
    slots: int = 0
    workflow: str | None = None


def wanted_of(job: Job, *, score: int, position: int, slots: int = 0) -> EstimateRequest:
    """A job of the log, where it stands now."""
    asked = job.submission
    return EstimateRequest(
        pool=asked.pool,
        tier=asked.tier.value,
        score=score,
        position=position,
        groups=groups_of(job),
        slots=slots,
        workflow=asked.workflow,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What several runs say together. A start is null where nothing will start the job as things stand: paused, or no
    worker."""

    policy: Policy = field(repr=False)
    made_ms: int | None = None  # null: nothing was run, the plain formula is all there is
    averages: Mapping[str, float] = field(default_factory=dict[str, float])  # tier → seconds
    queued: Mapping[str, int] = field(default_factory=dict[str, int])  # tier → jobs
    starts: Mapping[str, int | None] = field(default_factory=dict[str, "int | None"])  # ms since it was made
    lines: Mapping[str, WaitingLine] = field(default_factory=dict[str, WaitingLine])
    paused: frozenset[str] = frozenset()  # scopes
    spread: Spread = field(default_factory=Spread)

    def average_s(self, queued: Mapping[str, int] | None = None, *, tier: str) -> float:
        """How long a job takes, over the tiers of those queued."""
        averages = {**first_averages(self.policy), **self.averages}
        return average_over(averages, self.queued if queued is None else queued, tier=tier)

    def plain(self, wanted: EstimateRequest) -> Estimate:
        """What the plain formula says."""
        average_s = self.average_s(tier=wanted.tier)
        return plain_estimate(average_s=average_s, position=wanted.position, workers=wanted.slots, policy=self.policy)

    def estimate_of(self, job_id: str, wanted: EstimateRequest, *, now_ms: int) -> Estimate | None:
        """When this queued job starts; null where nothing will start it."""
        if self.made_ms is None or job_id not in self.starts:
            return self.estimate_new(wanted, now_ms=now_ms)
        start_ms = self.starts[job_id]
        return None if start_ms is None else self._estimate(self.made_ms + start_ms, wanted, now_ms=now_ms)

    def estimate_new(self, wanted: EstimateRequest, *, now_ms: int) -> Estimate | None:
        """When a job would start that the runs did not know; null where nothing will start it."""
        if self.made_ms is None:
            return self.plain(wanted)
        names = (name for name in (f"pool:{wanted.pool}", *wanted.groups) if name in self.lines)
        offers = [self.lines[name].offer(wanted.score) for name in names]
        known = [start_ms for start_ms in offers if start_ms is not None]
        if not known or len(known) < len(offers) or any(scope in self.paused for scope in _scopes(wanted)):
            return None
        return self._estimate(self.made_ms + max(known) + self._strangers_ms(wanted), wanted, now_ms=now_ms)

    def _strangers_ms(self, wanted: EstimateRequest) -> int:
        """A crowd that came since the runs is not in them: each of those ahead takes an average job's share."""
        line = self.lines.get(f"pool:{wanted.pool}", WaitingLine())
        share = line.strangers(wanted.score, wanted.position)
        return round(share * self.average_s(tier=wanted.tier) * 1000)

    def _estimate(self, start_ms: int, wanted: EstimateRequest, *, now_ms: int) -> Estimate:
        wait_s = max(0, start_ms - now_ms) / 1000
        confidence = confidence_at(wanted.position, self.policy)
        return estimate_between(wait_s, self.spread.around(wait_s), confidence=confidence)

    # ── as it is published ────────────────────────────────────────────────────

    def dump(self) -> str:
        said: dict[str, Any] = {
            "shape": SHAPE,
            "made_ms": self.made_ms,
            "averages": {tier: round(average_s, 3) for tier, average_s in self.averages.items()},
            "queued": dict(self.queued),
            "starts": dict(self.starts),
            "lines": {name: [line.places, line.ends, line.slots, line.idle] for name, line in self.lines.items()},
            "paused": sorted(self.paused),
            "spread": [self.spread.turn_s, [(each.upto_s, each.low, each.high) for each in self.spread.bands]],
        }
        return json.dumps(said, separators=(",", ":"))

    @classmethod
    def load(cls, text: str | None, policy: Policy) -> Forecast:
        """What was published. Of nothing, or of another version's shape, the plain formula is left."""
        said: dict[str, Any] = json.loads(text) if text else {}
        if said.get("shape") != SHAPE:
            return cls(policy=policy)
        turn_s, bands = said["spread"]
        return cls(
            policy=policy,
            made_ms=said["made_ms"],
            averages=said["averages"],
            queued=said["queued"],
            starts=said["starts"],
            lines={name: _line(*parts) for name, parts in said["lines"].items()},
            paused=frozenset(said["paused"]),
            spread=Spread(turn_s, tuple(Band(*band) for band in bands), policy.forecast.spread),
        )


def _line(places: list[list[int]], ends: dict[str, int], slots: int, idle: int) -> WaitingLine:
    """JSON knows no tuples, and no numbers as keys."""
    return WaitingLine(
        tuple((score, start_ms) for score, start_ms in places),
        {int(number): end_ms for number, end_ms in ends.items()},
        slots,
        idle,
    )


def _scopes(wanted: EstimateRequest) -> tuple[str, ...]:
    owners = [group for group in wanted.groups if group.startswith(("user:", "project:"))]
    flow = [f"workflow:{wanted.workflow}"] if wanted.workflow else []
    return scopes_of(wanted.score // CLASS_STEP, wanted.pool, (*owners, *flow))
