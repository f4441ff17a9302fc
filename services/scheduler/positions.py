"""Where waiting jobs stand: asked for by the notifier for its snapshots, and told by the leader when it changes.

    changed?   every queued job's standing is compared with what was told last
    told       to `headgate.live.v1.<shard>.position.<user>.<job>`, at most 4 times a second, all of them every 5 s

Owns what was told last. A lost message costs nothing: the next round tells it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from headgate_contracts import Job, Status
from headgate_contracts.commands import PositionChanged
from headgate_contracts.envelope import utc
from libs.capacity.answers import Outlook
from libs.capacity.errors import ViewLost, ViewUnavailable
from libs.capacity.ledger import Ledger
from libs.capacity.ports import View
from libs.capacity.projection import EPOCH_DAY
from libs.forecast.standing import queue_part, waiting_on
from libs.policy import Policy
from libs.runtime.clock import Clock

Tell = Callable[[str, PositionChanged], Awaitable[None]]


class Leads(Protocol):
    @property
    def leads(self) -> bool: ...


async def position_of(job: Job, *, view: View, clock: Clock) -> PositionChanged:
    """Where this job stands now."""
    today = (utc(clock.now_ms()).date() - EPOCH_DAY).days
    outlook, used = await asyncio.gather(view.outlook(job.id), view.day_used(job.user_id, today))
    return _position(job, outlook, used_today=used)


@dataclass(slots=True)
class Announcer:
    """Tells positions while its replica leads."""

    ledger: Ledger
    view: View
    policy: Policy
    clock: Clock
    leader: Leads
    tell: Tell

    async def run(self, stopping: asyncio.Event) -> None:
        told: dict[str, PositionChanged] = {}
        all_told_ms = 0
        while not stopping.is_set():
            await self.clock.sleep_ms(1000 // self.policy.stream.positions_per_second)
            if not self.leader.leads:
                told.clear()
                continue
            now_ms = self.clock.monotonic_ms()
            if now_ms - all_told_ms >= self.policy.stream.position_every_s * 1000:
                told.clear()
                all_told_ms = now_ms
            told = await self._round(told)

    async def _round(self, told: dict[str, PositionChanged]) -> dict[str, PositionChanged]:
        queued = [job for job in self.ledger.jobs.values() if job.status is Status.QUEUED]
        try:
            outlooks = await asyncio.gather(*(self.view.outlook(job.id) for job in queued))
        except (ViewLost, ViewUnavailable):
            return told
        standing = {job.id: _position(job, seen) for job, seen in zip(queued, outlooks, strict=True)}
        for job in queued:
            if told.get(job.id) != standing[job.id]:
                await self.tell(job.user_id, standing[job.id])
        return standing


def _position(job: Job, outlook: Outlook | None, *, used_today: int | None = None) -> PositionChanged:
    return PositionChanged(
        job_id=job.id,
        queue=queue_part(job, outlook),
        waiting_on=waiting_on(job, outlook),
        used_today=used_today,
    )
