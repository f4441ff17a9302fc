"""The events that admission writes, as pure functions of the job as last seen: first events, ends, changes of place.

Each gives the event, or null where it does not apply to the job as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from headgate_contracts import Event, Job, JobEvent, Priority, Status, Writer, advance
from headgate_contracts.events import (
    Estimate,
    JobAnswered,
    JobCancelled,
    JobCancelRequested,
    JobConfirmed,
    JobData,
    JobMoved,
    JobQueued,
    JobReprioritized,
    JobScheduled,
    JobWaiting,
)
from headgate_contracts.vocabulary import ChangeReason, QuestionKind, QueuedWhy
from libs.capacity.answers import Reserved
from libs.policy import Policy
from libs.policy.daily_cap import DayPlace
from services.admission.domain import NewJob, day_of, may_be_placed, release_at


@dataclass(frozen=True, slots=True)
class Stamp:
    """What every event is made with: its id, made once, and its time."""

    event_id: str
    now: datetime


@dataclass(frozen=True, slots=True)
class Actor:
    """Who does something to a job, as what, and why."""

    by: str
    reason: str = ""
    operator: bool = False

    @property
    def cause(self) -> ChangeReason:
        return ChangeReason.OPERATOR if self.operator else ChangeReason.USER


@dataclass(frozen=True, slots=True)
class FirstEvent:
    """The first event of a job, with the job that it makes: made once, and the same until it is in the log."""

    event: JobEvent
    job: Job

    @classmethod
    def of(cls, event: JobEvent) -> FirstEvent:
        return cls(event, advance(None, event))

    def estimated(self, estimate: Estimate | None) -> FirstEvent:
        """With what the job's user is shown. It is worked out for a job, so the job is there before it."""
        changed = {"estimate": estimate}
        data, standing = self.event.data, self.job.standing
        event = replace(self.event, data=data.model_copy(update=changed))
        placed = standing and standing.model_copy(update=changed)
        return FirstEvent(event, self.job.model_copy(update={"standing": placed}))

    def stored(self, seq: int) -> Job:
        """The job, where the log has the event."""
        return self.job.model_copy(update={"seq": seq, "first_seq": seq})


def queued_event(new: NewJob, place: Reserved, stamp: Stamp, *, per_day: int) -> JobEvent:
    """The job enters the queue at once."""
    data = JobQueued(
        **_born(new, Status.QUEUED),
        why=QueuedWhy.SUBMITTED,
        arrival=place.arrival,
        place=place.place,
        passed=place.passed,
        position_original=place.position,
        quota_day=day_of(place.day),
        quota_cap=None if place.day is None else per_day,
    )
    return _event(data, stamp, sequence=1)


def scheduled_event(new: NewJob, place: DayPlace, stamp: Stamp, *, spread_s: int) -> JobEvent:
    """The job enters the queue on a later day."""
    data = JobScheduled(
        **_born(new, Status.SCHEDULED),
        scheduled_for=release_at(new, place, spread_s=spread_s),
        quota_day=day_of(place.day),
        quota_cap=place.per_day,
    )
    return _event(data, stamp, sequence=1)


def waiting_event(new: NewJob, stamp: Stamp) -> JobEvent:
    """The job is a later phase: it enters the queue when the one before it is ready."""
    seat: dict[str, Any] = {"workflow": new.submission.workflow, "phase": new.submission.phase}
    return _event(JobWaiting(**_born(new, Status.WAITING), **seat), stamp, sequence=1)


def cancelling_event(job: Job, act: Actor, stamp: Stamp) -> JobEvent | None:
    """The end of a job that nobody runs, the wish for the end of one that somebody does; null where it has ended."""
    if job.status.is_end:
        return None
    running = job.status.is_running
    model, status = (JobCancelRequested, job.status) if running else (JobCancelled, Status.CANCELLED)
    return _next(job, model(**_of(job, status), by=act.by, reason=act.reason), stamp)


def confirming_event(job: Job, stamp: Stamp, *, by: str, policy: Policy) -> JobEvent | None:
    """Another batch of iterations, as far as the hard cap goes; null where the job does not ask for one."""
    tier = policy.tier_limits(job.tier)
    batch = min(tier.cycles_per_batch, tier.hard_cap - job.iteration)
    if job.status is not Status.AWAITING_CONFIRMATION or batch < 1 or asks_to_know(job):
        return None
    return _next(job, JobConfirmed(**_of(job, Status.QUEUED), by=by, batch=batch), stamp)


def answering_event(job: Job, question: str, stamp: Stamp, *, by: str, answer: str) -> JobEvent | None:
    """An answer is there, under this name; null where the job does not ask this question of a stage."""
    if job.question is None or job.question.id != question or not asks_to_know(job):
        return None
    return _next(job, JobAnswered(**_of(job, Status.QUEUED), question=question, answer=answer, by=by), stamp)


def asks_to_know(job: Job) -> bool:
    """Whether it is a stage that asks, and not the question whether to go on."""
    return job.question is not None and job.question.kind is QuestionKind.ASK


def reprioritizing_event(job: Job, to: Priority, act: Actor, stamp: Stamp) -> JobEvent | None:
    """Another class, at its own place: in the new class too the job stands by its arrival."""
    if not may_be_placed(job):
        return None
    place = job.standing and job.standing.place
    return _next(job, JobReprioritized(**_change(job, to, act), place=place), stamp)


def moving_event(job: Job, to: Priority, place: int, act: Actor, stamp: Stamp) -> JobEvent | None:
    """Another place; null where the job is not in the queue."""
    if job.status is not Status.QUEUED:
        return None
    return _next(job, JobMoved(**_change(job, to, act), place=place), stamp)


def _born(new: NewJob, status: Status) -> dict[str, Any]:
    return {
        "job_id": new.id,
        "user_id": new.user_id,
        "project_id": new.project_id,
        "status": status,
        "attempt": 0,
        "submission": new.submission,
    }


def _of(job: Job, status: Status) -> dict[str, Any]:
    return {
        "job_id": job.id,
        "user_id": job.user_id,
        "project_id": job.project_id,
        "status": status,
        "attempt": job.attempt,
    }


def _change(job: Job, to: Priority, act: Actor) -> dict[str, Any]:
    change = {"from_": job.priority, "to": to, "by": act.by, "reason": act.cause, "note": act.reason}
    return {**_of(job, job.status), **change}


def _next(job: Job, data: JobData, stamp: Stamp) -> JobEvent:
    return _event(data, stamp, sequence=job.sequence + 1)


def _event(data: JobData, stamp: Stamp, *, sequence: int) -> JobEvent:
    return Event(stamp.event_id, Writer.ADMISSION, stamp.now, data, sequence=sequence)
