"""What a command does when it is told to end: by Ctrl-C, by SIGTERM, or by SIGHUP when its terminal is closed.

    inside `Interrupts`    what runs is cancelled where it waits, clears up in its own order, then Interrupted is raised
    before and after       nothing has been made that would stay: the process ends where it stands (`signals`)

No signal ever raises an exception where it arrives: in the middle of anything that is what leaves a cursor hidden or a
folder behind. Owns the counting of signals. Refuses to end anything by itself.
"""

import asyncio
import signal
from collections.abc import Coroutine, Mapping
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar

from libs.cli import signals
from libs.cli.errors import Interrupted

T = TypeVar("T")


class Interrupts:
    """As long as it is entered, signals are counted. Where one has come, it is left by Interrupted or by a fault."""

    def __init__(self) -> None:
        self._heard: list[int] = []
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._before: Mapping[int, Any] = {}

    def __enter__(self) -> Self:
        self._before = signals.handle(self._hear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._heard and kind is None:
            raise Interrupted(self._heard[0])

    @property
    def count(self) -> int:
        """How many signals have come."""
        return len(self._heard)

    async def obeyed_by(self, work: Coroutine[Any, Any, T]) -> T:
        """What comes of the work. The first signal cancels it, and once that has ended Interrupted is raised."""
        working, told = asyncio.ensure_future(work), asyncio.ensure_future(self.more_than(0))
        await asyncio.wait([working, told], return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        if not self._heard:
            return working.result()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        raise Interrupted(self._heard[0])

    async def more_than(self, count: int) -> None:
        """Until so many signals have come, and one."""
        waiting = (asyncio.get_running_loop(), asyncio.Event())
        self._waiting.add(waiting)
        try:
            while self.count <= count:
                waiting[1].clear()
                await waiting[1].wait()
        finally:
            self._waiting.discard(waiting)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._heard.append(number)
        for loop, event in tuple(self._waiting):
            loop.call_soon_threadsafe(event.set)  # which also wakes the loop up


def interruptible(work: Coroutine[Any, Any, T]) -> T:
    """What comes of work that has nothing but itself to clear up."""
    with Interrupts() as told:
        return asyncio.run(told.obeyed_by(work))
