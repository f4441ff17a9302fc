"""The pool's durable consumer, in memory: what was dispatched, each to one slot, again where it was handed back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from headgate_contracts import Event
from headgate_contracts.events import JobDispatched
from libs.eventlog.values import Record


@dataclass(frozen=True, slots=True)
class MemoryDispatch:
    """A message in a worker's hand. Nothing is lost here, so an ack changes nothing."""

    record: Record
    _pool: MemoryDispatches
    tries: int = 1  # not counted: nothing is put off here

    async def ack(self) -> None:
        """It is done with."""

    async def nak(self, *, after_s: float = 0) -> None:
        self._pool.stored(self.record)


class MemoryDispatches:
    """One pool's."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[Record] = asyncio.Queue()

    def stored(self, record: Record) -> None:
        """The log has grown."""
        if isinstance(record.event, Event) and isinstance(record.event.data, JobDispatched):
            self._waiting.put_nowait(record)

    @property
    def is_empty(self) -> bool:
        return self._waiting.empty()

    async def next(self) -> MemoryDispatch:
        return MemoryDispatch(await self._waiting.get(), self)
