"""What would hold a job back that nobody has submitted: the view's answers, put together as for a real one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from headgate_contracts import Job, Tier
from libs.capacity.answers import GroupStatus, Obstacle, Outlook, Reserved
from libs.capacity.projection import groups_of
from libs.capacity.rows import Pause, score_of
from libs.policy import Policy
from services.admission.ports import View


async def prospect_of(job: Job, place: Reserved | None, *, view: View, policy: Policy) -> Outlook:
    """How the job would stand, at this place or on a later day."""
    pool, *groups = await asyncio.gather(*map(view.group, (f"pool:{job.submission.pool}", *groups_of(job))))
    pauses = await view.pauses()
    return Outlook(
        position=place and place.position,
        score=place and score_of(job.priority.class_number, place.place),
        passed=0,
        room=False,
        pauses=tuple(_that_hold(job, pauses)),
        obstacles=tuple(_obstacles(job, groups, policy)),
        pool_slots=pool.limit,
        pool_active=pool.active,
        quarantined=False,
    )


def _that_hold(job: Job, pauses: Iterable[Pause]) -> Iterable[Pause]:
    asked = job.submission
    scopes = {"all", f"priority:{job.priority.value}", f"pool:{asked.pool}", *groups_of(job)}
    scopes |= {f"workflow:{asked.workflow}"} if asked.workflow else set()
    return (pause for pause in pauses if pause.scope in scopes)


def _obstacles(job: Job, groups: Iterable[GroupStatus], policy: Policy) -> Iterable[Obstacle]:
    for group in groups:
        limit = _limit(job, group, policy)
        if group.active >= limit or group.shut_until_ms is not None:
            starts = [holder.since_ms for holder in group.holders if holder.since_ms is not None]
            yield Obstacle(
                group=group.group,
                limit=limit,
                active=group.active,
                since_ms=max(starts, default=None),
                holders=group.holders,
                until_ms=group.shut_until_ms,
            )


def _limit(job: Job, group: GroupStatus, policy: Policy) -> int:
    """The job's own tier counts. Who asks about a group alone is told of another tier, where nobody has set a limit."""
    name = {"user": "jobs_per_user", "project": "jobs_per_project"}.get(group.group.partition(":")[0])
    if name is None or group.limit not in {getattr(policy.tier_limits(tier), name) for tier in Tier}:
        return group.limit
    return getattr(policy.tier_limits(job.submission.tier), name)
