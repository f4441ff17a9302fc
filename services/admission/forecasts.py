"""What is known of the time to come: the leader's forecast, and what would hold a job back that nobody has submitted.

The forecast is what the leading scheduler has published, as this replica last saw it. It is made anew every few seconds
at most, so it is asked for once a second and shared by all requests in between. The prospect is the view's answers, put
together as for a real job.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from headgate_contracts import Job
from libs.capacity.answers import GroupStatus, Obstacle, Outlook, Reserved
from libs.capacity.ports import ViewReadings
from libs.capacity.projection import groups_wanted
from libs.capacity.rows import Pause, score_of
from libs.capacity.scopes import scopes_of_job
from libs.forecast.table import NAME, Forecast
from libs.policy import Policy
from libs.runtime.clock import Clock
from services.admission.domain import NewJob

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


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a new job would find there: the pauses, its pool, and the groups that it wants a slot of."""

    pauses: tuple[Pause, ...]
    pool: GroupStatus
    groups: tuple[GroupStatus, ...]

    @classmethod
    async def of(cls, new: NewJob, *, view: ViewReadings) -> Self:
        asked = new.submission
        wanted = groups_wanted(asked, user=new.user_id, project=new.project_scope)
        groups = (view.group(name, tier=asked.tier) for name in (f"pool:{asked.pool}", *wanted))
        pauses, (pool, *others) = await asyncio.gather(view.pauses(), asyncio.gather(*groups))
        return cls(pauses, pool, tuple(others))

    def prospect(self, job: Job, place: Reserved | None) -> Outlook:
        """How the job would stand, at this place or on a later day."""
        return Outlook(
            position=place and place.position,
            score=place and score_of(job.priority.class_number, place.place),
            passed=0,
            room=False,
            pauses=tuple(pause for pause in self.pauses if pause.scope in scopes_of_job(job)),
            obstacles=tuple(_obstacles(self.groups)),
            pool_slots=self.pool.limit,
            pool_active=self.pool.active,
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
