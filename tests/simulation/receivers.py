"""Who is called about jobs: a machine of somebody else's, which takes calls, refuses them, or never answers.

Owns what arrived there, `Called`, and what was answered. A call that is taken and whose answer is lost comes again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

import httpx2

from services.notifier.calling import Call
from services.notifier.receivers import Receivers
from tests.simulation.dice import Dice
from tests.simulation.network import Link, Network, Way
from tests.simulation.plan import HOOK_HOST, PEACE_S

SECRET: Final = b"known to this receiver and to us"
NEVER_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Called:
    """One call as it arrived, and the status that it was answered with."""

    at_s: float
    call: Call
    status: int


class Hooks:
    """The receiver."""

    def __init__(self, network: Network, dice: Dice) -> None:
        self.called: list[Called] = []
        self.receivers = Receivers({HOOK_HOST: (SECRET,)})
        self._network = network
        self._dice = dice

    def caller(self, link: Link) -> Caller:
        return Caller(self, link)

    def take(self, call: Call) -> int:
        """In troubled times some are not taken."""
        troubled = self._network.loop.time() < PEACE_S
        status = self._dice.one_of("hook", (200, 204, 204, 302, 500)) if troubled else 204
        self.called.append(Called(self._network.loop.time(), call, status))
        return status

    def answers(self) -> bool:
        return self._network.loop.time() > PEACE_S or self._dice.chance("hook answers", 0.8)


class Caller:
    """One notifier's way there."""

    def __init__(self, hooks: Hooks, link: Link) -> None:
        self._hooks = hooks
        self._link = link

    async def status_of(self, call: Call) -> int:
        """As over HTTP: a connection that is refused, an answer, or nothing."""
        self._link.process.require_life()
        await asyncio.sleep(self._link.delay_s())
        if not self._link.connected:
            raise httpx2.ConnectError("no way there")
        way = self._link.fate()
        if way is Way.LOST:
            await asyncio.sleep(NEVER_S)
        self._link.process.require_life()
        status = self._hooks.take(call)
        if way is Way.UNHEARD or not self._hooks.answers():
            await asyncio.sleep(NEVER_S)
        await asyncio.sleep(self._link.delay_s())
        return status
