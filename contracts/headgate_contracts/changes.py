"""What each event changes about a job, and what about the job it may not contradict.

One small function an event, beside what every event changes (status, attempt, sequence: `lifecycle`). Each gets the
job before, the event's data and its time, and gives the fields that change. Refuses, by the field's name, what the
table cannot see: a second claim of an attempt, another iteration, a finished stage that runs again.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from headgate_contracts.errors import IllegalTransition
from headgate_contracts.events import (
    AttemptData,
    JobAnswered,
    JobAwaitingConfirmation,
    JobCancelled,
    JobCancelRequested,
    JobConfirmationReminder,
    JobConfirmed,
    JobData,
    JobDispatched,
    JobError,
    JobFailed,
    JobGivenBack,
    JobMoved,
    JobQueued,
    JobReady,
    JobReprioritized,
    JobScheduled,
    JobStage,
    JobStarted,
    JobTryFailed,
    JobWaiting,
    Tried,
)
from headgate_contracts.job import Job, Standing
from headgate_contracts.questions import MOST_ANSWERS, KeptAnswer, Question, question_id, whether_to_continue
from headgate_contracts.stages import in_common, is_in_last, kept_by_iteration, next_stage_of
from headgate_contracts.usage import usage_after
from headgate_contracts.vocabulary import ChangeReason, EventName, Fault, GivenBackReason, QuestionKind, Status

Changes = dict[str, Any]


def changes_of(job: Job, data: JobData, at: datetime) -> Changes:
    """The fields of the job that this event changes."""
    changes = _CHANGES[data.EVENT](job, data, at)
    if isinstance(data, AttemptData) and data.usage:
        changes["model_usage"] = usage_after(job.model_usage, data.usage, stage=job.stage)
    return changes


def _queued(job: Job, data: JobQueued, at: datetime) -> Changes:
    standing = Standing(
        arrival=data.arrival,
        place=data.place,
        position_original=data.position_original,
        estimate=data.estimate,
        entered_at=at,
    )
    quota_day = data.quota_day or job.quota_day
    return {"standing": standing, "quota_day": quota_day, "scheduled_for": None, "aged_at": None}


def _scheduled(job: Job, data: JobScheduled, at: datetime) -> Changes:
    return {"standing": None, "quota_day": data.quota_day, "scheduled_for": data.scheduled_for}


def _waiting(job: Job, data: JobWaiting, at: datetime) -> Changes:
    _agree("data.workflow", data.workflow, job.submission.workflow)
    _agree("data.phase", data.phase, job.submission.phase)
    return {}


def _dispatched(job: Job, data: JobDispatched, at: datetime) -> Changes:
    asked = job.submission
    _agree("data.pool", data.pool, asked.pool)
    _agree("data.pipeline", data.pipeline, asked.pipeline)
    _agree("data.shared", data.shared, asked.shared)
    _agree("data.input_digest", data.input_digest, asked.input_digest)
    started = {"dispatched_at": at, "worker": None, "provider": None}
    return {"groups": data.groups, "deadline": data.deadline, "users_tier": data.tier, **started}


def _started(job: Job, data: JobStarted, at: datetime) -> Changes:
    if job.worker is not None:
        raise IllegalTransition("data.attempt", f"attempt {job.attempt} was already claimed by {job.worker}")
    names = [stage.name for stage in data.stages]
    if len(set(names)) < len(names):
        raise IllegalTransition("data.stages", "a stage stands there twice")
    if data.again_at is not None and data.again_at not in names:
        raise IllegalTransition("data.again_at", f"{data.again_at} is none of the stages")
    return {
        "worker": data.worker,
        "started_at": job.started_at or at,
        "claimed_at": at,
        "stages": data.stages,
        "again_at": data.again_at,
        "finished_stages": in_common(job.finished_stages, names),
    }


def _stage(job: Job, data: JobStage, at: datetime) -> Changes:
    """A job that was given back passes through its finished stages again, each `restored`, and runs none of them.

    So does, in its first iteration, a job that goes on from the work of another.
    """
    expected = next_stage_of(job)
    if expected is None:
        raise IllegalTransition("data.stage", "no worker that has its pipeline has claimed the attempt")
    if data.stage != expected.stage:
        raise IllegalTransition("data.stage", f"the next stage is {expected.stage}, not {data.stage}")
    if data.status is not expected.status:
        raise IllegalTransition("data.status", f"{data.stage} makes the job {expected.status}, not {data.status}")
    _agree("data.iteration", data.iteration, expected.iteration)
    if data.restored is not expected.restored:
        word = "is finished and cannot run again" if expected.restored else "is not finished, nothing to restore"
        raise IllegalTransition("data.restored", f"{data.stage} {word}")
    if data.stages not in (None, job.stages):
        raise IllegalTransition("data.stages", "the attempt was claimed with other ones")
    return {
        "stage": data.stage,
        "iteration": data.iteration,
        "tried": job.tried if data.restored or _is_about(job.tried, data) else None,
        "cycle_over": False,
        "finished_stages": expected.finished,
        "checkpoint": data.checkpoint or job.checkpoint,
    }


def _is_about(tried: Tried | None, data: JobStage) -> bool:
    return tried is not None and (tried.stage, tried.iteration) == (data.stage, data.iteration)


def _try_failed(job: Job, data: JobTryFailed, at: datetime) -> Changes:
    """It counts over all attempts, until the stage is finished."""
    tried = data.tried
    _agree("data.tried.stage", tried.stage, job.stage)
    _agree("data.tried.iteration", tried.iteration, job.iteration)
    tries = 0 if job.tried is None else job.tried.tries
    if tried.tries != tries + 1:
        raise IllegalTransition("data.tried.tries", f"the stage has failed {tries} times before, not {tried.tries - 1}")
    if tried.tries > tried.most:
        raise IllegalTransition("data.tried.tries", f"the stage is run again {tried.most} times at most")
    return {"tried": tried}


def _awaiting_confirmation(job: Job, data: JobAwaitingConfirmation, at: datetime) -> Changes:
    question = data.question or whether_to_continue(job.attempt, batch=data.next_batch)
    _agree("data.question.id", question.id, question_id(job.attempt))
    _agree("data.iterations_used", data.iterations_used, job.iteration)
    return {
        "question": question,
        "checkpoint": data.checkpoint or job.checkpoint,
        "expires_at": data.expires_at,
        "reminders": 0,
        **_iteration_after(job, question),
        **_let_go(job, at),
    }


def _iteration_after(job: Job, question: Question) -> Changes:
    """The stage that wants to know something begins again in the same iteration; "Continue?" comes after its end."""
    if question.kind is QuestionKind.CONTINUE:
        _in_last_stage(job)
        return {"cycle_over": True, "finished_stages": kept_by_iteration(job)}
    if question.key is None:
        raise IllegalTransition("data.question.key", "a stage's question has a key, by which it finds its answer")
    return {}


def _reminded(job: Job, data: JobConfirmationReminder, at: datetime) -> Changes:
    return {"reminders": job.reminders + 1}


def _confirmed(job: Job, data: JobConfirmed, at: datetime) -> Changes:
    _open_question(job, QuestionKind.CONTINUE)
    granted = {"confirmations": job.confirmations + 1, "granted": job.granted + data.batch}
    return {**granted, **_CLOSED, "aged_at": at}


def _answered(job: Job, data: JobAnswered, at: datetime) -> Changes:
    """The newest answer to a key is the one that holds."""
    question = _open_question(job, QuestionKind.ASK)
    _agree("data.question", data.question, question.id)
    others = tuple(each for each in job.answers if each.key != question.key)
    if len(others) >= MOST_ANSWERS:
        raise IllegalTransition("data.question", f"a job has {MOST_ANSWERS} answers at most")
    answers = (*others, KeptAnswer(key=question.key or "", name=data.answer))
    return {"answers": answers, **_CLOSED, "aged_at": at}


def _open_question(job: Job, kind: QuestionKind) -> Question:
    question = job.question or whether_to_continue(job.attempt)  # of an event that this reader stepped over
    if question.kind is not kind:
        raise IllegalTransition("event", f"the open question is {question.kind.value}, and this is the end of {kind}")
    return question


def _given_back(job: Job, data: JobGivenBack, at: datetime) -> Changes:
    if data.finished_stages != job.finished_stages[: len(data.finished_stages)]:
        finished = ", ".join(job.finished_stages) or "none"
        raise IllegalTransition("data.finished_stages", f"finished are {finished}, in this order")
    began = job.worker is not None or job.status is not Status.STARTING
    return {
        "lost": job.lost + (data.reason is GivenBackReason.LOST and began),
        "finished_stages": data.finished_stages,
        "checkpoint": data.checkpoint or job.checkpoint,
        "provider": data.provider,
        "aged_at": at,
        **_let_go(job, at),
        **_put_off(data),
    }


def _put_off(data: JobGivenBack) -> Changes:
    """It enters the queue anew, when its time has come."""
    if (data.reason is GivenBackReason.RETRY) is not (data.until is not None):
        raise IllegalTransition("data.until", "a time is said exactly where a stage is to be tried again later")
    return {} if data.until is None else {"standing": None, "scheduled_for": data.until}


def _let_go(job: Job, at: datetime) -> Changes:
    """No attempt has the job any more, and it has no slot."""
    had_s = 0 if job.claimed_at is None else (at - job.claimed_at).total_seconds()
    return {"groups": (), "stage": None, "claimed_at": None, "worked_s": round(job.worked_s + max(0, had_s), 3)}


def _cancel_requested(job: Job, data: JobCancelRequested, at: datetime) -> Changes:
    """It stands until the job ends, in later attempts too: nobody can take it back, so nothing may lose it."""
    return {"cancel_requested_by": data.by}


def _cancelled(job: Job, data: JobCancelled, at: datetime) -> Changes:
    refunded = job.started_at is None
    return {**_ENDED, "quota_day": None if refunded else job.quota_day}


def _placed(job: Job, data: JobReprioritized | JobMoved, at: datetime) -> Changes:
    _agree("data.from", data.from_, job.priority)
    if (data.place is None) is not (job.standing is None):
        raise IllegalTransition("data.place", "a job has a place exactly while it is in the queue")
    standing = job.standing and job.standing.model_copy(update={"place": data.place})
    newly = data.reason is ChangeReason.AGED or data.to is not job.priority
    return {"priority": data.to, "standing": standing, "aged_at": at if newly else job.aged_at}


def _ready(job: Job, data: JobReady, at: datetime) -> Changes:
    _in_last_stage(job)
    _agree("data.iterations", data.iterations, job.iteration)
    return {**_ENDED, "result": data.result, "duration_s": data.duration_s}


def _failed(job: Job, data: JobFailed, at: datetime) -> Changes:
    failure = JobError(summary=data.summary, detail=data.detail, debug_id=data.debug_id)
    refunded = data.fault is Fault.SYSTEM
    return {**_ENDED, "failure": failure, "quota_day": None if refunded else job.quota_day}


def _in_last_stage(job: Job) -> None:
    if not is_in_last(job):
        raise IllegalTransition("data.status", f"the job is in the stage {job.stage}, which is not its last")


def _agree(field: str, said: object, known: object) -> None:
    if said != known:
        raise IllegalTransition(field, f"the job has {known}, the event says {said}")


_CLOSED: Final[Changes] = {"question": None, "expires_at": None}
_ENDED: Final[Changes] = {"groups": (), "scheduled_for": None, **_CLOSED}
_CHANGES: Final[dict[EventName, Callable[[Job, Any, datetime], Changes]]] = {
    EventName.QUEUED: _queued,
    EventName.SCHEDULED: _scheduled,
    EventName.WAITING: _waiting,
    EventName.DISPATCHED: _dispatched,
    EventName.STARTED: _started,
    EventName.STAGE: _stage,
    EventName.TRY_FAILED: _try_failed,
    EventName.AWAITING_CONFIRMATION: _awaiting_confirmation,
    EventName.CONFIRMATION_REMINDER: _reminded,
    EventName.CONFIRMED: _confirmed,
    EventName.ANSWERED: _answered,
    EventName.GIVEN_BACK: _given_back,
    EventName.CANCEL_REQUESTED: _cancel_requested,
    EventName.CANCELLED: _cancelled,
    EventName.REPRIORITIZED: _placed,
    EventName.MOVED: _placed,
    EventName.READY: _ready,
    EventName.FAILED: _failed,
}
