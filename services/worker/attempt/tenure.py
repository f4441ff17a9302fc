"""How long an attempt is this worker's, and what breaks off its work.

    its lease has ended, or LOST ─────────────► not ours any more: nothing may be written
    CANCELLED · TIMED_OUT · STAGE_TIMED_OUT · FORCED · PROVIDER · DRAINED
                                       └──────► what runs is broken off; of two reasons the stronger one counts

Refuses to know what follows from a reason (that is `domain`, and `executor` does it), and when a lease has ended: by
the worker's clock `domain.Lease` says it, by the view's `due_v1.lua`.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from libs.runtime.clock import Clock
from services.worker.domain import Interruption, Lease

T = TypeVar("T")


class Tenure:
    """One attempt's lease, and what ends the attempt before its time."""

    def __init__(self, lease: Lease, clock: Clock) -> None:
        self.lease = lease
        self.why: Interruption | None = None
        self.provider: str | None = None  # the one that it waits for, where that is why
        self.lost = asyncio.Event()
        self._clock = clock
        self._told: asyncio.Future[None] | None = None  # while something can be broken off

    def is_ours(self) -> bool:
        return not self.lost.is_set() and not self.lease.ended(self._clock.monotonic_ms())

    def interrupt(self, why: Interruption) -> None:
        """Break off what runs. Of two reasons the stronger one counts."""
        self.why = why if self.why is None else max(why, self.why)
        if self._told is not None and not self._told.done():
            self._told.set_result(None)
        if why is Interruption.LOST:
            self.lost.set()

    def wait_for(self, provider: str) -> None:
        """It pauses for longer than a job is to wait with all that it holds."""
        self.provider = provider
        self.interrupt(Interruption.PROVIDER)

    @contextmanager
    def stage_time(self, timeout_s: float | None) -> Iterator[None]:
        """What takes longer than a stage may is broken off; null: it may take as long as the attempt."""
        if timeout_s is None:
            yield
            return
        ending = asyncio.create_task(self._end_after(timeout_s), name="time of a stage")
        try:
            yield
        finally:
            ending.cancel()

    async def _end_after(self, timeout_s: float) -> None:
        await self._clock.sleep_ms(round(timeout_s * 1000))
        self.interrupt(Interruption.STAGE_TIMED_OUT)

    async def or_interrupted(self, work: Coroutine[Any, Any, T]) -> T | Interruption:
        """What the work gives, or why it was broken off."""
        working, told = asyncio.create_task(work), asyncio.get_running_loop().create_future()
        self._told = told
        if self.why is not None:
            told.set_result(None)
        try:
            await asyncio.wait([working, told], return_when=asyncio.FIRST_COMPLETED)
            if not self.is_ours():
                return Interruption.LOST
            return working.result() if self.why is None else self.why
        finally:
            self._told = None
            if not working.done():
                working.cancel()
                await asyncio.wait([working])
