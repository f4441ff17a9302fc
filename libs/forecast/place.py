"""Where a queued job stands: its place by the rule, how many start before it, and when it starts.

    position    the unpaused jobs ahead of it in its pool, and itself: by the order alone
    sooner      those of them that start before it: fewer, where some are held by limits of their own
    estimate    when it starts, as far as that can be known

Pure. Page, command and stream show what is put together here, and nothing of their own. A number is told only where
there is something to tell it by: jobs that have ended, and a forecast that knows whatever holds this one.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

from headgate_contracts import Job, Status
from headgate_contracts.events import Estimate
from headgate_contracts.shown import QueuePart, WaitingOn
from libs.capacity.answers import Outlook
from libs.forecast.standing import waiting_on
from libs.forecast.table import EstimateRequest, Forecast, wanted_of
from libs.runtime.wording import counted

NEXT: Final = ", next to start"


@dataclass(frozen=True, slots=True)
class ShownStanding:
    """What a waiting job's owner, or an operator, is told of it."""

    queue: QueuePart | None
    waiting_on: tuple[WaitingOn, ...]


def shown_standing(
    job: Job, outlook: Outlook | None, *, forecast: Forecast, now_ms: int, owner: bool = True
) -> ShownStanding:
    """By one look at the view and the newest forecast. `owner`: it is told to its owner."""
    wanted = _wanted(job, outlook)
    sooner = None if wanted is None else forecast.sooner(job.id, wanted)
    waiting = waiting_on(job, outlook, owner=owner, sooner=sooner)
    estimate = estimate_of(job, outlook, forecast=forecast, now_ms=now_ms)
    queue = queue_part(job, outlook, estimate)
    if queue and queue.position > 1 and not sooner and [each.reason for each in waiting] == ["behind"]:
        queue = queue.model_copy(update={"position_message": queue.position_message + NEXT}) if wanted else queue
    return ShownStanding(queue, waiting)


def queue_part(job: Job, outlook: Outlook | None, estimate: Estimate | None = None) -> QueuePart | None:
    """The job's place, or null where it is not in the queue. One that was not folded yet stands where it entered."""
    if job.standing is None or job.status is not Status.QUEUED:
        return None
    original = job.standing.position_original
    position = outlook.position if outlook and outlook.position else original
    return QueuePart(
        position=position,
        position_original=original,
        position_message=position_message(position, original),
        passed_by=outlook.passed if outlook else 0,
        **estimate_fields(estimate, starts=_may_start(outlook)),
    )


def estimate_of(job: Job, outlook: Outlook | None, *, forecast: Forecast, now_ms: int) -> Estimate | None:
    """When the job starts: by the forecast, or by what its event says where it was not folded yet. Null where nothing
    will start it as things stand, and where nobody knows."""
    if job.standing is None or job.status is not Status.QUEUED:
        return None
    wanted = _wanted(job, outlook)
    if wanted is None:
        return job.standing.estimate
    return forecast.estimate_of(job.id, wanted, now_ms=now_ms) if _may_start(outlook) else None


def position_message(position: int, original: int) -> str:
    """`You are #4 in queue`, or what moved the job back."""
    if position <= original:
        return f"You are #{position} in queue"
    inserted = counted(position - original, "priority job")
    return f"Originally #{original}, currently #{position} ({inserted} inserted ahead)"


def _wanted(job: Job, outlook: Outlook | None) -> EstimateRequest | None:
    """Null for a job that the view does not hold in its queue, or not yet."""
    if job.status is not Status.QUEUED or outlook is None or outlook.position is None or outlook.score is None:
        return None
    wanted = wanted_of(job, score=outlook.score, position=outlook.position)
    return replace(wanted, full=tuple(each.group for each in outlook.obstacles))


def _may_start(outlook: Outlook | None) -> bool:
    """Nothing will start what is paused, or has no worker."""
    return outlook is None or (not outlook.pauses and bool(outlook.pool_slots))


MINUTE_S: Final = 60
HOUR_S: Final = 3600
NEAR_S: Final = 2 * MINUTE_S
UNKNOWN: Final = "no estimate yet"


def estimate_message(estimate: Estimate) -> str:
    """What a waiting user reads."""
    if estimate.estimate_seconds < MINUTE_S and estimate.upper_bound < NEAR_S:
        return duration_text(estimate.estimate_seconds)
    lower, upper = duration_text(estimate.lower_bound), duration_text(estimate.upper_bound)
    return lower if lower == upper else f"{lower}-{upper}"


def duration_text(seconds: int) -> str:
    """A duration in its own unit: `45 seconds`, `17 minutes`, `1h 5m`."""
    if seconds < MINUTE_S:
        return counted(seconds, "second")
    if seconds < HOUR_S:
        return counted(seconds // MINUTE_S, "minute")
    return f"{seconds // HOUR_S}h {seconds % HOUR_S // MINUTE_S}m"


def estimate_fields(estimate: Estimate | None, *, starts: bool = True) -> dict[str, Any]:
    """The part of `QueuePart` that tells the estimate. `starts`: something will start the job as things stand."""
    if estimate is None:
        return {"message": UNKNOWN} if starts else {}
    return {**estimate.model_dump(), "message": estimate_message(estimate)}
