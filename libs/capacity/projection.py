"""From a folded job and the policy to what the view keeps: the row, its groups, its timers, the default limits.

Pure. Owns which groups a job needs and when something is due about it: an unanswered question's reminder and end too.
Refuses to count, and to decide what comes of it.
"""

from datetime import datetime, timedelta

from headgate_contracts import Job, Status, Tier
from headgate_contracts.events import Submission
from libs.capacity.rooms import held_bytes
from libs.capacity.rows import Row
from libs.capacity.scopes import owners_of
from libs.policy import Policy
from libs.policy.daily_cap import EPOCH_DAY

OF_JOBS = ("user:", "project:", "pool:")  # and `workflows`: their slots are all in the log


def row_of(job: Job, policy: Policy) -> Row:
    """The job as the view keeps it."""
    asked, standing = job.submission, job.standing
    return Row(
        id=job.id,
        status=job.status.value,
        seq=job.seq,
        first_seq=job.first_seq,
        attempt=job.attempt,
        user=job.user_id,
        project=job.project_scope,
        workflow=asked.workflow,
        pool=asked.pool,
        tier=asked.tier.value,
        class_number=job.priority.class_number,
        boost=policy.tier_limits(asked.tier).boost,
        arrival=standing and standing.arrival,
        place=standing.place if standing and job.status is Status.QUEUED else None,
        entered_ms=standing and epoch_ms(standing.entered_at),
        groups=groups_of(job),
        gates=gates_of(job),
        limits={group.name: group.limit for group in asked.groups if group.limit is not None},
        holder=job.holder,
        started_ms=epoch_ms(job.dispatched_at) if job.holder and job.dispatched_at else None,
        worker=job.worker,
        cancelling=job.cancel_requested_by is not None,
        quota_day=job.quota_day and (job.quota_day - EPOCH_DAY).days,
        timers=timers_of(job, policy),
        input_bytes=held_bytes(asked.input_bytes),
        input_until_ms=input_until_ms(job, policy),
        job=job.model_dump_json(exclude_defaults=True, by_alias=True),
    )


def said_in_rows(policy: Policy) -> tuple[object, ...]:
    """What of a policy a row depends on: where this is another, rows have to be made again."""
    boosts = tuple(policy.tier_limits(tier).boost for tier in Tier)
    order, asked = policy.order, policy.confirmation
    ageing = order.ageing_after_s, order.ageing_ceiling
    return boosts, ageing, asked, policy.queue.default_ttl_s, policy.leases.heartbeat_s, policy.retention.inputs_days


def groups_of(job: Job) -> tuple[str, ...]:
    """Every group the job needs a slot of. A running one holds what its dispatch named, whatever it needs today."""
    if job.status.is_running and job.groups:
        return job.groups
    return groups_wanted(job.submission, user=job.user_id, project=job.project_scope)


def groups_wanted(asked: Submission, *, user: str, project: str) -> tuple[str, ...]:
    """The same of a job that does not run."""
    workflows = ("workflows",) if asked.workflow else ()
    named = (group.name for group in asked.groups)
    return tuple(dict.fromkeys((*owners_of(user, project), *workflows, *named)))


def gates_of(job: Job) -> tuple[str, ...]:
    """What must not be shut for the job to start: the provider that it was given back for."""
    return (f"llm:{job.provider}",) if job.provider and job.status is Status.QUEUED else ()


def is_inner(group: str) -> bool:
    """Whether leases want slots of the group too, of which the log does not tell."""
    return group != "workflows" and not group.startswith(OF_JOBS)


def timers_of(job: Job, policy: Policy) -> dict[str, int]:
    """What is due about the job, by kind. A timer that fires is an event, and the event sets the next one."""
    match job.status:
        case Status.SCHEDULED:
            due = {"release": job.scheduled_for}
        case Status.QUEUED:
            return _queue_timers(job, policy)
        case Status.AWAITING_CONFIRMATION:
            return _question_timers(job, policy)
        case status if status.is_running:
            due = {"deadline": _overdue_at(job, policy)}
        case _:
            due = {}
    return {kind: epoch_ms(moment) for kind, moment in due.items() if moment is not None}


def input_until_ms(job: Job, policy: Policy) -> int | None:
    """Until when the job can be submitted again, and what it was made from is kept; null while it is unfinished."""
    if not job.status.is_end:
        return None
    return epoch_ms(job.updated_at) + policy.retention.inputs_days * 86_400_000


def defaults_of(policy: Policy) -> dict[str, int]:
    """The limits that hold where no operator has set one, under the names by which the view looks them up."""
    limits = {"group": policy.concurrency.default_limit, "llm:global": policy.providers.global_limit}
    for tier in Tier:
        limits[f"user/{tier.value}"] = policy.tier_limits(tier).jobs_per_user
        limits[f"project/{tier.value}"] = policy.tier_limits(tier).jobs_per_project
    for provider, limit in policy.providers.limits.items():
        limits[f"llm:{provider}"] = limit
    for group, limit in policy.concurrency.limits.items():
        limits[group] = limit
        if ":" not in group:
            limits[f"group/{group}"] = limit  # of every project's group of that name
    return limits


def epoch_ms(moment: datetime) -> int:
    """A moment as milliseconds since 1970."""
    return round(moment.timestamp() * 1000)


def _overdue_at(job: Job, policy: Policy) -> datetime | None:
    """When a run is over that its worker has not ended. A worker does, a while after its claim, and says so once it has
    ended: whoever frees its slots sooner gives them to another beside it."""
    if job.deadline is None:
        return None
    over_at = job.deadline + timedelta(seconds=policy.leases.heartbeat_s)
    if job.worker is None or job.claimed_at is None or job.dispatched_at is None:
        return over_at
    return over_at + (job.claimed_at - job.dispatched_at)


def _queue_timers(job: Job, policy: Policy) -> dict[str, int]:
    if job.standing is None:
        return {}
    entered_ms = epoch_ms(job.standing.entered_at)
    timers: dict[str, int] = {}
    if policy.order.risen(job.priority):
        since_ms = epoch_ms(job.aged_at) if job.aged_at else entered_ms
        timers["age"] = since_ms + _ms(policy.order.ageing_after_s)
    if job.started_at is None:  # at the earliest: what does not count is added when it comes due
        timers["queue_ttl"] = entered_ms + _ms(policy.queue.ttl_s(job.submission.queue_ttl_s))
    return timers


def _question_timers(job: Job, policy: Policy) -> dict[str, int]:
    if job.expires_at is None:
        return {}
    expires_ms = epoch_ms(job.expires_at)
    timers = {"confirm_timeout": expires_ms}
    rules = policy.confirmation
    if job.reminders < len(rules.reminders_s):
        timers["remind"] = expires_ms - _ms(rules.timeout_s - rules.reminders_s[job.reminders])
    return timers


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
