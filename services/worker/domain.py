"""What a worker decides, as pure functions on the job as it was last seen: what follows a finished stage, failed
checks, an interruption, a conflict; what a message from the pool is worth; when a lease has ended.

Owns the way through a cycle and out of it. Refuses to know how a stage is run, or how a word of it gets into the log.

    claimed ─► scaffold ─► code ─► deps ─► checks ─┬─ passed ────────────────► ready
                  ▲                                ├─ failed, cycles left ──► scaffold of the next cycle
                  └────────────────────────────────┤
                                                   ├─ failed, batch used up ► awaiting_confirmation
                                                   └─ failed, hard cap ─────► failed (limit)

A job that goes on from earlier work walks this way from the beginning: stages that an earlier attempt finished, or the
job that it tries again, are written with `restored` and not run.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any, Final

from headgate_contracts import Event, Job, JobEvent, Stage, Status, Writer
from headgate_contracts.events import (
    JobAwaitingConfirmation,
    JobCancelled,
    JobData,
    JobDispatched,
    JobFailed,
    JobGivenBack,
    JobReady,
    JobStage,
    JobStarted,
)
from headgate_contracts.vocabulary import Fault, GivenBackReason
from libs.policy import Policy


@dataclass(frozen=True, slots=True)
class Finished:
    """The stage did its work; of `checks`: they passed."""


@dataclass(frozen=True, slots=True)
class ChecksFailed:
    """The stage ran as it should, and its checks found the work wanting."""

    summary: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The stage cannot go on. Both texts are fit for the job's user."""

    summary: str
    detail: str = ""
    fault: Fault = Fault.JOB


@dataclass(frozen=True, slots=True)
class GaveOut:
    """The machine did, under a job that did nothing wrong: no memory, no room on the disk. The attempt is left to its
    lease, and so given back as one whose worker was lost: as often as policy says, and then failed with a refund."""

    why: str


StageOutcome = Finished | ChecksFailed | Failed | GaveOut


class Interruption(IntEnum):
    """What breaks a running stage off. Where two come together, the higher one counts."""

    DRAINED = 1
    PROVIDER = 2
    FORCED = 3
    TIMED_OUT = 4
    CANCELLED = 5
    LOST = 6


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

    def kept(self, *, sent_ms: int, lease_ms: int) -> Lease:
        return Lease(max(self.ends_ms, sent_ms + lease_ms))

    def longer(self, by_ms: int, *, most_ms: int) -> Lease:
        """By an outage. It can be ours alone, and then the job is given away meanwhile: hence no longer than that."""
        by_ms = max(0, min(by_ms, most_ms - self.stretched_ms))
        return Lease(self.ends_ms + by_ms, self.stretched_ms + by_ms)

    def ended(self, now_ms: int) -> bool:
        return now_ms >= self.ends_ms


_NEXT: Final = {
    Status.STARTING: Stage.SCAFFOLD,
    Status.SCAFFOLD: Stage.CODE,
    Status.CODE: Stage.DEPS,
    Status.DEPS: Stage.CHECKS,
    Status.CHECKS: Stage.SCAFFOLD,
}


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


def claim(job: Job, worker: str) -> JobStarted:
    return JobStarted(**_about(job, job.status), worker=worker)


def next_stage(job: Job) -> JobStage:
    """The stage that follows where the job stands. After `checks` that is the first one of the next cycle."""
    stage = _NEXT[job.status]
    opens = job.cycle_over or job.status is Status.CHECKS
    finished = () if opens and job.iteration else job.finished_stages
    return JobStage(
        **_about(job, stage.status), stage=stage, iteration=job.iteration + opens, restored=stage in finished
    )


def naming(data: JobData, checkpoint: str | None) -> JobData:
    """The same with the name of the work that it hands on, where it is one that does."""
    if checkpoint is None or not isinstance(data, JobStage | JobAwaitingConfirmation | JobGivenBack):
        return data
    return data.model_copy(update={"checkpoint": checkpoint})


def checkpoint_name(job: Job, number: int) -> str:
    return f"{job.id}-{job.attempt}-{number}"


def superseded(before: str | None, job: Job) -> str | None:
    """The checkpoint that nobody needs any more: the one before, or at a good end the last. What another job left is
    that job's: others may go on from it too."""
    if before is None or before.rsplit("-", 2)[0] != job.id:
        return None
    return before if job.checkpoint != before or job.status is Status.READY else None


def after_failed_checks(
    job: Job, failed: ChecksFailed, *, policy: Policy, now: datetime, debug_id: str
) -> JobStage | JobAwaitingConfirmation | JobFailed:
    """The next cycle, the question whether to go on, or the end: by the numbers of the job's tier as they are now."""
    limits = policy.tier_limits(job.tier)
    used = job.iteration
    if used >= limits.hard_cap:
        summary = f"The checks still fail after {used} of {limits.hard_cap} iterations."
        return fail(job, Failed(summary, failed.summary, Fault.LIMIT), debug_id=debug_id)
    if used < limits.cycles_per_batch + job.granted:
        return next_stage(job)
    return JobAwaitingConfirmation(
        **_about(job, Status.AWAITING_CONFIRMATION),
        iterations_used=used,
        next_batch=min(limits.cycles_per_batch, limits.hard_cap - used),
        expires_at=now + timedelta(seconds=policy.confirmation.timeout_s),
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


def cancel(job: Job) -> JobCancelled:
    return JobCancelled(**_about(job, Status.CANCELLED), by=job.cancel_requested_by or "unknown")


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
    match why:
        case Interruption.CANCELLED:
            return cancel(job)
        case Interruption.TIMED_OUT:
            stage = "The job" if job.status is Status.STARTING else f"The stage {job.status.value}"
            timed_out = Failed(f"{stage} was ended at the deadline of its run.", fault=Fault.TIMEOUT)
            return fail(job, timed_out, debug_id=debug_id)
        case Interruption.DRAINED:
            return give_back(job)
        case Interruption.PROVIDER:
            return give_back(job, provider=provider)
        case Interruption.FORCED | Interruption.LOST:
            return None


def event_about(job: Job, data: JobData, *, event_id: str, now: datetime) -> JobEvent:
    return Event(id=event_id, writer=Writer.WORKER, time=now, data=data, sequence=job.sequence + 1)


def hands_over(*, draining_ms: int, grace_ms: int) -> bool:
    """Between two stages of a worker that is told to stop: go on, or hand over at this point where nothing is lost?

    In the first half of the grace a job may still end by itself. In the second half another stage would only be begun
    to be broken off.
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
