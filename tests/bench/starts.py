"""When each job began and ended, by its number, in nanoseconds of the machine's clock.

Two sources: a pipe that the jobs of other queues write into, and Headgate's log, followed once and by one reader.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path

from headgate_contracts import Event
from headgate_contracts.events import JobData, JobQueued, JobStage
from libs.eventlog import JetStreamLog, Record, connect
from libs.eventlog.api import state_of
from libs.eventlog.streams import JOBS

BEGAN, ENDED = "started", "ended"


class Moments:
    """What has happened to each job. Who waits is woken by whatever comes."""

    def __init__(self) -> None:
        self.of: defaultdict[int, dict[str, int]] = defaultdict(dict)
        self.ended = 0
        self._came = asyncio.Event()

    def note(self, number: int, event: str, at_ns: int) -> None:
        if event not in self.of[number]:  # a job that was handed out twice ends once
            self.of[number][event] = at_ns
            self.ended += event == ENDED
        self._came.set()

    async def until(self, number: int, event: str = BEGAN, *, within_s: float = 120) -> int:
        async with asyncio.timeout(within_s):
            while event not in self.of[number]:
                await self._next()
        return self.of[number][event]

    async def until_ended(self, count: int, *, within_s: float = 600) -> None:
        async with asyncio.timeout(within_s):
            while self.ended < count:
                await self._next()

    async def _next(self) -> None:
        self._came.clear()
        await self._came.wait()


@asynccontextmanager
async def told_by_pipe(path: Path, moments: Moments) -> AsyncIterator[None]:
    """What is written there: a job that does nothing has ended when it began."""
    os.mkfifo(path)
    pipe, loop, rest = os.open(path, os.O_RDWR | os.O_NONBLOCK), asyncio.get_running_loop(), bytearray()

    def read() -> None:
        rest.extend(os.read(pipe, 65_536))
        *lines, left = bytes(rest).split(b"\n")
        rest[:] = left
        for line in lines:
            number, at_ns = map(int, line.split())
            moments.note(number, BEGAN, at_ns)
            moments.note(number, ENDED, at_ns)

    loop.add_reader(pipe, read)
    try:
        yield
    finally:
        loop.remove_reader(pipe)
        os.close(pipe)


@asynccontextmanager
async def told_by_log(nats_url: str, moments: Moments) -> AsyncIterator[None]:
    """By the log's own timestamps. A job bears its number as the label `n`."""
    nc = await connect(nats_url, name="bench")
    state = await state_of(nc, JOBS)
    following = asyncio.create_task(_follow(JetStreamLog(nc, epoch=state.epoch or ""), state.last_seq, moments))
    try:
        yield
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        await nc.close()


async def _follow(log: JetStreamLog, after: int, moments: Moments) -> None:
    numbers: dict[str, int] = {}
    async with aclosing(log.follow(after=after)) as pages:
        async for page in pages:
            for record in page.records:
                _note(record, numbers, moments)


def _note(record: Record, numbers: dict[str, int], moments: Moments) -> None:
    data = record.event.data if isinstance(record.event, Event) else None
    if isinstance(data, JobQueued) and data.submission and "n" in data.submission.labels:
        numbers[data.job_id] = int(data.submission.labels["n"])
    if not isinstance(data, JobData) or data.job_id not in numbers:
        return
    at_ns = int(record.at.timestamp() * 1_000_000) * 1000
    name = f"stage {data.stage}" if isinstance(data, JobStage) else data.EVENT.value
    moments.note(numbers[data.job_id], name, at_ns)
    if data.status.is_end:
        moments.note(numbers[data.job_id], ENDED, at_ns)
