"""What a worker decides, as pure functions on the job as it was last seen: what follows a finished stage, failed
checks, an interruption, a conflict; what a message from the pool is worth; when a lease has ended.

Owns the way through an iteration and out of it. Refuses to know how a stage is run, or how it gets into the log.

    claimed ─► first stage ─► … ─► last stage ─┬─ passed ────────────────► ready
                  ▲                            ├─ failed, iterations left ► the next one, at the stage its author names
                  └────────────────────────────┤
                                               ├─ failed, batch used up ► awaiting_confirmation
                                               └─ failed, hard cap ─────► failed (limit)
    any stage that asks what is not answered yet ────────────► awaiting_confirmation, and then that stage again

A job that goes on from earlier work walks this way from the beginning: stages that an earlier attempt finished, or the
job that it tries again, are written with `restored` and not run.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any

from headgate_contracts import Event, Job, JobEvent, Status, Writer
from headgate_contracts.events import (
    AttemptData,
    JobAwaitingConfirmation,
    JobCancelled,
    JobData,
    JobDispatched,
    JobFailed,
    JobGivenBack,
    JobReady,
    JobStage,
    JobStarted,
    JobTryFailed,
    ModelUsage,
    Tried,
)
from headgate_contracts.questions import FailedWork, Question, whether_to_continue
from headgate_contracts.stages import Stages, next_stage_of
from headgate_contracts.vocabulary import Fault, GivenBackReason
from libs.policy import Policy
from services.worker.outcomes import ChecksFailed, Failed


class Interruption(IntEnum):
    """What breaks a running stage off. Where two come together, the higher one counts."""

    DRAINED = 1
    PROVIDER = 2
    FORCED = 3
    STAGE_TIMED_OUT = 4
    TIMED_OUT = 5
    CANCELLED = 6
    LOST = 7


@dataclass(frozen=True, slots=True)
class Claimable:
    """The attempt waits for a worker."""


@dataclass(frozen=True, slots=True)
class ToCancel:
    """The attempt waits for a worker, and somebody has asked for the end of the job."""


@dataclass(frozen=True, slots=True)
class Stale:
    """The attempt is over, or another's."""

    why: str


@dataclass(frozen=True, slots=True)
class Lease:
    """How long an attempt is ours, by our own monotonic clock.

    The view counts from when it hears a heartbeat, we count from when we sent it: from the first one on ours is the
    shorter one. Until then it counts from the dispatch, and we from the claim, so a claim is followed by one at once.
    `stretched_ms` is by how much an outage has made it longer since somebody was heard.
    """

    ends_ms: int
    stretched_ms: int = 0

    def extended(self, *, sent_ms: int, lease_ms: int) -> Lease:
        return Lease(max(self.ends_ms, sent_ms + lease_ms))

    def longer(self, by_ms: int, *, most_ms: int) -> Lease:
        """By an outage. It can be ours alone, and then the job is given away meanwhile: hence no longer than that."""
        by_ms = max(0, min(by_ms, most_ms - self.stretched_ms))
        return Lease(self.ends_ms + by_ms, self.stretched_ms + by_ms)

    def ended(self, now_ms: int) -> bool:
        return now_ms >= self.ends_ms


def worth_of(job: Job | None, dispatched: JobDispatched) -> Claimable | ToCancel | Stale:
    """What a message from the pool is worth, by the job as the log has it now."""
    if job is None:
        return Stale("the log does not know the job")
    if job.attempt != dispatched.attempt or job.status is not Status.STARTING:
        return Stale(f"the job is {job.status.value} in attempt {job.attempt}")
    if job.worker is not None:
        return Stale(f"claimed by {job.worker}")
    return Claimable() if job.cancel_requested_by is None else ToCancel()


def still_ours(job: Job | None, *, attempt: int, worker: str) -> bool:
    """Whether the attempt is this worker's to write about. Whatever else became of the job changes nothing for it."""
    return job is not None and job.status.is_running and (job.attempt, job.worker) == (attempt, worker)


def claim(job: Job, worker: str, stages: Stages) -> JobStarted:
    """With no stages where the worker has no such pipeline: what follows is the job's failure."""
    return JobStarted(**_about(job, job.status), worker=worker, stages=stages.titles, again_at=stages.again_at)


def next_stage(job: Job) -> JobStage:
    """The stage that follows where the job stands. After the last it is the one that begins another iteration."""
    following = next_stage_of(job)
    if following is None:
        raise AssertionError("a stage of an attempt that is not claimed, or of no pipeline")
    return JobStage(
        **_about(job, following.status),
        stage=following.stage,
        stages=None if job.stage else job.stages,
        iteration=following.iteration,
        restored=following.restored,
    )


def naming(data: JobData, checkpoint: str | None, *, usage: tuple[ModelUsage, ...] = ()) -> JobData:
    """The same with the name of the work that it hands on, where it is one that does, and with what its attempt has
    asked of models meanwhile."""
    update: dict[str, Any] = {}
    if checkpoint is not None and isinstance(data, JobStage | JobAwaitingConfirmation | JobGivenBack):
        update["checkpoint"] = checkpoint
    if usage and isinstance(data, AttemptData):
        update["usage"] = usage
    return data.model_copy(update=update) if update else data


def usage_of(data: JobData) -> tuple[ModelUsage, ...]:
    """What the event tells of calls to models."""
    return data.usage if isinstance(data, AttemptData) else ()


def checkpoint_name(job: Job, number: int) -> str:
    return f"{job.id}-{job.attempt}-{number}"


def superseded(before: str | None, job: Job) -> str | None:
    """The checkpoint that is not needed any more: the one before, or at a good end the last. What another job left is
    that job's: others may go on from it too."""
    if before is None or before.rsplit("-", 2)[0] != job.id:
        return None
    return before if job.checkpoint != before or job.status is Status.READY else None


def after_failed_checks(
    job: Job, failed: ChecksFailed, *, policy: Policy, now: datetime, debug_id: str
) -> JobStage | JobAwaitingConfirmation | JobFailed:
    """The next iteration, the question whether to go on, or the end: by the numbers that its tier has now."""
    limits = policy.tier_limits(job.tier)
    used = job.iteration
    if used >= limits.hard_cap:
        summary = f"The checks still fail after {used} of {limits.hard_cap} iterations."
        return fail(job, Failed(summary, _both(failed), Fault.LIMIT), debug_id=debug_id)
    if used < limits.cycles_per_batch + job.granted:
        return next_stage(job)
    batch = min(limits.cycles_per_batch, limits.hard_cap - used)
    reason = FailedWork(summary=failed.summary[:500], detail=failed.detail[:4096])
    return JobAwaitingConfirmation(
        **_about(job, Status.AWAITING_CONFIRMATION),
        question=whether_to_continue(job.attempt, batch=batch, reason=reason),
        iterations_used=used,
        next_batch=batch,
        expires_at=now + timedelta(seconds=policy.confirmation.timeout_s),
    )


def ask(job: Job, question: Question, *, policy: Policy, now: datetime) -> JobAwaitingConfirmation:
    """The stage begins again once its question is answered."""
    return JobAwaitingConfirmation(
        **_about(job, Status.AWAITING_CONFIRMATION),
        question=question,
        iterations_used=job.iteration,
        expires_at=now + timedelta(seconds=policy.confirmation.timeout_s),
    )


def _both(failed: ChecksFailed) -> str:
    return f"{failed.summary}\n{failed.detail}" if failed.detail else failed.summary


def tries_of(job: Job) -> int:
    """How often its stage has failed by something passing, over all attempts: the log has it."""
    return 0 if job.tried is None else job.tried.tries


def try_again(job: Job, failed: Failed, *, most: int, pause_s: float, now: datetime) -> JobTryFailed | None:
    """Null where it has been tried often enough. `most` and `pause_s` are the author's: `StageRules`."""
    tries = tries_of(job) + 1
    if job.stage is None or tries > most:
        return None
    pause_s = max(failed.again_after_s or 0, pause_s)
    tried = Tried(
        stage=job.stage,
        iteration=job.iteration,
        tries=tries,
        most=most,
        summary=failed.summary[:500] or "It failed.",
        detail=failed.detail[:4096],
        again_at=now + timedelta(seconds=pause_s),
    )
    return JobTryFailed(**_about(job, job.status), tried=tried)


def put_off(job: Job, until: datetime) -> JobGivenBack:
    """Hand the job over until its stage is tried again: so long a pause is none to hold slots in."""
    return JobGivenBack(
        **_about(job, Status.SCHEDULED),
        reason=GivenBackReason.RETRY,
        until=until,
        finished_stages=job.finished_stages,
        checkpoint=job.checkpoint,
    )


def finish(job: Job, *, result: str | None, duration_s: float) -> JobReady:
    return JobReady(**_about(job, Status.READY), result=result, duration_s=duration_s, iterations=job.iteration)


def fail(job: Job, failed: Failed, *, debug_id: str) -> JobFailed:
    return JobFailed(
        **_about(job, Status.FAILED),
        summary=failed.summary[:500] or "The job failed.",
        detail=failed.detail[:4096],
        debug_id=debug_id,
        fault=failed.fault,
    )


def cancel(job: Job, *, usage: tuple[ModelUsage, ...] = ()) -> JobCancelled:
    return JobCancelled(**_about(job, Status.CANCELLED), by=job.cancel_requested_by or "unknown", usage=usage)


def give_back(job: Job, *, provider: str | None = None) -> JobGivenBack:
    """Hand the job over, or let it wait for a provider. Finished is what the log says is finished: a stage counts once
    the next one is written."""
    return JobGivenBack(
        **_about(job, Status.QUEUED),
        reason=GivenBackReason.PROVIDER if provider else GivenBackReason.DRAINED,
        provider=provider,
        finished_stages=job.finished_stages,
        checkpoint=job.checkpoint,
    )


def broken_off(job: Job, why: Interruption, *, debug_id: str, provider: str | None = None) -> JobData | None:
    """What an interruption makes of the job; null where nothing may be written any more."""
    if late := too_late(job, why):
        return fail(job, late, debug_id=debug_id)
    match why:
        case Interruption.CANCELLED:
            return cancel(job)
        case Interruption.PROVIDER:
            return give_back(job, provider=provider)
        case Interruption.DRAINED:
            return give_back(job)
        case _:  # forced or lost: it is not ours any more
            return None


def too_late(job: Job, why: Interruption) -> Failed | None:
    """What its user is told where the run or the stage took longer than it may."""
    match why:
        case Interruption.TIMED_OUT:
            stage = "The job" if job.stage is None else f"The stage {job.stage}"
            return Failed(f"{stage} was ended at the deadline of its run.", fault=Fault.TIMEOUT)
        case Interruption.STAGE_TIMED_OUT:
            return Failed(f"The stage {job.stage} took longer than it may.", fault=Fault.TIMEOUT)
        case _:
            return None


def event_about(job: Job, data: JobData, *, event_id: str, now: datetime) -> JobEvent:
    return Event(id=event_id, writer=Writer.WORKER, time=now, data=data, sequence=job.sequence + 1)


def hands_over(*, draining_ms: int, grace_ms: int) -> bool:
    """Between two stages of a worker that is told to stop: go on, or hand over at this point where nothing is lost?

    In the first half of the grace a job may still end by itself. In the second half another stage would only be begun
    to be broken off. What still runs when it ends: `Attempts.stop`.
    """
    return 2 * draining_ms >= grace_ms


def run_budget_s(job: Job, *, dispatched_at: datetime, policy: Policy) -> float:
    """How long the attempt may take. A deadline is counted from its own event's time: one clock wrote both."""
    if job.deadline is None:
        return policy.runs.timeout_s
    return max(0.0, (job.deadline - dispatched_at).total_seconds())


def _about(job: Job, status: Status) -> dict[str, Any]:
    return {
        "job_id": job.id,
        "user_id": job.user_id,
        "project_id": job.project_id,
        "attempt": job.attempt,
        "status": status,
    }
