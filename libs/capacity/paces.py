"""How long jobs take and how long they waited, as the log tells it: what the forecast learns from.

    ready                        its duration moves the average of its tier
    a slot comes free            the time it was held is one of the last of its tier
    the first start of a job     one wait, beside the estimate that was shown

Owns the bounds: two hundred times a tier, the last two thousand waits. Times are the log's own.
Refuses to estimate anything.
"""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from headgate_contracts import Job
from headgate_contracts.events import Estimate, JobData, JobDispatched, JobGivenBack, JobReady
from headgate_contracts.vocabulary import Priority
from libs.policy import Policy

HOLDS_MAX: Final = 200  # of one tier: enough for quantiles
WAITS_MAX: Final = 2000


@dataclass(frozen=True, slots=True)
class Pace:
    """How long jobs of one tier take. `average_s` moves with each that ended well, from the first guess on.

    `holds` are the last times for which slots were held, oldest first: from `dispatched` to what ended the attempt.
    Attempts that were given back are not among them: their work goes on. What a run goes on from counts with the time
    that it took before; where that is forgotten, the run tells nothing.
    """

    average_s: float
    count: int = 0  # how many durations are in the average
    holds: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """The first start of a job, and the estimate that was shown when it entered the queue."""

    at: datetime
    tier: str
    priority: str  # when it started: it may have risen meanwhile
    pool: str
    wait_s: float  # since it entered the queue
    estimate: Estimate | None = None
    asked: str = ""  # the priority by which the estimate was shown; of a wait from before this was noted, none

    @property
    def shown_in(self) -> Priority:
        return Priority(self.asked or self.priority)


@dataclass(slots=True)
class Paces:
    """What is known of durations and waits at one place of the log."""

    by_tier: dict[str, Pace] = field(default_factory=dict[str, Pace])
    waits: deque[Wait] = field(default_factory=lambda: deque[Wait](maxlen=WAITS_MAX))

    def learn(self, before: Job, data: JobData, *, at: datetime, policy: Policy, earlier_s: float | None = 0.0) -> None:
        """From one event of a job that was there before it. `earlier_s`: what the stages took that an earlier job
        finished for it; null: not known."""
        if isinstance(data, JobDispatched):
            if not before.attempt and before.standing is not None:
                self.waits.append(_wait(before, at))
        elif isinstance(data, JobGivenBack) or earlier_s is None:
            return
        elif before.status.is_running and not data.status.is_running:
            self._slots_came_free(before, data, at=at, policy=policy, earlier_s=earlier_s)

    def _slots_came_free(self, before: Job, data: JobData, *, at: datetime, policy: Policy, earlier_s: float) -> None:
        tier = before.submission.tier
        pace = self.by_tier.get(tier.value) or Pace(policy.tier_limits(tier).first_duration_s)
        average_s, count = pace.average_s, pace.count
        if isinstance(data, JobReady):
            alpha = policy.forecast.alpha
            average_s, count = alpha * (data.duration_s + earlier_s) + (1 - alpha) * average_s, count + 1
        held_s = _seconds(before.dispatched_at or at, at) + (0.0 if before.confirmations else earlier_s)
        self.by_tier[tier.value] = Pace(average_s, count, (*pace.holds, held_s)[-HOLDS_MAX:])


def _wait(job: Job, at: datetime) -> Wait:
    assert job.standing is not None
    return Wait(
        at=at,
        tier=job.submission.tier.value,
        priority=job.priority.value,
        pool=job.submission.pool,
        wait_s=_seconds(job.standing.entered_at, at),
        estimate=job.standing.estimate,
        asked=job.submission.priority.value,
    )


def _seconds(since: datetime, until: datetime) -> float:
    return max(0.0, (until - since).total_seconds())
