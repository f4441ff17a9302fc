"""Users of slots over HTTP: each takes one, extends it at a third of its time as the client does, and lets go, or dies.

It counts by its own clock from when it asked, so it never believes to hold what the server has ended. What it did is in
`Deeds`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from libs.twins.virtual import Process
from services.admission.leasing import Held, LeaseWanted, NoneFree
from tests.simulation.admissions import NoAnswer, Unavailable, UseCases, ask
from tests.simulation.deeds import Holding, Wait
from tests.simulation.network import Link
from tests.simulation.user_leases import UserLease
from tests.simulation.world import World

BEYOND_S: Final = 8.0  # a request that waits is answered so long after its time at the latest
EXTENDED_WITHIN_S: Final = 5.0
AGAIN_S: Final = 0.5
GIVEN_BACK_WITHIN_S: Final = 5.0
ANSWERED_S: Final = 2.0  # what waits in line is looked at so often


class SlotUser:
    """One of them, with its lease."""

    def __init__(self, world: World, lease: UserLease) -> None:
        self._world = world
        self._lease = lease
        self._link = Link(world.network, Process(lease.name, world.loop), "clients")
        self._ends_s = 0.0  # by its own clock
        self._told_ms = 0

    async def live(self) -> None:
        lease = self._lease
        await asyncio.sleep(lease.at_s)
        wait = Wait(lease.name, 0, (lease.group,), self._now_s, self._now_s + lease.wait_s)
        self._world.deeds.waits.append(wait)
        died = True
        with suppress(TimeoutError):
            async with asyncio.timeout(lease.dies_after_s):
                if await self._taken(wait):
                    await self._inside()
                died = False
        if died:
            self._world.say(f"{lease.name} of {lease.user} dies")
        if died or wait.ended_s is None:  # a request under way may still be granted
            wait.haunts_until_s = self._may_be_held_until_s(wait)
        wait.ended_s = self._now_s if wait.ended_s is None else wait.ended_s
        if not died:
            await self._give_back()

    async def _taken(self, wait: Wait) -> bool:
        """Whether it is inside."""
        while True:
            asked_s, left_s = self._now_s, max(0.0, wait.until_s - self._now_s)
            wanted = self._wanted(wait_ms=round(left_s * 1000))
            outcome = await self._asked(partial(_take, wanted), within_s=left_s + BEYOND_S)
            if isinstance(outcome, Held):
                self._kept(outcome, asked_s)
                wait.ended_s = self._now_s
                return self._now_s < self._due_s or await self._extended()
            if isinstance(outcome, NoneFree):  # and it stands in no line any more
                wait.ended_s = self._now_s
            if wait.ended_s is not None or not left_s:
                return False
            await asyncio.sleep(AGAIN_S)

    async def _inside(self) -> None:
        lease = self._lease
        holding = Holding(lease.name, 0, (lease.group,), self._now_s, self._ends_s, outlives_view=True)
        self._world.deeds.holdings.append(holding)
        leaves_s = self._now_s + lease.stays_s
        while self._now_s < leaves_s:
            await asyncio.sleep(max(0.0, min(leaves_s, self._due_s) - self._now_s))
            if self._now_s < leaves_s and not await self._extended():
                break
            holding.ended_s = self._ends_s  # where nothing more is heard of it
        holding.ended_s = min(self._now_s, self._ends_s)

    async def _extended(self) -> bool:
        """Whether it goes on: until its time is over it asks again and again."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, self._ends_s - self._now_s)):
                while True:
                    asked_s, wanted = self._now_s, self._wanted(held_until_ms=self._told_ms)
                    outcome = await self._asked(partial(_extend, wanted), within_s=EXTENDED_WITHIN_S)
                    if isinstance(outcome, Held):
                        self._kept(outcome, asked_s)
                        return True
                    if outcome is not None:
                        return False  # it is not theirs any more
                    await asyncio.sleep(AGAIN_S)
        return False

    def _may_be_held_until_s(self, wait: Wait) -> float:
        under_way_s = wait.until_s if wait.ended_s is None else self._now_s
        return max(self._ends_s, under_way_s + self._lease.ttl_s) + ANSWERED_S

    async def _give_back(self) -> None:
        name, user = self._lease.name, self._lease.user
        await self._asked(lambda use_cases: use_cases.leasing.give_back(name, user=user), within_s=GIVEN_BACK_WITHIN_S)

    async def _asked(self, use: Callable[[Any], Awaitable[Any]], *, within_s: float) -> Any:
        """Null where nobody has answered, or nobody could say."""

        async def asked(use_cases: UseCases) -> Any:
            return await use(use_cases)

        with suppress(NoAnswer, Unavailable):
            return await ask(self._world, self._link, asked, within_s=within_s)
        return None

    def _kept(self, held: Held, asked_s: float) -> None:
        self._ends_s, self._told_ms = asked_s + self._lease.ttl_s, held.expires_ms

    @property
    def _due_s(self) -> float:
        return self._ends_s - self._lease.ttl_s * 2 / 3

    def _wanted(self, *, wait_ms: int = 0, held_until_ms: int | None = None) -> LeaseWanted:
        lease = self._lease
        return LeaseWanted(
            lease=lease.name,
            group=lease.group,
            user=lease.user,
            ttl_ms=round(lease.ttl_s * 1000),
            limit=lease.limit,
            wait_ms=wait_ms,
            held_until_ms=held_until_ms,
        )

    @property
    def _now_s(self) -> float:
        return self._world.loop.time()


async def _take(wanted: LeaseWanted, use_cases: UseCases) -> Any:
    return await use_cases.leasing.take(wanted)


async def _extend(wanted: LeaseWanted, use_cases: UseCases) -> Any:
    return await use_cases.leasing.extend(wanted)
