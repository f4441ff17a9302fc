"""Applications: each asks for slots outside any job, waits in line, is inside, and lets go, or dies before it does.

It speaks as a worker does, over the same commands: a grant that is lost is found by asking again. What it does is
written down in `Deeds`, where the judge finds it beside what stages did.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final, cast

from headgate_contracts.commands import AcquireLease, LeaseReply, granted_subject
from libs.twins.virtual import Process
from services.worker.subscribers import NatsScheduler
from tests.simulation.deeds import Holding, Wait
from tests.simulation.edges import Broker
from tests.simulation.visits import Visit
from tests.simulation.world import SHARD, World

ASKED_WITHIN_S: Final = 2.0
AGAIN_S: Final = 5.0
UNHEARD_AGAIN_S: Final = 0.5


class Application:
    """One of them, and all that it wants."""

    def __init__(self, world: World, name: str, visits: tuple[Visit, ...]) -> None:
        self._world = world
        self._visits = visits
        self._turns = {visit.name: asyncio.Event() for visit in visits}
        broker = Broker(world.link(Process(name, world.loop), "commands"), world.subscriptions)
        broker.subscriber(granted_subject(SHARD, "x").removesuffix("x") + "*")(self._hear)
        self._scheduler = NatsScheduler(cast("Any", broker), shard=SHARD, within_s=ASKED_WITHIN_S)

    async def live(self) -> None:
        await asyncio.gather(*map(self._visit, self._visits))

    async def _hear(self, reply: LeaseReply) -> None:
        if reply.lease in self._turns:
            self._turns[reply.lease].set()

    async def _visit(self, visit: Visit) -> None:
        await asyncio.sleep(visit.at_s)
        wait = Wait(visit.name, 0, visit.groups, self._now_s, self._now_s + visit.wait_s)
        self._world.deeds.waits.append(wait)
        life_s = None if visit.dies_after_s is None else visit.dies_after_s
        died = True
        with suppress(TimeoutError):
            async with asyncio.timeout(life_s):
                await self._come_in(visit, wait)
                died = False
        if died:
            self._world.say(f"{visit.name} of {visit.who} dies")
        wait.haunts_until_s = wait.until_s + visit.ttl_s if died and wait.ended_s is None else None
        wait.ended_s = self._now_s if wait.ended_s is None else wait.ended_s

    async def _come_in(self, visit: Visit, wait: Wait) -> None:
        ends_s = await self._turn_of(visit, wait.until_s)
        wait.ended_s = self._now_s
        if ends_s is not None and ends_s > self._now_s:
            holding = Holding(visit.name, 0, visit.groups, self._now_s, ends_s)  # until it says otherwise
            self._world.deeds.holdings.append(holding)
            await asyncio.sleep(min(visit.stays_s, ends_s - self._now_s))
            holding.ended_s = self._now_s
        await self._scheduler.give_up(visit.name)

    async def _turn_of(self, visit: Visit, until_s: float) -> float | None:
        """When its lease ends; null where its time to wait is over."""
        turn = self._turns[visit.name]
        while True:
            left_s = max(0.0, until_s - self._now_s)
            turn.clear()
            wanted = AcquireLease(
                lease=visit.name, groups=visit.groups, ttl_ms=round(visit.ttl_s * 1000), wait_ms=round(left_s * 1000)
            )
            answer = await self._scheduler.acquire(wanted)
            if isinstance(answer, LeaseReply) and answer.state == "granted" and answer.expires_ms is not None:
                return (answer.expires_ms - self._world.start_ms) / 1000
            if not left_s or (isinstance(answer, LeaseReply) and answer.state == "full"):
                return None
            is_in_line = isinstance(answer, LeaseReply) and answer.state == "waiting"
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left_s, AGAIN_S if is_in_line else UNHEARD_AGAIN_S)):
                    await turn.wait()

    @property
    def _now_s(self) -> float:
        return self._world.loop.time()
