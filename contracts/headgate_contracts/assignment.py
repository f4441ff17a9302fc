"""What a dispatch tells a worker about its job, and the job as a worker has it by that.

    scheduler   dispatched = assignment_of(job) ──► the log ──► worker   assigned(dispatched, …)

So a worker appends its claim after the very event it was handed, and reads the job only where somebody else has written
since. Owns both directions. What a worker has no use for (the place, the estimate, labels, …) is not told, and the job
that `assigned` makes has nothing there. Whatever may happen to it while it runs can be folded onto it.
"""

from datetime import datetime
from typing import Any

from headgate_contracts.envelope import Event
from headgate_contracts.events import EarlierWork, JobDispatched, Submission
from headgate_contracts.job import Job
from headgate_contracts.vocabulary import Tier

NOTHING_YET = EarlierWork()


def assignment_of(job: Job, *, tier: Tier) -> dict[str, Any]:
    """What the dispatch of this job says beside its slots and its time. `tier` is its user's now."""
    asked = job.submission
    earlier = EarlierWork(
        iteration=job.iteration,
        cycle_over=job.cycle_over,
        finished_stages=job.finished_stages,
        checkpoint=job.checkpoint,
        granted=job.granted,
        worked_s=job.worked_s,
        tried=job.tried,
        answers=job.answers,
    )
    return {
        "pool": asked.pool,
        "tier": tier,
        "pipeline": asked.pipeline,
        "shared": asked.shared,
        "input_digest": asked.input_digest,
        "traceparent": asked.traceparent,
        "tracestate": asked.tracestate,
        "earlier": None if earlier == NOTHING_YET else earlier,
        "cancel_requested_by": job.cancel_requested_by,
    }


def assigned(dispatched: Event[JobDispatched], *, seq: int, at: datetime) -> Job:
    """The job after its dispatch, as far as that tells it. `seq` and `at` are its sequence and time in the log."""
    data = dispatched.data
    return Job(
        id=data.job_id,
        user_id=data.user_id,
        project_id=data.project_id,
        submission=Submission(
            tier=data.tier,
            pool=data.pool,
            pipeline=data.pipeline,
            shared=data.shared,
            submitted_at=at,
            input_digest=data.input_digest,
            traceparent=data.traceparent,
            tracestate=data.tracestate,
        ),
        status=data.status,
        priority=Submission.model_fields["priority"].default,
        sequence=dispatched.sequence or 0,
        seq=seq,
        created_at=at,
        updated_at=at,
        attempt=data.attempt,
        groups=data.groups,
        users_tier=data.tier,
        dispatched_at=at,
        deadline=data.deadline,
        cancel_requested_by=data.cancel_requested_by,
        **dict(data.earlier or NOTHING_YET),
    )
