"""What the services of the twins share in place of servers: the log, the view's store, the buckets, what is said.

Owns how each service gets at them. All of it is on one loop, in one process, and time is the loop's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from math import inf
from pathlib import Path
from typing import Any, Final

from headgate_contracts import Event
from headgate_contracts.commands import JobProgress, LogLine
from headgate_contracts.events import JobDispatched
from headgate_contracts.tokens import ulid
from libs.capacity.lead import MemoryLead
from libs.capacity.memory import MemoryStore, MemoryView
from libs.eventlog.buckets import MemoryBucket
from libs.eventlog.lines import MemoryLines
from libs.eventlog.memory import MemoryLog, MemoryServer, MemorySnapshots
from libs.eventlog.pipelines import MemoryPipelines
from libs.eventlog.progress import PROGRESS_SUBJECTS, MemoryProgress
from libs.eventlog.titles import MemoryTitles
from libs.eventlog.values import Record
from libs.policy import Policy, PolicyInForce
from libs.runtime.keys import KeyPair
from libs.twins.quiet import quiet_telemetry
from libs.twins.switchboard import MemoryBroker, Switchboard
from libs.twins.virtual import LoopClock, VirtualLoop

EPOCH: Final = "01JD0000000000000000000000"
SHARD: Final = "main"


class PublishingServer(MemoryServer):
    """The log, which tells of each record: as a consumer would, and on the record's own subject."""

    heard: Callable[[Record], None]
    said: Callable[[str, bytes], None]

    def _store(self, message: Any) -> None:
        super()._store(message)
        self.said(message.subject, message.payload)
        self.heard(self._kept[-1].record())


class PublishedProgress(MemoryProgress):
    """The bucket, whose subject is listened to."""

    def __init__(self, said: Callable[[str, bytes], None]) -> None:
        super().__init__()
        self._said = said

    async def report(self, said: JobProgress) -> None:
        await super().report(said)
        self._said(PROGRESS_SUBJECTS.replace("*", said.job_id), said.model_dump_json().encode())


class MemoryOutput:
    """Where a worker's lines go."""

    def __init__(self, lines: MemoryLines) -> None:
        self._lines = lines

    async def put(self, line: LogLine, *, line_id: str) -> bool:
        self._lines.add(line, number=int(line_id.rpartition(":")[2]))
        return True


@dataclass(frozen=True, slots=True)
class MemoryDispatch:
    """A message in a worker's hand. Nothing is lost here, so an ack changes nothing."""

    record: Record
    _pool: MemoryDispatches
    tries: int = 1  # not counted: nothing is put off here

    async def ack(self, *, sure: bool = True) -> None:
        """It is done with."""

    async def nak(self, *, after_s: float = 0) -> None:
        self._pool.stored(self.record)


class MemoryDispatches:
    """The pool's durable consumer: what was dispatched, each to one slot, again where it was handed back."""

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


class CountedIds:
    """The same in each run of a test."""

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock
        self._numbers = count(1)

    def event_id(self) -> str:
        return ulid(self._clock.now_ms(), next(self._numbers).to_bytes(10, "big"))

    def job_id(self) -> str:
        return f"j{next(self._numbers):024x}"

    def workflow_id(self) -> str:
        return f"w{next(self._numbers):024x}"


class TwinWorld:
    """One Headgate's."""

    def __init__(self, loop: VirtualLoop, policy: Policy, *, now: datetime, folder: Path) -> None:
        self.policy, self.folder = PolicyInForce.of(policy), folder
        self.clock = LoopClock(loop, start_ms=round(now.timestamp() * 1000))
        self.ids = CountedIds(self.clock)
        self.pair = KeyPair.generate()
        self.telemetry = quiet_telemetry()
        self.switchboard, self.dispatches = Switchboard(), MemoryDispatches()
        self.server = PublishingServer(self.clock, epoch=EPOCH)
        self.server.heard, self.server.said = self.dispatches.stored, self.switchboard.publish
        self.store, self.lead, self.snapshots = MemoryStore(), MemoryLead(self.clock.now_ms), MemorySnapshots()
        self.inputs, self.workspaces, self.results = MemoryBucket(), MemoryBucket(), MemoryBucket()
        self.titles, self.pipelines, self.lines = MemoryTitles(), MemoryPipelines(), MemoryLines(self.clock)
        self.progress = PublishedProgress(self.switchboard.publish)

    def log(self) -> MemoryLog:
        return MemoryLog(self.server, clock=self.clock)

    def view(self) -> MemoryView:
        return MemoryView(EPOCH, clock=self.clock.now_ms, store=self.store)

    def next_timer_s(self) -> float:
        """In how long something of a job is due by itself. While slots are held outside jobs all time counts: their
        leases would be made longer by a sleep."""
        state = self.store.state
        if state is None or state.ends.first() is not None:
            return 0.0
        first = state.timers.first()
        return inf if first is None else max(0.0, (state.timers.score(first) or 0.0) - self.clock.now_ms()) / 1000

    def broker(self) -> Any:
        """In the place of FastStream's."""
        return MemoryBroker(self.switchboard)
