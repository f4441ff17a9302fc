"""What would hold a job back that nobody has submitted: the view's answers, put together as for a real one."""

import asyncio
from collections.abc import Iterable

from headgate_contracts import Job
from libs.capacity.answers import GroupStatus, Obstacle, Outlook, Reserved
from libs.capacity.ports import ViewReadings
from libs.capacity.projection import groups_of
from libs.capacity.rows import score_of
from libs.capacity.scopes import scopes_of_job


async def prospect_of(job: Job, place: Reserved | None, *, view: ViewReadings) -> Outlook:
    """How the job would stand, at this place or on a later day."""
    names = (f"pool:{job.submission.pool}", *groups_of(job))
    asked = (view.group(name, tier=job.submission.tier) for name in names)
    pauses, (pool, *groups) = await asyncio.gather(view.pauses(), asyncio.gather(*asked))
    return Outlook(
        position=place and place.position,
        score=place and score_of(job.priority.class_number, place.place),
        passed=0,
        room=False,
        pauses=tuple(pause for pause in pauses if pause.scope in scopes_of_job(job)),
        obstacles=tuple(_obstacles(groups)),
        pool_slots=pool.limit,
        pool_active=pool.active,
        quarantined=False,
    )


def _obstacles(groups: Iterable[GroupStatus]) -> Iterable[Obstacle]:
    for group in groups:
        if group.active >= group.limit or group.shut_until_ms is not None:
            starts = [holder.since_ms for holder in group.holders if holder.since_ms is not None]
            yield Obstacle(
                group=group.group,
                limit=group.limit,
                active=group.active,
                since_ms=max(starts, default=None),
                holders=group.holders,
                until_ms=group.shut_until_ms,
            )
