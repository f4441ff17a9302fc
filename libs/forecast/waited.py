"""What a job has waited for, told afterwards: each of its waits in pieces, by what held it then.

    its own events        its day, the phase before it, its next try, its user's answer; that it was given back, and why
    operators' acts       pauses of the scopes that name it, as it then was
    starts and ends       groups that had no slot left: user, project, named ones, workflows, its pool
    nothing of it         it waited its turn

Pure. Owns the order in which these are told where several held it at once, that of `standing`, and their words. What no
record tells is not guessed: slots outside jobs, workers that were away, providers that were shut. A piece of less than
a second is told as part of its neighbour.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Final

from headgate_contracts import Job, Status
from headgate_contracts.envelope import utc
from headgate_contracts.events import (
    JobAnswered,
    JobCancelRequested,
    JobConfirmationReminder,
    JobConfirmed,
    JobData,
    JobGivenBack,
    JobMoved,
    JobQueued,
    JobReprioritized,
    JobTryFailed,
)
from headgate_contracts.shown import ShownWait
from headgate_contracts.vocabulary import GivenBackReason
from libs.capacity.projection import groups_of
from libs.capacity.rows import Pause
from libs.capacity.scopes import scopes_of_job
from libs.forecast.standing import limit_reason, pause_message, slots_message

BRIEF_MS: Final = 1000
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND: Final = timedelta(milliseconds=1)
ORDER: Final = ("user_limit", "project_limit", "group_limit", "global_limit", "pool_full")
MOMENTS: Final = (JobReprioritized, JobMoved, JobCancelRequested, JobConfirmationReminder)
CAME_BACK: Final[Mapping[str, str]] = {
    GivenBackReason.LOST: "Its worker was lost",
    GivenBackReason.DRAINED: "Its worker was stopped",
    GivenBackReason.OUTAGE: "There was an outage",
    GivenBackReason.FORCED: "An operator freed its slot",
}


@dataclass(frozen=True, slots=True)
class PausedSpan:
    """A pause, and when it was over; infinity: it is not."""

    pause: Pause
    ended_ms: float

    @property
    def began_ms(self) -> float:
        return self.pause.since_ms


@dataclass(frozen=True, slots=True)
class FullSpan:
    """For so long jobs had all of the group's slots. `tier`: for jobs submitted with that; null: for all."""

    group: str
    limit: int
    tier: str | None
    began_ms: float
    ended_ms: float


@dataclass(frozen=True, slots=True)
class HoldSpans:
    """What held jobs of some scopes and groups, each oldest first."""

    pauses: tuple[PausedSpan, ...] = ()
    full: tuple[FullSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class LifeStep:
    """A job after one of its events; null: one that this reader does not know."""

    job: Job
    data: JobData | None


@dataclass(frozen=True, slots=True)
class _Piece:
    """Of a wait: what held the job, a reason in place of that, or neither."""

    began_ms: float
    ended_ms: float
    job: Job
    after: str | None
    by: PausedSpan | FullSpan | str = ""

    @property
    def is_brief(self) -> bool:
        return self.ended_ms - self.began_ms < BRIEF_MS

    @property
    def cause(self) -> object:
        """The same where the same held it."""
        match self.by:
            case PausedSpan(pause=pause):
                return pause
            case FullSpan(group=group, limit=limit):
                return group, limit
            case reason:
                return reason


def scopes_and_groups(life: Iterable[LifeStep]) -> tuple[frozenset[str], frozenset[str]]:
    """Whose pauses have held it, and the groups that it needs a slot of; its pool's too."""
    queued = [step.job for step in life if step.job.status is Status.QUEUED]
    scopes = frozenset(scope for job in queued for scope in scopes_of_job(job))
    return scopes, frozenset(group for job in queued for group in _groups(job))


def waits_of(life: Sequence[LifeStep], holds: HoldSpans, *, owner: bool = True) -> tuple[ShownWait, ...]:
    """All its waits so far, oldest first. `owner`: they are told to its owner."""
    pieces = (piece for stay in _stays(life) for piece in _joined(_cut(stay, holds)))
    return tuple(_shown(piece, owner=owner) for piece in pieces)


# ── when it waited ────────────────────────────────────────────────────────────


def _stays(life: Sequence[LifeStep]) -> Iterator[list[_Piece]]:
    """Each wait, by what its own events say. What changes its place alone goes on with the same."""
    stay: list[_Piece] = []
    following = [_ms(step.job.updated_at) for step in life[1:]]
    for step, until_ms in zip(life, (*following, inf), strict=True):
        if stay and not isinstance(step.data, MOMENTS):
            yield stay
            stay = []
        after = stay[-1].after if stay else _after(step.data)
        stay += _own_pieces(step, until_ms, after)
    if stay:
        yield stay


def _own_pieces(step: LifeStep, until_ms: float, after: str | None) -> Iterator[_Piece]:
    job, began_ms = step.job, _ms(step.job.updated_at)
    whole = _Piece(began_ms, until_ms, job, after)
    match job.status:
        case Status.QUEUED:
            yield replace(whole, by="provider_paused") if job.provider else whole
        case Status.SCHEDULED:
            due_ms = max(began_ms, min(until_ms, _ms(job.scheduled_for)))
            yield replace(whole, ended_ms=due_ms, by="retry" if job.tried else "daily_window")
            yield replace(whole, began_ms=due_ms, by="room")
        case Status.WAITING:
            yield replace(whole, by="earlier_phase")
        case Status.AWAITING_CONFIRMATION:
            yield replace(whole, by="confirmation", after=None)
        case _ if isinstance(step.data, JobTryFailed):
            yield replace(whole, ended_ms=min(until_ms, _ms(step.data.tried.again_at)), by="retry", after=None)
        case _:
            pass


def _after(data: JobData | None) -> str | None:
    match data:
        case JobQueued(why=why):
            return why.value
        case JobGivenBack(reason=reason):
            return reason.value
        case JobConfirmed() | JobAnswered():
            return data.EVENT.value
        case _:
            return None


# ── what held it ──────────────────────────────────────────────────────────────


def _cut(stay: Sequence[_Piece], holds: HoldSpans) -> Iterator[_Piece]:
    for piece in stay:
        if piece.ended_ms > piece.began_ms:
            yield from _held(piece, holds) if piece.job.status is Status.QUEUED else (piece,)


def _held(piece: _Piece, holds: HoldSpans) -> list[_Piece]:
    """What nothing accounts for yet goes to the next reason."""
    pieces = [piece]
    for scope in scopes_of_job(piece.job):
        pieces = _filled(pieces, [span for span in holds.pauses if span.pause.scope == scope])
    tier = piece.job.submission.tier.value
    groups = sorted(_groups(piece.job), key=lambda group: ORDER.index(limit_reason(group)))
    for group in groups:
        full = [span for span in holds.full if span.group == group and span.tier in (None, tier)]
        pieces = _filled(pieces, full)
    return pieces


def _filled(pieces: Sequence[_Piece], spans: Sequence[PausedSpan | FullSpan]) -> list[_Piece]:
    """The pieces of which nothing is known, cut where these spans begin and end; spans of one scope do not overlap."""
    found, first = list[_Piece](), 0
    for piece in pieces:
        at = piece.began_ms
        while not _is_known(piece) and first < len(spans) and spans[first].began_ms < piece.ended_ms:
            span = spans[first]
            begins, ends = max(at, span.began_ms), min(piece.ended_ms, span.ended_ms)
            if begins < ends:
                found += [replace(piece, began_ms=at, ended_ms=begins)] if at < begins else []
                found.append(replace(piece, began_ms=begins, ended_ms=ends, by=span))
                at = ends
            if span.ended_ms > piece.ended_ms:
                break
            first += 1
        if at < piece.ended_ms:
            found.append(replace(piece, began_ms=at))
    return found


def _is_known(piece: _Piece) -> bool:
    return not isinstance(piece.by, str)


def _joined(pieces: Iterable[_Piece]) -> list[_Piece]:
    """The same behind the same is one, and so is what is brief, with what stands before it or else behind it."""
    found = list[_Piece]()
    for piece in pieces:
        if found and (piece.cause == found[-1].cause or piece.is_brief):
            found[-1] = replace(found[-1], ended_ms=piece.ended_ms)
        elif len(found) == 1 and found[0].is_brief:
            found = [replace(piece, began_ms=found[0].began_ms)]
        else:
            found.append(piece)
    return found


def _groups(job: Job) -> tuple[str, ...]:
    return (*groups_of(job), f"pool:{job.submission.pool}")


def _ms(moment: datetime | None) -> float:
    """Rounded down, as readers do who cut off what is finer: a wait begins with its event and ends with the next."""
    return inf if moment is None else (moment - EPOCH) // MILLISECOND


# ── in words ──────────────────────────────────────────────────────────────────


def _shown(piece: _Piece, *, owner: bool) -> ShownWait:
    is_over = piece.ended_ms < inf
    told = ShownWait(
        since=utc(int(piece.began_ms)),
        until=utc(int(piece.ended_ms)) if is_over else None,
        reason=piece.by if isinstance(piece.by, str) and piece.by else "turn",
        message="",
        after=piece.after,
    )
    match piece.by:
        case PausedSpan(pause=pause):
            message = pause_message(pause, piece.job, owner=owner, is_over=is_over)
            return told.model_copy(
                update={"reason": "paused", "message": message, "group": pause.scope, "by": pause.by}
            )
        case FullSpan(group=group, limit=limit):
            message = slots_message(group, limit, limit, owner=owner, is_over=is_over)
            held = {"reason": limit_reason(group), "message": message, "group": group, "limit": limit}
            return told.model_copy(update=held)
        case _:
            return told.model_copy(update={"message": _message(piece, told.reason, owner=owner, is_over=is_over)})


def _message(piece: _Piece, reason: str, *, owner: bool, is_over: bool) -> str:
    job, waited = piece.job, "Waited" if is_over else "Waits"
    match reason:
        case "daily_window":
            return f"{_why_later(job)}: {waited.lower()} until {job.scheduled_for:%Y-%m-%d %H:%M} UTC"
        case "room":
            return f"Its time had come: {waited.lower()} to enter the queue"
        case "retry":
            return f"{waited} before {_next_try(job)}"
        case "earlier_phase":
            return f"{waited} for phase {(job.submission.phase or 2) - 1} of the workflow"
        case "confirmation":
            return f"{waited} for {'your' if owner else 'its user’s'} answer"
        case "provider_paused":
            return f"Provider {job.provider} had paused: {waited.lower()} until it takes calls, and its turn"
        case _:
            why = CAME_BACK.get(piece.after or "")
            return f"{why}: {waited.lower()} its turn, at its old place" if why else f"{waited} its turn"


def _why_later(job: Job) -> str:
    asked = job.submission.run_at
    is_asked = asked is not None and job.scheduled_for is not None and asked >= job.scheduled_for
    return "Submitted for later" if is_asked else "The day's jobs were used"


def _next_try(job: Job) -> str:
    return f"try {job.tried.tries + 1} of {job.tried.most + 1} of {job.tried.stage}" if job.tried else "the next try"
