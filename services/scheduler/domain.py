"""What the scheduler writes about jobs, and in which order. Pure: clock, ids, places and limits are arguments.

    a timer that came due ──decide──► Decision ┐
                                               ├──compose──► Batch: frees, then what only tells, then what takes
    jobs that may start   ──start───► Decision ┘

Owns the words that users read when the scheduler ends a job. Refuses to choose who may start: that is the view's plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from headgate_contracts import Event, Job, JobEvent, Priority, Status, Writer
from headgate_contracts.envelope import CommitEvent
from headgate_contracts.events import (
    JobCancelled,
    JobConfirmationReminder,
    JobData,
    JobDispatched,
    JobFailed,
    JobGivenBack,
    JobQueued,
    JobReprioritized,
    SchedulerCommitted,
)
from headgate_contracts.vocabulary import ChangeReason, Fault, GivenBackReason, QueuedWhy
from libs.policy import Policy

BATCH_MAX: Final = 20  # jobs in one commit: a conflict on one of them costs the others one more turn
BY: Final = "scheduler"


class Due(StrEnum):
    """What can come due about a job."""

    LEASE = "lease"  # a running attempt was not heard of for a lease
    DEADLINE = "deadline"
    RELEASE = "release"
    QUEUE_TTL = "queue_ttl"
    CONFIRM_TIMEOUT = "confirm_timeout"
    REMIND = "remind"
    AGE = "age"
    FORGET = "forget"  # no event: the view drops a job that ended long ago


@dataclass(frozen=True, slots=True)
class Placement:
    """The place in the queue that is held for a job until its event is folded."""

    arrival: int
    place: int
    passed: tuple[str, ...]
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What a decision needs to know beside the job."""

    now: datetime
    policy: Policy
    debug_id: str  # the job's trace
    outage: bool = False  # nobody could hear its worker: the silence is not the worker's
    placement: Placement | None = None  # null: there is no room in the queue


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be written about a job, after the event it was last seen at."""

    job: Job
    data: JobData


@dataclass(frozen=True, slots=True)
class Batch:
    """One commit: the link of the chain, and the events it names, in order."""

    link: SchedulerCommitted
    decisions: tuple[Decision, ...]


def decide(kind: str, job: Job, *, given: Circumstances) -> Decision | None:
    """What follows from a timer that came due, or nothing where the job has moved on from what it was set for."""
    match kind, job.status:
        case (Due.LEASE, status) if status.is_running:
            data = _worker_gone(job, given)
        case (Due.DEADLINE, status) if status.is_running:
            data = _out_of_time(job, given)
        case Due.RELEASE, Status.SCHEDULED:
            data = _released(job, given)
        case Due.QUEUE_TTL, Status.QUEUED:
            data = _waited_too_long(job, given)
        case Due.CONFIRM_TIMEOUT, Status.AWAITING_CONFIRMATION:
            data = _unanswered(job, given)
        case Due.REMIND, Status.AWAITING_CONFIRMATION:
            data = _reminder(job, given)
        case Due.AGE, Status.QUEUED:
            data = _aged(job, given)
        case _:
            data = None
    return data and Decision(job, data)


def urgency(kind: str) -> int:
    """Which timers are looked at first where more came due than fit into one batch."""
    match kind:
        case Due.LEASE | Due.DEADLINE:
            return 0
        case Due.RELEASE:
            return 2
        case _:
            return 1


def start(job: Job, *, groups: tuple[str, ...], given: Circumstances) -> Decision:
    """A worker of the job's pool may claim it. It holds a slot of each of these groups from here on."""
    runs, asked = given.policy.runs, job.submission.run_timeout_s
    timeout_s = runs.timeout_s if asked is None else min(asked, runs.max_timeout_s)
    data = JobDispatched(
        **_of(job, Status.STARTING, attempt=job.attempt + 1),
        pool=job.submission.pool,
        groups=groups,
        deadline=given.now + timedelta(seconds=timeout_s),
    )
    return Decision(job, data)


def compose(
    due: Iterable[Decision],
    starts: Iterable[Decision],
    *,
    shard: str,
    leader: str,
    limits: Mapping[str, int],
    slots: Mapping[str, int],
) -> Batch | None:
    """One event a job, what frees before what takes, no more than fit; null where there is nothing to write."""
    chosen: dict[str, Decision] = {}
    starting = {decision.job.id: decision for decision in starts}
    for decision in sorted(due, key=lambda decision: _rank(decision.data)):
        if not (isinstance(decision.data, JobReprioritized) and decision.job.id in starting):
            chosen.setdefault(decision.job.id, decision)  # a job that starts now need not rise any more
    for job_id, decision in starting.items():
        chosen.setdefault(job_id, decision)
    decisions = tuple(chosen.values())[:BATCH_MAX]
    if not decisions:
        return None
    started = [decision.data for decision in decisions if isinstance(decision.data, JobDispatched)]
    link = SchedulerCommitted(
        shard=shard,
        leader=leader,
        jobs=tuple(decision.job.id for decision in decisions),
        limits={group: limits[group] for data in started for group in data.groups},
        slots={data.pool: slots[data.pool] for data in started},
    )
    return Batch(link, decisions)


def signed(decision: Decision, *, event_id: str, now: datetime) -> JobEvent:
    """The decision as the job's next event."""
    return Event(event_id, Writer.SCHEDULER, now, decision.data, decision.job.sequence + 1)


def linked(link: SchedulerCommitted, *, event_id: str, now: datetime) -> CommitEvent:
    """The link as the chain's next event."""
    return Event(event_id, Writer.SCHEDULER, now, link)


def _rank(data: JobData) -> int:
    match data:
        case JobGivenBack() | JobCancelled() | JobFailed():
            return 0
        case JobQueued():
            return 2
        case _:
            return 1


def _of(job: Job, status: Status, *, attempt: int | None = None) -> dict[str, Any]:
    """What every event says: whose job it is, and where it stands then."""
    return {
        "job_id": job.id,
        "user_id": job.user_id,
        "project_id": job.project_id,
        "status": status,
        "attempt": job.attempt if attempt is None else attempt,
    }


def _worker_gone(job: Job, given: Circumstances) -> JobData:
    """Given back, unless somebody waits for its end, or it has cost too many workers."""
    if job.cancel_requested_by is not None:
        return _cancelled(job)
    max_lost = given.policy.runs.max_lost
    if not given.outage and job.worker is not None and job.lost >= max_lost:
        summary = "The job's worker was lost too often."
        detail = f"It was lost {job.lost + 1} times; {max_lost} are allowed. The place of the day is given back."
        return _failed(job, given, summary=summary, detail=detail, fault=Fault.SYSTEM)
    reason = GivenBackReason.OUTAGE if given.outage else GivenBackReason.LOST
    return JobGivenBack(**_of(job, Status.QUEUED), reason=reason, finished_stages=job.finished_stages)


def _out_of_time(job: Job, given: Circumstances) -> JobData:
    if job.cancel_requested_by is not None:
        return _cancelled(job)
    detail = "The run was ended at its deadline. Ask for more time with run_timeout_s, where the limit allows it."
    return _failed(job, given, summary="The run took too long.", detail=detail, fault=Fault.TIMEOUT)


def _cancelled(job: Job) -> JobData:
    by = job.cancel_requested_by or BY
    return JobCancelled(**_of(job, Status.CANCELLED), by=by, reason="asked for while it ran; its worker is gone")


def _released(job: Job, given: Circumstances) -> JobData | None:
    placement = given.placement
    if placement is None:
        return None
    return JobQueued(
        **_of(job, Status.QUEUED),
        why=QueuedWhy.RELEASED,
        arrival=placement.arrival,
        place=placement.place,
        passed=placement.passed,
        position_original=placement.position,
        quota_day=job.quota_day,
    )


def _waited_too_long(job: Job, given: Circumstances) -> JobData:
    detail = f"It was to wait for at most {job.submission.queue_ttl_s} s (queue_ttl_s) and never started."
    return _failed(job, given, summary="The job waited too long in the queue.", detail=detail, fault=Fault.TIMEOUT)


def _unanswered(job: Job, given: Circumstances) -> JobData:
    summary = "Nobody answered in time whether the job should continue."
    detail = f"It asked after {job.iteration} iterations. Submit it again to go on from its finished work."
    return _failed(job, given, summary=summary, detail=detail, fault=Fault.TIMEOUT)


def _reminder(job: Job, given: Circumstances) -> JobData | None:
    if job.expires_at is None:
        return None
    left_s = (job.expires_at - given.now).total_seconds()
    hours_left = max(0, round(left_s / 3600))
    return JobConfirmationReminder(**_of(job, job.status), hours_left=hours_left)


def _aged(job: Job, given: Circumstances) -> JobData | None:
    """One class up, at its own place: in the new class too it stands by its arrival."""
    classes = list(Priority)  # highest first
    up = classes[max(0, classes.index(job.priority) - 1)]
    if up.class_number < given.policy.order.ageing_ceiling.class_number or up is job.priority or job.standing is None:
        return None
    return JobReprioritized(
        **_of(job, job.status),
        from_=job.priority,
        to=up,
        place=job.standing.place,
        by=BY,
        reason=ChangeReason.AGED,
    )


def _failed(job: Job, given: Circumstances, *, summary: str, detail: str, fault: Fault) -> JobData:
    status = _of(job, Status.FAILED)
    return JobFailed(**status, summary=summary, detail=detail, fault=fault, debug_id=given.debug_id)
