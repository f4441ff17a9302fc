"""What the scheduler writes about a job, and when. Pure: clock, places, days and limits are arguments.

    a timer that came due, or what the ledger says is to be done ──decide──► Decision
    a job that may start                                         ──start───► Decision
    a job that stands too close to another                       ──spaced──► Decision

Owns the words that users read when the scheduler ends a job. Refuses to choose who may start (that is the engine's
plan), and in which order decisions are written (that is `batches`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from headgate_contracts import Job, Status, Tier
from headgate_contracts.assignment import assignment_of
from headgate_contracts.events import (
    JobCancelled,
    JobConfirmationReminder,
    JobData,
    JobDispatched,
    JobFailed,
    JobGivenBack,
    JobMoved,
    JobQueued,
    JobReprioritized,
    JobScheduled,
)
from headgate_contracts.vocabulary import ChangeReason, Fault, GivenBackReason, QuestionKind, QueuedWhy
from libs.policy import Policy
from libs.policy.daily_cap import EPOCH_DAY, DayPlace, release_at

BY: Final = "scheduler"
SHUT_MAX_MS: Final = 86_400_000  # daily quotas of providers begin anew by then


class Due(StrEnum):
    """What can come due about a job: by the clock, or because something else happened."""

    LEASE = "lease"  # a running attempt was not heard of for a lease
    DEADLINE = "deadline"
    RELEASE = "release"
    QUEUE_TTL = "queue_ttl"
    CONFIRM_TIMEOUT = "confirm_timeout"
    REMIND = "remind"
    AGE = "age"
    # by the ledger
    FORCED = "forced"  # an operator forced the slot of its attempt free
    SLIPPED = "slipped"  # it took a place of a day that had none left
    PHASE = "phase"  # the phase before it is ready
    DOOMED = "doomed"  # an earlier phase ended otherwise


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
    outage: bool = False  # its worker could not be heard: the silence is not the worker's
    placement: Placement | None = None  # null: there is no room in the queue
    day: DayPlace | None = None  # another one that has a place left; null: none has
    cause: str = ""  # why, in words
    tier: Tier | None = None  # of the job's user now: that of their newest submission
    waited_ms: int = 0  # in the queue, as far as it counts


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be written about a job, after the event it was last seen at."""

    job: Job
    data: JobData


def decide(kind: str, job: Job, *, given: Circumstances) -> Decision | None:
    """What follows from what came due, or nothing where the job has moved on from what that was about."""
    make = _RUNNING.get(kind) if job.status.is_running else _RESTING.get((kind, job.status))
    data = make and make(job, given)
    return data and Decision(job, data)


def urgency(kind: str) -> int:
    """What is looked at first where more came due than fits into one batch."""
    match kind:
        case Due.LEASE | Due.DEADLINE | Due.FORCED | Due.SLIPPED:
            return 0
        case Due.RELEASE | Due.PHASE:
            return 2
        case _:
            return 1


def shut_until_ms(for_ms: int, *, now: datetime) -> int:
    """Until when a provider is left alone that asks for it; no longer than a day, whatever it or a worker says."""
    return round(now.timestamp() * 1000) + min(for_ms, SHUT_MAX_MS)


def start(job: Job, *, groups: tuple[str, ...], given: Circumstances, starved: bool = False) -> Decision:
    """A worker of the job's pool may claim it. It holds a slot of each of these groups from here on.

    `starved`: it was its class's due, and not its turn.
    """
    runs, asked = given.policy.runs, job.submission.run_timeout_s
    timeout_s = runs.timeout_s if asked is None else min(asked, runs.max_timeout_s)
    data = JobDispatched(
        **_of(job, Status.STARTING, attempt=job.attempt + 1),
        groups=groups,
        deadline=given.now + timedelta(seconds=timeout_s),
        starved=starved,
        **assignment_of(job, tier=given.tier or job.submission.tier),
    )
    return Decision(job, data)


def spaced(job: Job, place: int) -> Decision:
    """Another number at the same place in the order."""
    data = JobMoved(
        **_of(job, job.status), from_=job.priority, to=job.priority, place=place, by=BY, reason=ChangeReason.SPACED
    )
    return Decision(job, data)


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
        return _cancelled(job, "its worker is gone")
    max_lost = given.policy.runs.max_lost
    if not given.outage and job.worker is not None and job.lost >= max_lost:
        summary = "The job's worker was lost too often."
        detail = f"It was lost {job.lost + 1} times; {max_lost} are allowed. The place of the day is given back."
        return _failed(job, given, summary=summary, detail=detail, fault=Fault.SYSTEM)
    reason = GivenBackReason.OUTAGE if given.outage else GivenBackReason.LOST
    return JobGivenBack(**_of(job, Status.QUEUED), reason=reason, finished_stages=job.finished_stages)


def _forced_free(job: Job, given: Circumstances) -> JobData:
    if job.cancel_requested_by is not None:
        return _cancelled(job, given.cause)
    return JobGivenBack(**_of(job, Status.QUEUED), reason=GivenBackReason.FORCED, finished_stages=job.finished_stages)


def _out_of_time(job: Job, given: Circumstances) -> JobData:
    if job.cancel_requested_by is not None:
        return _cancelled(job, "its worker is gone")
    detail = "The run was ended at its deadline. Ask for more time with run_timeout_s, where the limit allows it."
    return _failed(job, given, summary="The run took too long.", detail=detail, fault=Fault.TIMEOUT)


def _doomed(job: Job, given: Circumstances) -> JobData:
    return JobCancelled(**_of(job, Status.CANCELLED), by=BY, reason=given.cause)


def _cancelled(job: Job, cause: str) -> JobData:
    by = job.cancel_requested_by or BY
    return JobCancelled(**_of(job, Status.CANCELLED), by=by, reason=f"asked for while it ran; {cause}")


def _put_right(job: Job, given: Circumstances) -> JobData | None:
    """Its user's day was full: another day, as admission would have said. Where there is none, it stays: it was
    accepted."""
    if given.day is None:
        return None
    spread_s = given.policy.queue.release_spread_s
    return JobScheduled(
        **_of(job, Status.SCHEDULED),
        scheduled_for=release_at(job.user_id, given.day, spread_s=spread_s, run_at=job.submission.run_at),
        quota_day=EPOCH_DAY + timedelta(days=given.day.day),
        quota_cap=given.day.per_day,
    )


def _released(job: Job, given: Circumstances) -> JobData | None:
    return _placed(job, given, why=QueuedWhy.RELEASED)


def _phase_ready(job: Job, given: Circumstances) -> JobData | None:
    return _placed(job, given, why=QueuedWhy.PHASE_READY)


def _placed(job: Job, given: Circumstances, *, why: QueuedWhy) -> JobData | None:
    placement = given.placement
    if placement is None:
        return None
    return JobQueued(
        **_of(job, Status.QUEUED),
        why=why,
        arrival=placement.arrival,
        place=placement.place,
        passed=placement.passed,
        position_original=placement.position,
        quota_day=job.quota_day,
    )


def _waited_too_long(job: Job, given: Circumstances) -> JobData | None:
    """Null where too much of its time does not count yet: it stays due."""
    asked_s = job.submission.queue_ttl_s
    most_s = given.policy.queue.ttl_s(asked_s)
    if given.waited_ms < most_s * 1000:
        return None
    by = "queue.default_ttl_s" if asked_s is None else "queue_ttl_s"
    detail = (
        f"It was to wait for at most {most_s:g} s ({by}) and never started. "
        "Time in which it was paused, or could not be served, was not counted."
    )
    return _failed(job, given, summary="The job waited too long in the queue.", detail=detail, fault=Fault.TIMEOUT)


def _unanswered(job: Job, given: Circumstances) -> JobData:
    asks = job.question is not None and job.question.kind is QuestionKind.ASK
    summary = f"Nobody answered in time {'what the job asked' if asks else 'whether the job should continue'}."
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
    up = given.policy.order.risen(job.priority)
    if up is None or job.standing is None:
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


_Make = Callable[[Job, Circumstances], JobData | None]
_RUNNING: Final[Mapping[str, _Make]] = {
    Due.LEASE: _worker_gone,
    Due.DEADLINE: _out_of_time,
    Due.FORCED: _forced_free,
}
_RESTING: Final[Mapping[tuple[str, Status], _Make]] = {
    (Due.RELEASE, Status.SCHEDULED): _released,
    (Due.PHASE, Status.WAITING): _phase_ready,
    (Due.DOOMED, Status.WAITING): _doomed,
    (Due.SLIPPED, Status.QUEUED): _put_right,
    (Due.QUEUE_TTL, Status.QUEUED): _waited_too_long,
    (Due.AGE, Status.QUEUED): _aged,
    (Due.CONFIRM_TIMEOUT, Status.AWAITING_CONFIRMATION): _unanswered,
    (Due.REMIND, Status.AWAITING_CONFIRMATION): _reminder,
}
