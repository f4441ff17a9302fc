"""The fold of the whole log, held in memory: what every process that folds the view knows by itself.

Owns the jobs that are unfinished or ended lately, and what operators ordered. `apply` turns one record of the log into
the change it makes to the view. It never raises on a strange record: one bad record must not halt the queue, so it is
stepped over and complained of. Refuses to ask anybody anything: the log and the policy are all it knows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol, cast

from headgate_contracts import ContractError, Event, Job, JobEvent, UnknownEvent, advance, step_over
from headgate_contracts.events import (
    JobData,
    JobQueued,
    LeaseReleased,
    LimitSet,
    QueuePaused,
    QueueResumed,
    SchedulerCommitted,
)
from libs.capacity.projection import defaults_of, epoch_ms, row_of
from libs.capacity.rows import Change, FreeLease, Order, Pause, Resume, Seed, SetLimit, Standing
from libs.policy import Policy

EARLY_KEPT = timedelta(hours=1)  # a reservation is long gone by then, so its job will never begin


class LogRecord(Protocol):
    """One message of the log, decoded. What is neither event nor unknown event could not be read."""

    @property
    def seq(self) -> int: ...
    @property
    def at(self) -> datetime: ...
    @property
    def event(self) -> object: ...


@dataclass(slots=True)
class Orders:
    """What holds for more than one job: set by operators and by first submissions."""

    arrivals: int = 0
    tiers: dict[str, str] = field(default_factory=dict[str, str])
    limits: dict[str, int] = field(default_factory=dict[str, int])
    pauses: dict[str, Pause] = field(default_factory=dict[str, Pause])


@dataclass(slots=True)
class Ledger:
    """The log, added up to `applied`."""

    policy: Policy
    applied: int = 0
    jobs: dict[str, Job] = field(default_factory=dict[str, Job])
    passed: dict[str, int] = field(default_factory=dict[str, int])
    early: dict[str, tuple[int, datetime]] = field(default_factory=dict[str, tuple[int, datetime]])
    orders: Orders = field(default_factory=Orders)
    _ended: deque[tuple[datetime, str]] = field(default_factory=deque[tuple[datetime, str]])
    _defaults: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self._defaults = defaults_of(self.policy)
        ended = sorted((job.updated_at, job.id) for job in self.jobs.values() if job.status.is_end)
        self._ended.extend(ended)

    def apply(self, record: LogRecord) -> Change:
        """Advance by one record; what it does to the view."""
        prev, self.applied = self.applied, record.seq
        self._forget(record.at)
        event = record.event
        try:
            match event:
                case Event(data=JobData()):
                    return self._fold_job(cast(JobEvent, event), record, prev)
                case Event(data=SchedulerCommitted()):
                    return Change(seq=record.seq, prev=prev)
                case Event(data=act):
                    return Change(seq=record.seq, prev=prev, order=self._fold_act(act, record.at))
                case UnknownEvent(job_id=str(job_id)):
                    job = step_over(self.jobs.get(job_id), event, seq=record.seq, at=record.at)
                    return self._keep(job, Change(seq=record.seq, prev=prev))
                case _:
                    return Change(seq=record.seq, prev=prev, complaint=f"stepped over: {event}")
        except ContractError as error:
            return Change(seq=record.seq, prev=prev, complaint=f"no legal event, stepped over: {error}")

    def seeds(self) -> Iterator[Seed]:
        """Every job as a new view needs it."""
        for job in self.jobs.values():
            yield Seed(row_of(job, self.policy), self.passed.get(job.id, 0))

    def standing(self) -> Standing:
        """Everything else a new view needs."""
        orders = self.orders
        return Standing(
            arrivals=orders.arrivals,
            tiers=dict(orders.tiers),
            limits=dict(orders.limits),
            defaults=self._defaults,
            pauses=tuple(orders.pauses.values()),
        )

    def _fold_job(self, event: JobEvent, record: LogRecord, prev: int) -> Change:
        before = self.jobs.get(event.data.job_id)
        job = advance(before, event, seq=record.seq, at=record.at)
        change = Change(seq=record.seq, prev=prev)
        if before is None:
            change = Change(seq=record.seq, prev=prev, passed_before=self._begin(job))
        if isinstance(event.data, JobQueued):
            self._count_passed(event.data, record.at)
            return self._keep(job, change, passed=event.data.passed)
        return self._keep(job, change)

    def _begin(self, job: Job) -> int:
        """A job's first event: its user's tier, the limits it brings, and how often it was passed already."""
        self.orders.tiers[job.user_id] = job.submission.tier.value
        for group in job.submission.groups:
            short = f"group/{group.name.rpartition(':')[2]}"
            if group.limit is not None and group.name not in self._defaults and short not in self._defaults:
                self.orders.limits.setdefault(group.name, group.limit)
        passed, _ = self.early.pop(job.id, (0, None))
        if passed:
            self.passed[job.id] = passed
        return passed

    def _count_passed(self, data: JobQueued, at: datetime) -> None:
        self.orders.arrivals = max(self.orders.arrivals, data.arrival)
        for job_id in data.passed:
            job = self.jobs.get(job_id)
            if job is None:
                count, _ = self.early.get(job_id, (0, at))
                self.early[job_id] = (count + 1, at)
            elif not job.status.is_end:
                self.passed[job_id] = self.passed.get(job_id, 0) + 1

    def _keep(self, job: Job, change: Change, *, passed: tuple[str, ...] = ()) -> Change:
        self.jobs[job.id] = job
        if job.status.is_end:
            self.passed.pop(job.id, None)
            self._ended.append((job.updated_at, job.id))
        return replace(change, row=row_of(job, self.policy), passed=passed)

    def _fold_act(self, act: object, at: datetime) -> Order | None:
        orders = self.orders
        match act:
            case QueuePaused():
                pause = Pause(act.scope, act.by, act.reason, epoch_ms(at))
                orders.pauses[act.scope] = pause
                return pause
            case QueueResumed():
                orders.pauses.pop(act.scope, None)
                return Resume(act.scope)
            case LimitSet():
                orders.limits[act.group] = act.limit
                return SetLimit(act.group, act.limit)
            case LeaseReleased():
                return FreeLease(act.group, act.lease)
            case _:
                return None

    def _forget(self, now: datetime) -> None:
        """By the log's own clock, so that every fold of the same records holds the same jobs."""
        kept = timedelta(days=self.policy.retention.view_days)
        while self._ended and self._ended[0][0] < now - kept:
            self.jobs.pop(self._ended.popleft()[1], None)
        for job_id in [job_id for job_id, (_, at) in self.early.items() if at < now - EARLY_KEPT]:
            del self.early[job_id]
