"""Users who submit at a steady pace, follow each job to its end, cancel some and hold slots beside: what a day has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from headgate import Conflict, Headgate, HeadgateError, Patience, Unreachable
from headgate_contracts import Tier
from tests.fixtures.installation import Installation

USERS: Final = 10
CANCELLED: Final = 10  # one in so many is cancelled, another holds a slot meanwhile
WORK: Final = {"stages": {"scaffold": 0.05, "code": 0.2, "deps": 0.05, "checks": 0.05}, "log_lines": 5}
INSISTING: Final = Patience(tries=1000, within_s=240, pause_s=0.1, longest_pause_s=0.5)


@dataclass
class Load:
    """`ended` grows until `stop()`; `faults` is what did not end as it should, `unanswered` counts cancels whose answer
    did not come in time, as on a machine that does much else."""

    users: Sequence[Headgate]
    every_s: float
    submitted: int = 0
    ended: int = 0
    unanswered: int = 0
    faults: list[str] = field(default_factory=list[str])
    _stopped: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    @asynccontextmanager
    async def on(cls, there: Installation, *, every_s: float) -> AsyncIterator[Load]:
        async with AsyncExitStack() as stack:
            scope = "jobs:read jobs:write leases"
            tokens = [there.token(f"user-{number}", Tier.CTO_SCALE, scope=scope) for number in range(USERS)]
            doors = [Headgate(there.up.url, token, patience=INSISTING) for token in tokens]
            load = cls([await stack.enter_async_context(door) for door in doors], every_s)
            going = asyncio.create_task(load._go_on())
            try:
                yield load
            finally:
                load.stop()
                await going

    def stop(self) -> None:
        """No new jobs; those that are under way are followed to their end."""
        self._stopped.set()

    async def _go_on(self) -> None:
        async with asyncio.TaskGroup() as group:
            while not self._stopped.is_set():
                group.create_task(self._one(self.submitted))
                self.submitted += 1
                await asyncio.sleep(self.every_s)

    async def _one(self, number: int) -> None:
        try:
            await self._follow(number)
        except HeadgateError as error:
            self.faults.append(f"the job soak-{number}: {error}")

    async def _follow(self, number: int) -> None:
        user, project = self.users[number % USERS], f"project-{number % USERS}"
        job = await user.submit(WORK, project=project, pipeline="rehearsal", key=f"soak-{number}")
        is_cancelled = number % CANCELLED == 0
        if is_cancelled:
            await self._cancel(user, job.id)
        if number % CANCELLED == 1:
            async with user.slot("beside", project=project, limit=2):
                await user.explain(job.id)
        last: Any = await user.wait(job.id)
        self.ended += 1
        if last.status != "ready" and not (is_cancelled and last.status == "cancelled"):
            self.faults.append(f"{job.id} is {last.status}")

    async def _cancel(self, user: Headgate, job: str) -> None:
        try:
            with suppress(Conflict):  # on a busy machine it may have ended by itself
                await user.cancel(job)
        except Unreachable:
            self.unanswered += 1
