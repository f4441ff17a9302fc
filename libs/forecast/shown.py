"""A job as its owner sees it: the folded job, the policy of today, and where it stands.

Pure. Owns the message of each state and the usage counters.
"""

from datetime import UTC, datetime, timedelta

from headgate_contracts import Job, Status, Tier
from headgate_contracts.commands import JobProgress
from headgate_contracts.events import Tried
from headgate_contracts.shown import (
    Iterations,
    QueuePart,
    ShownJob,
    ShownModelUsage,
    ShownProgress,
    ShownQuestion,
    Upgrade,
    Usage,
    WaitingOn,
)
from headgate_contracts.usage import NUMBERS
from headgate_contracts.vocabulary import QuestionKind
from libs.policy import Policy


def shown_job(
    job: Job,
    *,
    policy: Policy,
    used_today: int,
    now: datetime,
    debug_id: str,
    title: str | None = None,
    progress: JobProgress | None = None,
    queue: QueuePart | None = None,
    waiting_on: tuple[WaitingOn, ...] = (),
) -> ShownJob:
    """Everything about the job that its owner may see."""
    asked = job.submission
    iterations = iterations_of(job, policy)
    return ShownJob(
        id=job.id,
        title=title or None,
        status=job.status,
        project_id=asked.project_name or job.project_id,
        user_id=job.user_id,
        tier=asked.tier,
        priority=job.priority,
        pool=asked.pool,
        pipeline=asked.pipeline,
        attempt=job.attempt,
        created_at=job.created_at,
        updated_at=job.updated_at,
        stage=job.stage,
        stages=job.stages,
        tried=job.tried,
        message=queue.position_message if queue else message_of(job, iterations, now=now),
        progress=progress_of(job, progress),
        question=question_of(job),
        model_usage=model_usage_of(job),
        queue=queue,
        waiting_on=waiting_on,
        scheduled_for=job.scheduled_for,
        iterations=iterations,
        usage=usage_of(job, policy, used_today=used_today, now=now),
        upgrade=None if any(each.reason == "paused" for each in waiting_on) else upgrade_of(job, policy),
        error=job.failure,
        result_url=f"/v1/jobs/{job.id}/result" if job.result else None,
        workflow=asked.workflow,
        labels=dict(asked.labels),
        debug_id=debug_id,
    )


def model_usage_of(job: Job) -> ShownModelUsage | None:
    """What it has asked of models, in all and by stage."""
    if not job.model_usage:
        return None
    sums = {name: sum(getattr(each, name) for each in job.model_usage) for name in NUMBERS}
    return ShownModelUsage(**sums, stages=job.model_usage)


def message_of(job: Job, iterations: Iterations, *, now: datetime) -> str:
    """One sentence about a job that has no place in the queue to tell."""
    match job.status:
        case Status.QUEUED:
            return "In the queue"
        case Status.SCHEDULED if job.tried is not None:
            return tried_message(job.tried)
        case Status.SCHEDULED:
            return scheduled_message(job.scheduled_for, now=now)
        case Status.WAITING:
            return f"Phase {job.submission.phase}: waits for the phase before it"
        case Status.AWAITING_CONFIRMATION:
            return asked_message(job, iterations)
        case Status.FAILED:
            return job.failure.summary if job.failure else "Failed"
        case Status.READY | Status.CANCELLED:
            return job.status.value.capitalize()
        case _:
            iteration = f", iteration {job.iteration}" if job.iteration > 1 else ""
            again = (
                f", try {job.tried.tries + 1} of {job.tried.most + 1}"
                if job.tried and job.tried.stage == job.stage
                else ""
            )
            stopping = ", stopping" if job.cancel_requested_by else ""
            return f"{title_of_stage(job) or 'Starting'}{iteration}{again}{stopping}"


def asked_message(job: Job, iterations: Iterations) -> str:
    """What a stage wants to know, or whether to go on: by the numbers of today, which may have changed since."""
    if job.question is not None and job.question.kind is QuestionKind.ASK:
        return job.question.text
    limit = iterations.batch * (1 + iterations.confirmations)
    more = min(iterations.batch, iterations.cap - iterations.used)
    return f"{iterations.used} of {limit} iterations used. Continue for {more} more?"


def tried_message(tried: Tried) -> str:
    """What failed, and when it is tried again, of a job that has given its slots back meanwhile."""
    at = f"{tried.again_at.astimezone(UTC):%H:%M:%S} UTC"
    return f"Tries {tried.stage} again at {at} ({tried.tries} of {tried.most}): {tried.summary}"


def title_of_stage(job: Job) -> str | None:
    """What people are told of the stage that the job is in; null where it is in none."""
    return next((stage.title for stage in job.stages if stage.name == job.stage), None)


def scheduled_message(opens_at: datetime | None, *, now: datetime) -> str:
    """`Scheduled for tomorrow`, or the day."""
    if opens_at is None:
        return "Scheduled"
    days = (opens_at.astimezone(UTC).date() - now.astimezone(UTC).date()).days
    day = {0: "today", 1: "tomorrow"}.get(days, f"{opens_at.astimezone(UTC):%Y-%m-%d}")
    return f"Scheduled for {day}"


def iterations_of(job: Job, policy: Policy) -> Iterations:
    """Iterations used and granted, by the tier's numbers of today."""
    tier = policy.tier_limits(job.tier)
    return Iterations(
        used=job.iteration, batch=tier.cycles_per_batch, cap=tier.hard_cap, confirmations=job.confirmations
    )


def usage_of(job: Job, policy: Policy, *, used_today: int, now: datetime) -> Usage:
    """The counters that stand in each reply about a job."""
    return usage(job.tier, policy, used_today=used_today, iterations=job.iteration, now=now)


def usage(tier_name: Tier, policy: Policy, *, used_today: int, now: datetime, iterations: int = 0) -> Usage:
    """The same by themselves: of iterations, those of a job that is submitted now."""
    tier = policy.tier_limits(tier_name)
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return Usage(
        jobs_used=used_today,
        jobs_remaining=max(0, tier.jobs_per_day - used_today),
        iterations_used=iterations,
        iterations_remaining=max(0, tier.hard_cap - iterations),
        daily_limit_resets_at=midnight + timedelta(days=1),
    )


def upgrade_of(job: Job, policy: Policy) -> Upgrade | None:
    """What the tier above offers, where policy says where that is. While a pause holds the job, no tier helps."""
    url = policy.tier_limits(job.tier).upgrade_url
    return Upgrade(message="Upgrade to jump ahead", url=url) if url else None


def progress_of(job: Job, told: JobProgress | None) -> ShownProgress | None:
    """What was told in the stage that the job is in; what an earlier one has told is over."""
    if told is None or not job.status.is_running or (told.attempt, told.stage) != (job.attempt, job.stage):
        return None
    return ShownProgress(fraction=told.fraction, message=told.message)


def question_of(job: Job) -> ShownQuestion | None:
    """What the job waits to be told; null where it asks nothing."""
    question, expires_at = job.question, job.expires_at
    if question is None or expires_at is None:
        return None
    return ShownQuestion(
        id=question.id,
        kind=question.kind,
        text=question.text,
        choices=question.choices,
        schema_=question.schema_,
        reason=question.reason,
        expires_at=expires_at,
    )
