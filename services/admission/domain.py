"""What admission decides about a submission, as pure functions: who may ask for what, and what job that makes.

Owns no number (policy does), no clock and no randomness: `now` and ids are arguments.
"""

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from headgate_contracts import Job, Priority, Status
from headgate_contracts.asked import JobOrder, SubmitJob, SubmitWorkflow
from headgate_contracts.events import Group, Submission
from headgate_contracts.titles import title_of
from headgate_contracts.tokens import foreign_token, project_scope
from headgate_contracts.vocabulary import UNSTARTED
from libs.policy import daily_cap
from libs.policy.daily_cap import EPOCH_DAY, DayPlace
from services.admission.limits import Asker, NotAllowed, canonical, submission_refusal

RETRIABLE: Final = frozenset({Status.FAILED, Status.CANCELLED})


def etag_of(job: Job) -> str:
    """The version of a job that a client has seen: its last sequence, as an entity tag."""
    return f'"{job.seq}"'


@dataclass(frozen=True, slots=True)
class NewJob:
    """A submission that is sound in itself: what it will be called, whose it is, what was asked for."""

    id: str
    user_id: str
    project_id: str
    submission: Submission
    input: bytes
    title: str = ""

    @property
    def project_scope(self) -> str:
        """As its first event will have it."""
        return project_scope(self.user_id, self.project_id, shared=self.submission.shared)


def new_job(body: SubmitJob, *, job_id: str, asker: Asker) -> NewJob | NotAllowed:
    """The job that was asked for, or what is not allowed about it."""
    refusal = submission_refusal(body, asker)
    if refusal is not None:
        return refusal
    return job_of(body, body, job_id=job_id, asker=asker, run_at=body.run_at, queue_ttl_s=body.queue_ttl_s)


def job_of(frame: SubmitJob | SubmitWorkflow, order: JobOrder, *, job_id: str, asker: Asker, **more: Any) -> NewJob:
    """One job of an order and of what stands around it."""
    project_id = foreign_token(frame.project_id)
    content, shared = canonical(order.input), asker.shares(project_id)
    submission = Submission(
        tier=asker.tier,
        priority=frame.priority,
        project_name=frame.project_id if frame.project_id != project_id else None,
        shared=shared,
        pool=order.pool,
        pipeline=order.pipeline,
        groups=_groups(order, project_scope(asker.user_id, project_id, shared=shared)),
        submitted_at=asker.now,
        run_timeout_s=order.run_timeout_s,
        notify_url=frame.notify_url,
        labels=frame.labels,
        input_digest=digest_of(content),
        input_bytes=len(content),
        traceparent=asker.traceparent,
        tracestate=asker.tracestate,
        **more,
    )
    return NewJob(job_id, asker.user_id, project_id, submission, content, title_of(order.title, order.input))


@dataclass(frozen=True, slots=True)
class LeftWork:
    """What a job that is submitted again begins with: finished stages, and the workspace that holds their work. `start`
    is the stage that somebody named."""

    finished: tuple[str, ...] = ()
    checkpoint: str | None = None
    start: str | None = None


NO_WORK: Final = LeftWork()


def retried_job(job: Job, content: bytes, *, job_id: str, asker: Asker, work: LeftWork, **more: Any) -> NewJob:
    """The same submission once more, with this input and this work."""
    asked = _as_shared(job.submission, job, shared=asker.shares(job.project_id))
    submission = asked.model_copy(
        update={
            "tier": asker.tier,
            "priority": _within(asked.priority, asker),
            "submitted_at": asker.now,
            "traceparent": asker.traceparent,
            "tracestate": asker.tracestate,
            "run_at": None,
            "retry_of": job.id,
            "retry_from": work.start,
            "input_digest": digest_of(content),
            "input_bytes": len(content),
            "finished_stages": work.finished,
            "checkpoint": work.checkpoint if work.finished else None,
            **more,
        }
    )
    return NewJob(job_id, job.user_id, job.project_id, submission, content)


def same_request(new: NewJob, first: Job) -> bool:
    """Whether a repeated key asks for what the first request asked for. Time, tier, trace, with whom the project is
    shared and what is left of a retried job's work may have changed meanwhile."""
    then = first.submission
    meanwhile = ("submitted_at", "tier", "finished_stages", "checkpoint", "traceparent", "tracestate")
    if new.submission.retry_of is not None:
        meanwhile = (*meanwhile, "priority")
    now = _as_shared(new.submission, new, shared=then.shared)
    now = now.model_copy(update={name: getattr(then, name) for name in meanwhile})
    return now == then and new.project_id == first.project_id


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def digest_of_all(phases: Iterable[NewJob]) -> str:
    """What stands for all inputs of one submission."""
    digests = " ".join(each.submission.input_digest for each in phases)
    return hashlib.sha256(digests.encode()).hexdigest()


def may_be_retried(job: Job, *, start: str | None = None) -> bool:
    """From a stage that is named any job that has ended, else one that did not become ready."""
    return job.status.is_end if start is not None else job.status in RETRIABLE


def may_be_placed(job: Job) -> bool:
    """Its class and place may change: it is in the queue, or on its way there."""
    return job.status in UNSTARTED


def release_at(new: NewJob, place: DayPlace, *, spread_s: int) -> datetime:
    """When a scheduled job enters the queue."""
    return daily_cap.release_at(new.user_id, place, spread_s=spread_s, run_at=new.submission.run_at)


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


def _within(priority: Priority, asker: Asker) -> Priority:
    """A retry has no body in which to ask for less, so a class that the tier has lost becomes the highest it has."""
    highest = asker.policy.tier_limits(asker.tier).highest_priority
    return max(priority, highest, key=lambda each: each.class_number)


def _groups(order: JobOrder, scope: str) -> tuple[Group, ...]:
    if order.concurrency_group is None:
        return ()
    return (Group(name=f"group:{scope}:{order.concurrency_group}", limit=order.concurrency_limit),)


def _as_shared(submission: Submission, whose: Job | NewJob, *, shared: bool) -> Submission:
    """The same for the project of all who share it, or for the user's own: its groups go with it."""
    scope = project_scope(whose.user_id, whose.project_id, shared=shared)
    groups = tuple(
        group.model_copy(update={"name": f"group:{scope}:{group.name.rpartition(':')[2]}"})
        for group in submission.groups
    )
    return submission.model_copy(update={"shared": shared, "groups": groups})
