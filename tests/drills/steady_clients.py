"""People who submit at a steady pace and follow what they submitted, whatever happens to the nodes meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from headgate import Headgate, Patience, StatusChanged
from headgate_contracts import Tier
from libs.runtime.keys import keep_keys, sign_token
from tests.drills.losses import Happened, Seen, Submitted

USERS: Final = 10
EVERY_S: Final = 1.0
WORK: Final = {"stages": {"scaffold": 0.2, "code": 4, "deps": 0.2, "checks": 0.1}}
INSISTING: Final = Patience(tries=1000, within_s=240, pause_s=0.1, longest_pause_s=0.5)


@dataclass
class SteadyClients:
    """Ten users at one door. `stop()` when it has gone on for long enough."""

    users: list[Headgate]
    seen: Seen = field(default_factory=Seen)
    _stopped: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: list[asyncio.Task[Any]] = field(default_factory=list[asyncio.Task[Any]])

    @classmethod
    @asynccontextmanager
    async def at(cls, url: str, state: Path) -> AsyncIterator[SteadyClients]:
        async with AsyncExitStack() as stack:
            tokens = [_token(state, f"user-{number}") for number in range(USERS)]
            doors = [Headgate(url, token, patience=INSISTING) for token in tokens]
            clients = cls([await stack.enter_async_context(door) for door in doors])
            try:
                yield clients
            finally:
                for task in clients._tasks:
                    task.cancel()
                await asyncio.gather(*clients._tasks, return_exceptions=True)

    def begin(self) -> None:
        self._tasks = [asyncio.create_task(self._follow(user)) for user in self.users]
        self._tasks.append(asyncio.create_task(self._submit_steadily()))

    async def stop(self) -> None:
        """No new jobs; returns when all that were accepted have ended and their histories are known."""
        self._stopped.set()
        await self._tasks[-1]
        await asyncio.gather(*(self._ended(number) for number in range(len(self.users))))

    async def _submit_steadily(self) -> None:
        async with asyncio.TaskGroup() as group:
            number = 0
            while not self._stopped.is_set():
                group.create_task(self._submit(number))
                number += 1
                await asyncio.sleep(EVERY_S)

    async def _submit(self, number: int) -> None:
        asked_at = time.time()
        user = number % len(self.users)
        job = await self.users[user].submit(
            WORK, project=f"project-{user}", pipeline="rehearsal", key=f"drill-{number}", labels={"user": str(user)}
        )
        self.seen.submitted.append(Submitted(job.id, asked_at, time.time()))

    async def _follow(self, user: Headgate) -> None:
        async for event in user.all_events():
            if isinstance(event, StatusChanged) and event.id is not None:
                self.seen.arrived.setdefault(int(event.id.rpartition("-")[2]), time.time())

    async def _ended(self, number: int) -> None:
        """By what the user has, not by what was accepted: a job that was stored twice would be one too many."""
        user = self.users[number]
        jobs = [each async for each in user.jobs()]
        for job in jobs:
            await user.wait(job.id)
            history = await user.history(job.id)
            self.seen.history += [Happened(each.seq, each.job_id, each.event, each.at.timestamp()) for each in history]


def _token(state: Path, user: str) -> str:
    return sign_token(
        keep_keys(state / "keys"),
        user=user,
        tier=Tier.CTO_SCALE,
        scope="jobs:read jobs:write",
        issuer="headgate",
        audience="headgate",
        now_ms=time.time_ns() // 1_000_000,
        ttl_s=3600,
    )
