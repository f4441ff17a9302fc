"""What holds a waiting job back, and what would let it run, in words.

Pure. Owns the sentences and the order of the reasons. A user is told of others in numbers only, an operator by name.

    daily window · room · paused · earlier phase · user · project · group · global · provider · no worker · behind

A waiting job's user is told all that keeps it, in this order; one that is kept by nothing is behind others, or next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from headgate_contracts import Job, Status
from headgate_contracts.envelope import utc
from headgate_contracts.shown import WaitingOn
from headgate_contracts.tokens import phase_job_id
from libs.capacity.answers import Obstacle, Outlook
from libs.capacity.rows import Pause
from libs.forecast.shown import tried_message
from libs.runtime.wording import counted

GLOBAL: Final = ("workflows", "llm:global")
MANY: Final = ("priority:", "user:")  # scopes that are called by their jobs
NEXT: Final = "Next in line: starts as soon as a worker has a free slot"
SLOTS: Final = ("user_limit", "project_limit", "group_limit", "global_limit", "provider_paused")  # in order


def waiting_on(
    job: Job, outlook: Outlook | None, *, owner: bool = True, sooner: int | None = None
) -> tuple[WaitingOn, ...]:
    """Everything that keeps the job from running now, the earliest obstacle first. `owner`: it is told to its owner.
    `sooner`: how many of those ahead start before it; null: all of them, for all that is known."""
    paused = [_paused(pause, job, owner=owner) for pause in outlook.pauses] if outlook else []
    match job.status:
        case Status.SCHEDULED:
            own = _next_try(job) if job.tried else _daily_window(job)
            return (_room() if outlook and outlook.room else own, *paused)
        case Status.WAITING:
            return (_room(), *paused) if outlook and outlook.room else (*paused, _earlier_phase(job))
        case Status.AWAITING_CONFIRMATION:
            return (_confirmation(job, owner=owner),)
        case Status.QUEUED if outlook is not None:
            return (*paused, *_slots(job, outlook, owner=owner)) or (_behind((outlook.position or 1) - 1, sooner),)
        case Status.QUEUED if job.standing is not None:
            return (_behind(job.standing.position_original - 1, sooner),)
        case _:
            return ()


def would_run(job: Job, waiting: tuple[WaitingOn, ...], *, owner: bool = True) -> tuple[str, ...]:
    """What would let the job run, one sentence for each thing that it waits for: all of them are needed."""
    return tuple(REMEDIES[each.reason](WaitingReason(job, each, owner=owner)) for each in waiting)


# ── what holds it back ────────────────────────────────────────────────────────


def _slots(job: Job, outlook: Outlook, *, owner: bool) -> Iterator[WaitingOn]:
    blocked = [_obstacle(job, each, owner=owner) for each in outlook.obstacles]
    yield from sorted(blocked, key=lambda each: SLOTS.index(each.reason))
    if not outlook.pool_slots:
        pool = job.submission.pool
        yield WaitingOn(reason="no_worker", message=f"No worker of pool {pool} is there", group=f"pool:{pool}")


def _daily_window(job: Job) -> WaitingOn:
    opens_at = job.scheduled_for
    when = f" on {opens_at:%Y-%m-%d} after {opens_at:%H:%M} UTC" if opens_at else ""
    return WaitingOn(reason="daily_window", message=f"Enters the queue{when}", until=opens_at)


def _next_try(job: Job) -> WaitingOn:
    message = tried_message(job.tried) if job.tried else ""
    return WaitingOn(reason="retry", message=message, until=job.scheduled_for)


def _room() -> WaitingOn:
    return WaitingOn(reason="room", message="The queue is full: it has the next free place, in turn")


def _paused(pause: Pause, job: Job, *, owner: bool) -> WaitingOn:
    message = pause_message(pause, job, owner=owner)
    return WaitingOn(reason="paused", message=message, group=pause.scope, by=pause.by, since=utc(pause.since_ms))


def pause_message(pause: Pause, job: Job, *, owner: bool, is_over: bool = False) -> str:
    """What is paused, by whom and why."""
    why, scope = f": {pause.reason}" if pause.reason else "", _scope(pause.scope, job, owner=owner)
    verb = _verb(many=pause.scope.startswith(MANY), is_over=is_over)
    return f"{scope[0].upper()}{scope[1:]} {verb} paused by {pause.by}{why}"


def slots_message(group: str, limit: int, active: int, *, owner: bool, is_over: bool = False) -> str:
    """That a group has no slot left."""
    return f"{_called(group, owner=owner)}: {active} of {limit} slots {_verb(many=True, is_over=is_over)} taken"


def _called(group: str, *, owner: bool) -> str:
    """A group, as those call it who wait for its slots."""
    kind, _, name = group.partition(":")
    match kind:
        case "user":
            return "Your jobs" if owner else f"Jobs of user {name}"
        case "project":
            return "This project's jobs"
        case "workflows":
            return "Jobs of all workflows"
        case "pool":
            return f"Pool {name}"
        case _:
            return "All providers together" if group == "llm:global" else f"Group {group}"


def limit_reason(group: str) -> str:
    """The reason under which a group is told that has no slot left."""
    kind = group.partition(":")[0]
    if group in GLOBAL:
        return "global_limit"
    return {"user": "user_limit", "project": "project_limit", "pool": "pool_full"}.get(kind, "group_limit")


def _verb(*, many: bool, is_over: bool) -> str:
    return ("were" if many else "was") if is_over else ("are" if many else "is")


def _earlier_phase(job: Job) -> WaitingOn:
    asked, phase = job.submission, (job.submission.phase or 2) - 1
    earlier = (phase_job_id(asked.workflow, phase),) if asked.workflow else ()
    return WaitingOn(
        reason="earlier_phase", message=f"Phase {phase} of the workflow has to be ready first", jobs=earlier
    )


def _confirmation(job: Job, *, owner: bool) -> WaitingOn:
    message = "Waiting for your answer" if owner else "Waiting for the user's answer"
    return WaitingOn(reason="confirmation", message=message, since=job.updated_at, until=job.expires_at)


def _obstacle(job: Job, obstacle: Obstacle, *, owner: bool) -> WaitingOn:
    kind, _, name = obstacle.group.partition(":")
    told_of = tuple(each.job for each in obstacle.holders if each.job and (each.user == job.user_id or not owner))
    told = WaitingOn(
        reason=limit_reason(obstacle.group),
        message=_full(obstacle, owner=owner),
        group=obstacle.group,
        limit=obstacle.limit,
        active=obstacle.active,
        since=utc(obstacle.since_ms) if obstacle.since_ms else None,
        jobs=told_of,
    )
    if obstacle.until_ms is not None:
        return told.model_copy(update=_shut(kind, name, utc(obstacle.until_ms)))
    return told


def _shut(kind: str, name: str, until: datetime) -> dict[str, object]:
    """A provider paused, or the view was lost and with it who holds slots of the group outside jobs."""
    before = f"before {until:%H:%M:%S} UTC"
    if kind == "llm":
        message = f"{name} has had enough calls: nobody calls it {before}"
        return {"reason": "provider_paused", "message": message, "until": until}
    message = f"Group {kind}:{name}: after an outage nobody gets a slot {before}, when all from before are over"
    return {"message": message, "until": until}


def _full(obstacle: Obstacle, *, owner: bool) -> str:
    if obstacle.active < obstacle.limit:  # shut for a moment, until every running job has named its leases again
        return f"{_called(obstacle.group, owner=owner)}: slots are being counted again after an outage"
    return slots_message(obstacle.group, obstacle.limit, obstacle.active, owner=owner)


def _behind(ahead: int, sooner: int | None) -> WaitingOn:
    """Who is held by limits of their own keeps a place ahead, and holds nobody up."""
    sooner = ahead if sooner is None else min(sooner, ahead)
    later = f"{ahead - sooner} ahead {'starts' if ahead - sooner == 1 else 'start'} later"
    message = f"Behind {counted(sooner, 'job')}" if sooner else NEXT
    return WaitingOn(reason="behind", message=f"{message} ({later})" if sooner < ahead else message)


# ── what would let it run ─────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class WaitingReason:
    """What a job waits for, and whether it is its owner who hears of it."""

    job: Job
    waiting: WaitingOn
    owner: bool


def _resumed(told: WaitingReason) -> str:
    scope = _scope(told.waiting.group or "all", told.job, owner=told.owner)
    return f"{told.waiting.by or 'An operator'}, or another operator, resumes {scope}"


def _own_end(told: WaitingReason) -> str:
    return f"One of these jobs ends or is cancelled{_named(told)}"


def _slot_free(told: WaitingReason) -> str:
    if told.waiting.until:
        return f"Time: slots of {told.waiting.group} are given again{_from(told.waiting.until)}"
    return f"A slot of {told.waiting.group} comes free{_named(told)}, or an operator raises its limit"


def _answer(told: WaitingReason) -> str:
    who = "Your answer" if told.owner else "Its user's answer, or its end"
    return f"{who}{_by(told.waiting.until)}"


def _turn(told: WaitingReason) -> str:
    return "A worker has a free slot" if told.waiting.message.startswith(NEXT) else "The jobs ahead of it start"


def _always(words: str) -> Remedy:
    return lambda _: words


Remedy = Callable[[WaitingReason], str]
REMEDIES: Final[Mapping[str, Remedy]] = {
    "daily_window": lambda told: f"Time: it enters the queue by itself{_from(told.waiting.until)}",
    "retry": lambda told: f"Time: it is tried again{_from(told.waiting.until)}",
    "room": _always("A place in the queue: one comes free when a queued job starts or is cancelled"),
    "paused": _resumed,
    "earlier_phase": _always("The phase before it ends well; where that one fails, this one is cancelled"),
    "user_limit": _own_end,
    "project_limit": _own_end,
    "group_limit": _slot_free,
    "global_limit": _slot_free,
    "provider_paused": lambda told: f"Time: the provider takes calls again{_from(told.waiting.until)}",
    "no_worker": lambda told: f"A worker of pool {told.job.submission.pool} starts",
    "confirmation": _answer,
    "behind": _turn,
}


def _scope(scope: str, job: Job, *, owner: bool) -> str:
    """A paused scope, as its users would call it."""
    kind, _, name = scope.partition(":")
    match kind:
        case "all":
            return "the whole queue"
        case "priority":
            return f"all jobs of {name} priority"
        case "user":
            return "your jobs" if owner and name == job.user_id else f"the jobs of user {name}"
        case _:
            return f"{kind} {name}"


def _from(moment: datetime | None) -> str:
    return f" from {moment:%Y-%m-%d %H:%M:%S} UTC on" if moment else ""


def _by(moment: datetime | None) -> str:
    return f" by {moment:%Y-%m-%d %H:%M} UTC" if moment else ""


def _named(told: WaitingReason) -> str:
    who, jobs = "yours" if told.owner else "now", ", ".join(told.waiting.jobs)
    return f" ({who}: {jobs})" if jobs else ""
