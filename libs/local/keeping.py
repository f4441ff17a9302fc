"""Keeps one process alive: whenever it ends, it is started again, on the same port and with the same data.

Owns the watch over it and the pace. Once is no pattern, so it is started again at once; what keeps dying is given more
and more time, as there is then something that a restart does not mend. Refuses to judge why it ended: that is said to
whoever looks, with the place of its log.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Generic, TypeVar

from libs.local.errors import LocalServerError, ServerNotRunning
from libs.local.process import ChildProcess
from libs.runtime.eventually import eventually
from libs.runtime.lifecycle import Loop

C = TypeVar("C", bound=ChildProcess)

LOOK_EVERY_S: Final = 0.05
SETTLED_AFTER_S: Final = 10.0  # who lives that long has started well
AT_ONCE: Final = 3  # deaths in a row
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 10.0


def pause_s(deaths: int) -> float:
    """How long to wait after so many deaths in a row."""
    if deaths <= AT_ONCE:
        return 0.0
    return min(FIRST_PAUSE_S * 2.0 ** min(deaths - AT_ONCE - 1, 16), LONGEST_PAUSE_S)


class Kept(Generic[C]):
    """A process that comes back. `changed` is called whenever it has a new pid, `say` with what became of it."""

    def __init__(self, child: C, *, changed: Callable[[], None], say: Callable[[str], None]) -> None:
        self.child = child
        self.name = child.name
        self.pid = 0
        self._changed = changed
        self._say = say
        self._loop = Loop(f"keep {child.name}", self._keep)

    async def start(self) -> None:
        """A first start that fails is a fault."""
        await self._begin()
        await self._loop.start()

    async def stop(self) -> None:
        await self._loop.stop()
        await self.child.stop()

    async def ended(self) -> None:
        await self._loop.ended()

    async def _keep(self, stopping: asyncio.Event) -> None:
        time, deaths = asyncio.get_running_loop().time, 0
        while True:
            began = time()
            await eventually(lambda: not self.child.running, within_s=math.inf, every_s=LOOK_EVERY_S)
            deaths = 1 if time() - began >= SETTLED_AFTER_S else deaths + 1
            ended = _ended(self.child.exit_code)
            await asyncio.sleep(pause_s(deaths))
            await self._begin_again(ended)

    async def _begin_again(self, ended: str) -> None:
        try:
            await self._begin()
        except LocalServerError as fault:
            self._say(f"{self.name} {ended} and cannot be started: {fault}")
        else:
            self._say(f"{self.name} {ended}: started again, pid {self.pid}; its log is {self.child.log_path}")

    async def _begin(self) -> None:
        await self.child.start()
        with suppress(ServerNotRunning):  # it has ended already: the watch will see that
            self.pid = self.child.pid
        self._changed()


def _ended(code: int | None) -> str:
    return f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with {code}"
