"""From the recorded events to a history that can be replayed, and to the waits that were.

Owns what of the log is a job's own (when it came, how long it stayed in its slots, how long its user thought) and what
followed from the rules (when it started). Reads every record once, in order, and forgets it. Pure.

Not replayed: places that operators gave by hand, and submissions that were refused, which are in no log.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, cast

from headgate_contracts import ContractError, Event, Job, JobEvent, Status, UnknownEvent, advance, step_over
from headgate_contracts.events import (
    JobAwaitingConfirmation,
    JobData,
    JobDispatched,
    JobGivenBack,
    JobQueued,
    JobReprioritized,
    SchedulerCommitted,
)
from headgate_contracts.vocabulary import ChangeReason
from libs.capacity.ledger import LogRecord
from libs.capacity.orders import Orders
from libs.capacity.projection import epoch_ms
from libs.capacity.rows import FreeLease
from libs.forecast.lives import Life, RecordedAct, RecordedPast, Staffed, Stay
from libs.forecast.machine import PoolSlots
from libs.forecast.replay import Started
from libs.forecast.run import Holds

BY_HAND: Final = frozenset({ChangeReason.USER, ChangeReason.OPERATOR})


@dataclass(slots=True)
class Trail:
    """What is kept of one job."""

    job: Job
    stays: list[Stay] = field(default_factory=list[Stay])
    ranks: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    entered: datetime | None = None
    away_since: datetime | None = None  # it asked its user then
    started: Started | None = None


class Recorder:
    """Reads the log once, oldest first."""

    def __init__(self) -> None:
        self._trails: dict[str, Trail] = {}
        self._acts: list[RecordedAct] = []
        self._staffed: list[Staffed] = []
        self._slots: dict[str, int] = {}
        self._orders = Orders()
        self._last: datetime | None = None

    def take(self, records: Iterable[LogRecord]) -> None:
        """Records that cannot be followed are stepped over, as everywhere."""
        for record in records:
            self._last = record.at
            try:
                self._take(record)
            except ContractError:
                continue

    def history(self, holds: Holds, *, since_ms: int = 0) -> RecordedPast:
        """What came from outside. Jobs that were over before `since_ms` are left out; what goes on is dealt an end."""
        kept = [trail for trail in self._trails.values() if _is_of(trail.job, since_ms)]
        phases = {(job.submission.workflow, job.submission.phase): job.id for job in (trail.job for trail in kept)}
        lives = (self._life(trail, phases, holds) for trail in kept)
        return RecordedPast(lives=tuple(lives), acts=tuple(self._acts), staffed=self._staffed_from_the_start())

    @property
    def jobs(self) -> int:
        """How many there are."""
        return len(self._trails)

    def starts(self) -> tuple[Started, ...]:
        """Each job's first start, as it was."""
        return tuple(trail.started for trail in self._trails.values() if trail.started is not None)

    # ── one record ────────────────────────────────────────────────────────────

    def _take(self, record: LogRecord) -> None:
        match record.event:
            case Event(data=JobData()) as event:
                self._take_job(cast(JobEvent, event), record)
                if isinstance(event.data, JobDispatched) and event.data.alone is not None:
                    self._staff({event.data.pool: event.data.alone.slots}, record.at)
            case Event(data=SchedulerCommitted(slots=slots)):
                self._staff(slots, record.at)
            case Event(data=act):
                order = self._orders.fold(act, record.at)
                if order is not None and not isinstance(order, FreeLease):
                    self._acts.append(RecordedAct(epoch_ms(record.at), order))
            case UnknownEvent(job_id=str(job_id)) as event if job_id in self._trails:
                trail = self._trails[job_id]
                trail.job = step_over(trail.job, event, seq=record.seq, at=record.at)
            case _:
                pass

    def _staff(self, counted: Mapping[str, int], at: datetime) -> None:
        for pool, slots in counted.items():
            if self._slots.get(pool) != slots:
                self._slots[pool] = slots
                self._staffed.append(Staffed(epoch_ms(at), PoolSlots(pool, slots)))

    def _take_job(self, event: JobEvent, record: LogRecord) -> None:
        data = event.data
        trail = self._trails.get(data.job_id)
        before = trail and trail.job
        job = advance(before, event, seq=record.seq, at=record.at)
        if trail is None or before is None:
            trail = self._trails[job.id] = Trail(job)
        else:
            trail.job = job
            _freed(trail, before, data, record.at)
        _told(trail, before, data, record.at)

    # ── the whole ─────────────────────────────────────────────────────────────

    def _life(self, trail: Trail, phases: dict[tuple[str | None, int | None], str], holds: Holds) -> Life:
        job, asked = trail.job, trail.job.submission
        before = asked.workflow and asked.phase and phases.get((asked.workflow, asked.phase - 1))
        return Life(
            job=job.id,
            user=job.user_id,
            project=job.project_scope,
            tier=asked.tier.value,
            priority=asked.priority.value,
            at_ms=epoch_ms(job.created_at),
            pool=asked.pool,
            groups=tuple((group.name, group.limit) for group in asked.groups),
            workflow=asked.workflow,
            after=before or None,
            run_at_ms=asked.run_at and epoch_ms(asked.run_at),
            stays=self._stays(trail, holds),
            ranks=tuple(trail.ranks),
            patience_s=_patience_s(trail),
            refunded=job.status.is_end and job.quota_day is None,
        )

    def _stays(self, trail: Trail, holds: Holds) -> tuple[Stay, ...]:
        """The last of a job that has ended is over with it. One that goes on is dealt what is still to come."""
        job, stays, tier = trail.job, trail.stays, trail.job.submission.tier.value
        if job.status.is_running and self._last is not None:
            age_s = (self._last - (job.dispatched_at or self._last)).total_seconds()
            return (*stays, Stay(age_s + holds.hold_s(job.id, tier, age_s=age_s)))
        if job.status is Status.QUEUED and stays:
            return (*stays, Stay(holds.hold_s(job.id, tier)))
        return (*stays[:-1], Stay(stays[-1].hold_s)) if stays else ()

    def _staffed_from_the_start(self) -> tuple[Staffed, ...]:
        """Slots are told with the first start: they were there when the job came."""
        pools: set[str] = set()
        staffed: list[Staffed] = []
        for each in self._staffed:
            first = each.slots.pool not in pools
            pools.add(each.slots.pool)
            staffed.append(Staffed(0, each.slots) if first else each)
        return tuple(staffed)


def _freed(trail: Trail, before: Job, data: JobData, at: datetime) -> None:
    """Out of its slots; or back in the queue, after its user has answered."""
    if before.status.is_running and not data.status.is_running:
        held_s = (at - (before.dispatched_at or at)).total_seconds()
        trail.stays.append(Stay(held_s, away_s=0.0 if isinstance(data, JobGivenBack) else None))
        trail.away_since = at if isinstance(data, JobAwaitingConfirmation) else None
    elif trail.away_since is not None and data.status is Status.QUEUED:
        trail.stays[-1] = Stay(trail.stays[-1].hold_s, away_s=(at - trail.away_since).total_seconds())
        trail.away_since = None


def _told(trail: Trail, before: Job | None, data: JobData, at: datetime) -> None:
    """When it entered the queue, started, and was given another priority by somebody."""
    job = trail.job
    if isinstance(data, JobQueued):
        trail.entered = at
    elif isinstance(data, JobReprioritized) and data.reason in BY_HAND:
        trail.ranks.append((epoch_ms(at), data.to.value))
    elif isinstance(data, JobDispatched) and before is not None and not before.attempt:
        wait_s = (at - (trail.entered or at)).total_seconds()
        tier = job.submission.tier.value
        trail.started = Started(job.id, tier, before.priority.value, epoch_ms(at), wait_s)


def _patience_s(trail: Trail) -> float | None:
    """How long it was in the queue that it left without a start."""
    if trail.started is not None or not trail.job.status.is_end:
        return None
    return (trail.job.updated_at - trail.entered).total_seconds() if trail.entered else 0.0


def _is_of(job: Job, since_ms: int) -> bool:
    return not job.status.is_end or epoch_ms(job.updated_at) >= since_ms
