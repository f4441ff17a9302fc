"""Where a queued job stands and what holds it back, in words and numbers.

Pure. Owns the sentences and the order of the reasons. Of other users only numbers are told.
"""

from __future__ import annotations

from datetime import datetime

from headgate_contracts import Job, Status
from headgate_contracts.envelope import utc
from headgate_contracts.shown import QueuePart, WaitingOn
from libs.capacity.answers import Obstacle, Outlook


def queue_part(job: Job, outlook: Outlook | None) -> QueuePart | None:
    """The job's place, or null where it is not in the queue. One that was not folded yet stands where it entered."""
    if job.standing is None or job.status is not Status.QUEUED:
        return None
    original = job.standing.position_original
    position, passed = (outlook.position, outlook.passed) if outlook else (original, 0)
    return QueuePart(
        position=position,
        position_original=original,
        position_message=position_message(position, original),
        passed_by=passed,
    )


def position_message(position: int, original: int) -> str:
    """`You are #4 in queue`, or what moved the job back."""
    if position <= original:
        return f"You are #{position} in queue"
    inserted = position - original
    jobs = "priority job" if inserted == 1 else "priority jobs"
    return f"Originally #{original}, currently #{position} ({inserted} {jobs} inserted ahead)"


def waiting_on(job: Job, outlook: Outlook | None) -> tuple[WaitingOn, ...]:
    """Everything that keeps the job from running now, the earliest obstacle first."""
    match job.status:
        case Status.SCHEDULED:
            return (_daily_window(job.scheduled_for),)
        case Status.WAITING:
            phase = (job.submission.phase or 2) - 1
            return (WaitingOn(reason="earlier_phase", message=f"Phase {phase} of the workflow has to be ready first"),)
        case Status.AWAITING_CONFIRMATION:
            return (WaitingOn(reason="confirmation", message="Waiting for your answer", since=job.updated_at),)
        case Status.QUEUED if outlook is not None:
            return _queued_reasons(outlook)
        case Status.QUEUED if job.standing is not None:
            return (_behind(job.standing.position_original - 1),)
        case _:
            return ()


def _queued_reasons(outlook: Outlook) -> tuple[WaitingOn, ...]:
    paused = [WaitingOn(reason="paused", message=f"Paused: {scope}") for scope in outlook.pauses]
    full = [_full(obstacle) for obstacle in outlook.obstacles]
    workers = [] if outlook.pool_slots else [WaitingOn(reason="no_worker", message="No worker of its pool is there")]
    reasons = (*paused, *full, *workers)
    return reasons or (_behind(outlook.position - 1),)


def _daily_window(opens_at: datetime | None) -> WaitingOn:
    when = f" on {opens_at:%Y-%m-%d} after {opens_at:%H:%M} UTC" if opens_at else ""
    return WaitingOn(reason="daily_window", message=f"Enters the queue{when}")


def _full(obstacle: Obstacle) -> WaitingOn:
    kind = obstacle.group.partition(":")[0]
    reasons = {"user": "user_limit", "project": "project_limit"}
    reason = "global_limit" if obstacle.group in ("workflows", "llm:global") else reasons.get(kind, "group_limit")
    whose = {"user": "Your jobs", "project": "This project's jobs"}.get(kind, f"Group {obstacle.group}")
    return WaitingOn.model_validate(
        {
            "reason": reason,
            "message": f"{whose}: {obstacle.active} of {obstacle.limit} slots are taken",
            "group": obstacle.group,
            "limit": obstacle.limit,
            "active": obstacle.active,
            "since": obstacle.since_ms and utc(obstacle.since_ms),
        }
    )


def _behind(ahead: int) -> WaitingOn:
    if ahead <= 0:
        return WaitingOn(reason="behind", message="Next in line: starts as soon as a worker has a free slot")
    return WaitingOn(reason="behind", message=f"Behind {ahead} {'job' if ahead == 1 else 'jobs'}")
