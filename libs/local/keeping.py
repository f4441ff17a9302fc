"""Keeps one process alive: whenever it ends, it is started again, on the same port and with the same data.

    never ready yet     it is started again at once, but the STARTS-th end is the last: `failure` says so
    ready once          it is started again for ever, and what keeps dying is given more and more time

Owns the watch over it and the pace. Refuses to judge why it ended: that is what it has said last.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Generic, TypeVar

from libs.local.errors import (
    LocalServerError,
    ServerDidNotStart,
    ServerNotReady,
    ServerNotRunning,
    ServerPortTaken,
    StartFailed,
)
from libs.local.process import ChildProcess, until
from libs.runtime.lifecycle import Loop

C = TypeVar("C", bound=ChildProcess)

STARTS: Final = 3  # that a process is given before it was ever ready: once is bad luck
LOOK_EVERY_S: Final = 0.05
SETTLED_AFTER_S: Final = 10.0  # who lives that long has started well
AT_ONCE: Final = 3  # deaths in a row
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 10.0


def deaths_after(deaths: int, *, lived_s: float, was_ready: bool) -> int:
    """In a row, with the one that has just come. Only what was ready once can have lived well."""
    return 1 if was_ready and lived_s >= SETTLED_AFTER_S else deaths + 1


def has_failed(deaths: int, *, was_ready: bool) -> bool:
    """Whether it is to be given up: what never was ready and ends again and again does not mend by itself."""
    return not was_ready and deaths >= STARTS


def pause_s(deaths: int) -> float:
    """How long to wait after so many deaths in a row."""
    if deaths <= AT_ONCE:
        return 0.0
    return min(FIRST_PAUSE_S * 2.0 ** min(deaths - AT_ONCE - 1, 16), LONGEST_PAUSE_S)


class SupervisedProcess(Generic[C]):
    """A process that comes back. `changed` is called whenever it has a new pid, `say` with what became of it."""

    def __init__(self, child: C, *, changed: Callable[[], None], say: Callable[[str], None]) -> None:
        self.child = child
        self.name = child.name
        self.pid = 0
        self.failure: StartFailed | None = None
        self._changed = changed
        self._say = say
        self._loop = Loop(f"keep {child.name}", self._keep)

    async def start(self) -> None:
        """A server has served then; of a service it is not known yet."""
        deaths = 0
        while True:
            try:
                await self._begin()
                break
            except (ServerPortTaken, ServerNotReady):  # it was waited for
                raise
            except ServerDidNotStart as fault:
                deaths += 1
                if has_failed(deaths, was_ready=False):
                    raise self._start_failed() from fault
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
            await until(lambda: not self.child.running, every_s=LOOK_EVERY_S)
            was_ready = self.child.has_served
            deaths = deaths_after(deaths, lived_s=time() - began, was_ready=was_ready)
            if has_failed(deaths, was_ready=was_ready):
                self.failure = self._start_failed()
                return
            ended, said = _ended(self.child.exit_code), self.child.last_words()
            await asyncio.sleep(pause_s(deaths))
            await self._begin_again(ended, said)

    async def _begin_again(self, ended: str, said: str) -> None:
        try:
            await self._begin()
        except (LocalServerError, OSError) as fault:
            why = self.child.last_words() if isinstance(fault, ServerDidNotStart) else fault
            self._say(f"{self.name} {ended} and cannot be started: {why}")
        else:
            self._say(f"{self.name} {ended}: started again, pid {self.pid}. It said last: {said}")

    def _start_failed(self) -> StartFailed:
        return StartFailed(name=self.name, starts=STARTS, said=self.child.last_words(), log=self.child.log_path)

    async def _begin(self) -> None:
        await self.child.start()
        with suppress(ServerNotRunning):  # it has ended already: the watch will see that
            self.pid = self.child.pid
        self._changed()


def _ended(code: int | None) -> str:
    return f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with {code}"
