"""What admission decides, as pure functions: who may ask for what, and the first event of a job.

Owns no number (policy does), no clock and no randomness: `now` and ids are arguments.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from headgate_contracts import Event, Job, JobEvent, Status, Tier, Writer
from headgate_contracts.asked import SubmitJob
from headgate_contracts.events import (
    Group,
    JobCancelled,
    JobCancelRequested,
    JobConfirmed,
    JobQueued,
    JobScheduled,
    Submission,
)
from headgate_contracts.tokens import foreign_token
from headgate_contracts.vocabulary import RUNNING, QueuedWhy
from libs.policy import Policy

EPOCH_DAY: Final = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the view put a new job: what the first event records."""

    arrival: int
    place: int
    passed: tuple[str, ...]
    position: int
    day: int | None


@dataclass(frozen=True, slots=True)
class NewJob:
    """A submission that is sound in itself: what it will be called, whose it is, what was asked for."""

    id: str
    user_id: str
    project_id: str
    submission: Submission
    input: bytes


@dataclass(frozen=True, slots=True)
class NotAllowed:
    """The user may not ask for this. `field` of the body is to be changed."""

    field: str
    reason: str


def new_job(
    body: SubmitJob, *, job_id: str, user_id: str, tier: Tier, policy: Policy, now: datetime
) -> NewJob | NotAllowed:
    """The job that was asked for, or what is not allowed about it."""
    refusal = _not_allowed(body, tier, policy, now=now)
    if refusal is not None:
        return refusal
    project_id = foreign_token(body.project_id)
    content = canonical(body.input)
    submission = Submission(
        tier=tier,
        priority=body.priority,
        pool=body.pool,
        pipeline=body.pipeline,
        groups=_groups(body, project_id),
        submitted_at=now,
        run_at=body.run_at,
        queue_ttl_s=body.queue_ttl_s,
        run_timeout_s=body.run_timeout_s,
        labels=body.labels,
        input_digest=f"sha256:{hashlib.sha256(content).hexdigest()}",
    )
    return NewJob(job_id, user_id, project_id, submission, content)


def same_request(new: NewJob, first: Job) -> bool:
    """Whether a repeated key asks for what the first request asked for. Time and tier may have changed meanwhile."""
    then = first.submission
    now = new.submission.model_copy(update={"submitted_at": then.submitted_at, "tier": then.tier})
    return now == then and new.project_id == first.project_id


def queued_event(new: NewJob, place: Place, *, event_id: str, now: datetime) -> JobEvent:
    """The job enters the queue at once."""
    data = JobQueued(
        job_id=new.id,
        user_id=new.user_id,
        project_id=new.project_id,
        status=Status.QUEUED,
        attempt=0,
        why=QueuedWhy.SUBMITTED,
        arrival=place.arrival,
        place=place.place,
        passed=place.passed,
        position_original=place.position,
        quota_day=day_of(place.day),
        submission=new.submission,
    )
    return Event(event_id, Writer.ADMISSION, now, data, sequence=1)


def scheduled_event(new: NewJob, day: int, *, event_id: str, now: datetime, spread_s: int) -> JobEvent:
    """The job enters the queue on a later day."""
    data = JobScheduled(
        job_id=new.id,
        user_id=new.user_id,
        project_id=new.project_id,
        status=Status.SCHEDULED,
        attempt=0,
        scheduled_for=release_at(new, day, spread_s=spread_s),
        quota_day=day_of(day),
        submission=new.submission,
    )
    return Event(event_id, Writer.ADMISSION, now, data, sequence=1)


def cancelling_event(job: Job, *, by: str, reason: str, event_id: str, now: datetime) -> JobEvent | None:
    """The end of a job that nobody runs, the wish for the end of one that somebody does; null where it has ended."""
    if job.status.is_end:
        return None
    running = job.status in RUNNING
    model, status = (JobCancelRequested, job.status) if running else (JobCancelled, Status.CANCELLED)
    data = model(
        job_id=job.id,
        user_id=job.user_id,
        project_id=job.project_id,
        status=status,
        attempt=job.attempt,
        by=by,
        reason=reason,
    )
    return Event(event_id, Writer.ADMISSION, now, data, sequence=job.sequence + 1)


def confirming_event(job: Job, *, by: str, policy: Policy, event_id: str, now: datetime) -> JobEvent | None:
    """Another batch of cycles, as far as the hard cap goes; null where the job does not ask for one."""
    tier = policy.tier_limits(job.submission.tier)
    batch = min(tier.cycles_per_batch, tier.hard_cap - job.iteration)
    if job.status is not Status.AWAITING_CONFIRMATION or batch < 1:
        return None
    data = JobConfirmed(
        job_id=job.id,
        user_id=job.user_id,
        project_id=job.project_id,
        status=Status.QUEUED,
        attempt=job.attempt,
        by=by,
        batch=batch,
    )
    return Event(event_id, Writer.ADMISSION, now, data, sequence=job.sequence + 1)


def release_at(new: NewJob, day: int, *, spread_s: int) -> datetime:
    """When a scheduled job enters the queue: its own `run_at`, else spread over the day's first hour by its id."""
    opens = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)
    run_at = new.submission.run_at
    if run_at is not None and run_at >= opens:
        return run_at
    digest = hashlib.sha256(new.id.encode()).digest()
    return opens + timedelta(seconds=int.from_bytes(digest[:4], "big") % (spread_s + 1))


def busy_minutes(*, queued: int, cap: int, average_s: float, workers: int, step_minutes: int) -> int:
    """When a refused client should come back: the time to work off what is above the cap, rounded up to the step."""
    wait_s = (queued - cap + 1) * average_s / max(1, workers)
    return max(1, math.ceil(wait_s / 60 / step_minutes)) * step_minutes


def day_of(day: int | None) -> date | None:
    """A day as events carry it."""
    return None if day is None else EPOCH_DAY + timedelta(days=day)


def day_number(moment: datetime) -> int:
    """The UTC day of a moment, as the view counts it."""
    return (moment.astimezone(UTC).date() - EPOCH_DAY).days


def canonical(content: Mapping[str, Any]) -> bytes:
    """An input as bytes that are the same for the same content."""
    return json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def _not_allowed(body: SubmitJob, tier: Tier, policy: Policy, *, now: datetime) -> NotAllowed | None:
    highest = policy.tier_limits(tier).highest_priority
    if body.priority.class_number < highest.class_number:
        return NotAllowed("priority", f"your tier may ask for {highest.value} at most")
    if (body.run_timeout_s or 0) > policy.runs.max_timeout_s:
        return NotAllowed("run_timeout_s", f"at most {policy.runs.max_timeout_s:g} seconds are allowed")
    days = policy.queue.horizon_days
    if body.run_at is not None and body.run_at > now + timedelta(days=days):
        return NotAllowed("run_at", f"at most {days} days ahead are allowed")
    if len(canonical(body.input)) > policy.submissions.max_input_bytes:
        return NotAllowed("input", f"at most {policy.submissions.max_input_bytes} bytes as JSON are taken")
    if body.concurrency_limit is not None and body.concurrency_group is None:
        return NotAllowed("concurrency_limit", "a limit needs a concurrency_group to hold for")
    return None


def _groups(body: SubmitJob, project_id: str) -> tuple[Group, ...]:
    if body.concurrency_group is None:
        return ()
    name = f"group:{project_id}:{body.concurrency_group}"
    return (Group(name=name, limit=body.concurrency_limit),)
