"""What is known of the time to come: the leader's forecast, and what would hold a job back that nobody has submitted.

The forecast is what the leading scheduler has published, as this replica last saw it. It is made anew every few seconds
at most, so it is asked for once a second and shared by all requests in between. The prospect is the view's answers, put
together as for a real job.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from headgate_contracts import Job
from libs.capacity.answers import GroupStatus, Obstacle, Outlook, Reserved
from libs.capacity.ports import ViewReadings
from libs.capacity.projection import groups_of
from libs.capacity.rows import score_of
from libs.capacity.scopes import scopes_of_job
from libs.forecast.table import NAME, Forecast
from libs.policy import Policy
from libs.runtime.clock import Clock

FRESH_MS: Final = 1000


class Forecasts:
    """The newest forecast; without one, nothing is known."""

    def __init__(self, view: ViewReadings, policy: Policy, clock: Clock) -> None:
        self._view = view
        self._policy = policy
        self._clock = clock
        self._asked_ms: int | None = None
        self._seen: tuple[str | None, Forecast] = (None, Forecast.load(None, policy))

    async def current(self) -> Forecast:
        now_ms = self._clock.monotonic_ms()
        if self._asked_ms is None or now_ms - self._asked_ms >= FRESH_MS:
            text = await self._view.published(NAME)
            self._asked_ms = now_ms
            if text != self._seen[0]:
                self._seen = (text, Forecast.load(text, self._policy))
        return self._seen[1]


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
