"""Time as an argument: whole milliseconds, wall and monotonic, from the system or from a test's hand.

Owns the one place that reads the system's clock. Refuses floats and time zones: a moment is an integer, and who
shows it to a person formats it there.
"""

import asyncio
import heapq
import itertools
import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since 1970, as people count; it may jump."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds that only grow; for durations and expiries inside one process."""
        ...

    async def sleep_ms(self, duration_ms: int) -> None: ...


async def sleep_or(event: asyncio.Event, duration_ms: int, *, clock: Clock) -> None:
    """Until the event is set, at most for this long."""
    waits = [asyncio.create_task(event.wait()), asyncio.create_task(clock.sleep_ms(duration_ms))]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    async def sleep_ms(self, duration_ms: int) -> None:
        await asyncio.sleep(duration_ms / 1000)


class ManualClock:
    """Stands still until `advance_ms`; sleepers wake in the order of their moments."""

    def __init__(self, start_ms: int = 1_800_000_000_000) -> None:  # 2027-01-15T08:00:00Z, far from any midnight
        self._wall_ms = start_ms
        self._monotonic_ms = 0
        self._arrivals = itertools.count()  # breaks ties, so that equal moments wake first come, first served
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        return self._wall_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    async def sleep_ms(self, duration_ms: int) -> None:
        if duration_ms <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._monotonic_ms + duration_ms, next(self._arrivals), woken))
        await woken

    @property
    def sleeping(self) -> int:
        """How many wait: a test advances only once the code under test has gone to sleep."""
        return sum(not woken.done() for _, _, woken in self._sleepers)

    async def advance_ms(self, duration_ms: int) -> None:
        """Moves both clocks, stopping at each sleeper's moment so that what it does next sees that moment."""
        end_ms = self._monotonic_ms + duration_ms
        while self._sleepers and self._sleepers[0][0] <= end_ms:
            due_ms, _, woken = heapq.heappop(self._sleepers)
            self._move_to(due_ms)
            if not woken.done():
                woken.set_result(None)
                await asyncio.sleep(0)  # the sleeper runs, and may go to sleep again before `end_ms`
        self._move_to(end_ms)
        await asyncio.sleep(0)

    def jump_wall_ms(self, by_ms: int) -> None:
        """What an operator or a time server does to a machine: the wall clock jumps, the monotonic one does not."""
        self._wall_ms += by_ms

    def _move_to(self, monotonic_ms: int) -> None:
        step_ms = max(0, monotonic_ms - self._monotonic_ms)
        self._monotonic_ms += step_ms
        self._wall_ms += step_ms
