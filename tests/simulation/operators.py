"""What operators do to a running system: pauses, limits, forced slots, moves, content erased, another policy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from libs.twins.virtual import Process
from services.admission import events
from services.admission.erasing import Erased
from tests.simulation.admissions import UseCases
from tests.simulation.clients import asked_surely, job_told
from tests.simulation.network import Link
from tests.simulation.plan import Act
from tests.simulation.reloads import BOOSTS, document
from tests.simulation.system import System


class Operator:
    """One act, until it is answered."""

    def __init__(self, system: System, act: Act, number: int) -> None:
        self._system = system
        self._act = act
        self._link = Link(system.network, Process(f"operator {number}", system.loop), "clients")

    async def live(self) -> None:
        await asyncio.sleep(self._act.at_s)
        await getattr(self, f"_{self._act.kind}")()

    async def _pause(self) -> None:
        scope = self._act.what
        self._system.say(f"operator pauses {scope} for {self._act.for_s:.1f} s")
        await self._ask(lambda use_cases: use_cases.operating.pause(scope, by="ops", reason="simulated"))
        await asyncio.sleep(self._act.for_s)
        await self._ask(lambda use_cases: use_cases.operating.resume(scope, by="ops", reason="simulated"))

    async def _limit(self) -> None:
        group, limit = self._act.what, self._act.number
        self._system.say(f"operator sets {group} to {limit}")
        await self._ask(lambda use_cases: use_cases.operating.set_limit(group, limit, by="ops", reason="simulated"))

    async def _force(self) -> None:
        for _ in range(20):
            if found := self._held():
                break
            await asyncio.sleep(0.5)
        else:
            return
        group, lease = found[self._act.number % len(found)]
        self._system.say(f"operator forces {lease} out of {group}")
        await self._ask(lambda use_cases: use_cases.operating.release(group, lease, by="ops", reason="simulated"))

    def _held(self) -> list[tuple[str, str]]:
        state = self._system.store.state
        if state is None:
            return []
        inner = [(group, name) for name, lease in state.leases.items() for group in lease.groups]
        own = [(f"user:{row.user}", row.holder) for row in state.rows.values() if row.holder]
        return sorted(inner) if inner and self._act.number % 3 else sorted(inner + own)

    async def _move(self) -> None:
        state = self._system.store.state
        names = [name for name, row in state.rows.items() if row.status == "queued"] if state else []
        if len(names) < 2:
            return
        job_id, other = names[self._act.number % len(names)], names[(self._act.number + 1) % len(names)]
        act = events.Actor(by="ops", reason="simulated", operator=True)

        async def move(use_cases: UseCases) -> Any:
            return await use_cases.changing.move(await job_told(use_cases, job_id), before=other, after=None, act=act)

        await self._ask(move)

    async def _erase(self) -> None:
        user = self._act.what
        self._system.say(f"operator erases what {user} has left")

        async def erase(use_cases: UseCases) -> Any:
            assert use_cases.erasing is not None
            return await use_cases.erasing.erase(user, by="ops", reason="simulated")

        while True:
            outcome = await self._ask(erase)
            if not isinstance(outcome, Erased) or not outcome.unfinished:
                return

    async def _reload(self) -> None:
        name = self._act.what
        self._system.say(f"operator reloads the policy: {name}")
        self._system.view_was_lost |= name == BOOSTS  # or is it made anew

        async def reload(use_cases: UseCases) -> Any:
            assert use_cases.reloading is not None
            return await use_cases.reloading.reload(document(name), by="ops", reason="simulated")

        await self._ask(reload)

    async def _ask(self, use: Callable[[UseCases], Awaitable[Any]]) -> Any:
        return await asked_surely(self._system, self._link, use)
