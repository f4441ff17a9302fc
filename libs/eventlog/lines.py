"""The logs of jobs, as they stand: the lines that the stream LOGS still holds, those that come, and their erasure.

A worker numbers the lines of each attempt from 1, in the id of each message, so a reader can tell where some are gone:
the stream drops its oldest ones by age, and when it is full (`_logs` in `streams.py`). Lines that cannot be read are
passed over like those. Where a line stands in the stream tells a reader of one job how far it has read.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import ValidationError

from headgate_contracts import ContractError
from headgate_contracts.commands import LogLine, job_said_on, logs_subject
from libs.eventlog.api import ask, message_in, state_of
from libs.eventlog.decoding import delivery_of
from libs.eventlog.errors import LogUnavailable
from libs.eventlog.following import AGAIN_AFTER_MS, pulling
from libs.eventlog.scanning import from_after, scan
from libs.eventlog.streams import LOGS
from libs.eventlog.values import Wanted
from libs.runtime.clock import Clock, SystemClock

PAGE_SIZE: Final = 100  # a line may be long, and readers are many
_NUMBERED: Final = re.compile(r".*:([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class Line:
    """One line, its place in the stream, when it was stored, and its number in its attempt: null where its writer gave
    none."""

    seq: int
    at: datetime
    number: int | None
    line: LogLine


@dataclass(frozen=True, slots=True)
class LinePage:
    """Lines, and how far in the stream they were looked for: past the last of them where that could not be read."""

    lines: tuple[Line, ...]
    seq: int


class JetStreamLines:
    """The lines in the stream LOGS."""

    def __init__(self, nc: Client, clock: Clock | None = None) -> None:
        self._nc = nc
        self._clock = clock or SystemClock()

    async def of(self, job_id: str, *, after: int = 0) -> AsyncGenerator[LinePage]:
        """The job's lines in pages, oldest first, as far as they go now. A copy that lags has not all of them."""
        start, wanted = from_after(after), [logs_subject(job_id)]
        async with aclosing(scan(self._nc, LOGS, filters=wanted, start=start, page_size=PAGE_SIZE)) as pages:
            async for messages in pages:
                yield _page(messages)

    async def last(self, job_id: str) -> int:
        """Where the job's newest line stands, as the leader knows; 0 where there is none."""
        newest = await message_in(self._nc, LOGS, {"last_by_subj": logs_subject(job_id)})
        return 0 if newest is None else newest["seq"]

    async def end(self) -> int:
        """Where the newest line of all stands."""
        return (await state_of(self._nc, LOGS)).last_seq

    async def follow(self, *, after: int, wanted: Wanted | None = None) -> AsyncGenerator[LinePage]:
        """The lines of all jobs from `after` + 1 on, for ever, whatever happens to the server meanwhile. `wanted` is
        asked of each line's subject: what it does not want is left out, and nobody looks into it."""
        seen = after
        while True:
            try:
                seen = min(seen, await self.end())  # a store that lost its end would be silent until it is there again
                async with aclosing(self._stretch(seen)) as stretch:
                    async for messages in stretch:
                        page = _page(messages, wanted)
                        seen = page.seq
                        yield page
            except LogUnavailable:
                await self._clock.sleep_ms(AGAIN_AFTER_MS)

    async def erase(self, job_id: str) -> None:
        """Gone when this returns, whether there were any or not."""
        await ask(self._nc, "STREAM.PURGE", stream=LOGS, question={"filter": logs_subject(job_id)})

    async def _stretch(self, seen: int) -> AsyncGenerator[list[Msg]]:
        """What one consumer gives before some of it is lost on its way. The stream itself may have holes: what was
        erased. What a consumer sends has none."""
        async with pulling(self._nc, LOGS, start=from_after(seen)) as pull:
            pull.page_size, sent = PAGE_SIZE, 0
            while True:
                messages = await pull.messages()
                whole = [each for n, each in enumerate(messages, sent + 1) if delivery_of(each.reply).nth == n]
                if whole:
                    yield whole
                if len(whole) < len(messages):
                    return
                sent += len(messages)


class MemoryLines:
    """The twin of `JetStreamLines`, in memory."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._kept: list[Line] = []
        self._end = 0
        self._grown = asyncio.Event()

    def add(self, line: LogLine, *, number: int | None = None) -> Line:
        self._end += 1
        at = datetime.fromtimestamp(self._clock.now_ms() / 1000, line.ts.tzinfo)
        self._kept.append(Line(self._end, at, number, line))
        self._grown.set()
        self._grown = asyncio.Event()
        return self._kept[-1]

    async def end(self) -> int:
        return self._end

    async def follow(self, *, after: int, wanted: Wanted | None = None) -> AsyncGenerator[LinePage]:
        while True:
            grown, come = self._grown, [each for each in self._kept if each.seq > after]
            if come:
                after = come[-1].seq
                read = (each for each in come if wanted is None or wanted(logs_subject(each.line.job_id)))
                yield LinePage(tuple(read), after)
            else:
                await grown.wait()

    async def of(self, job_id: str, *, after: int = 0) -> AsyncGenerator[LinePage]:
        if lines := tuple(each for each in self._of(job_id) if each.seq > after):
            yield LinePage(lines, lines[-1].seq)

    async def last(self, job_id: str) -> int:
        return max((each.seq for each in self._of(job_id)), default=0)

    async def erase(self, job_id: str) -> None:
        self._kept = [each for each in self._kept if each.line.job_id != job_id]

    def _of(self, job_id: str) -> Iterator[Line]:
        return (each for each in self._kept if each.line.job_id == job_id)


@dataclass(slots=True)
class Gaps:
    """Puts a mark in the place of lines that are gone. It remembers the last line, so that pages join."""

    attempt: int = 0
    number: int = 0

    def marked(self, lines: Iterable[Line]) -> Iterator[Line]:
        for each in lines:
            line = each.line
            if line.attempt != self.attempt:
                self.attempt, self.number = line.attempt, 0
            if each.number is not None:
                gone = each.number - self.number - 1
                self.number = each.number
                if gone > 0:
                    words = "line is" if gone == 1 else "lines are"
                    told = line.model_copy(update={"line": f"… [{gone} {words} gone: the log was cut here]"})
                    yield Line(each.seq, each.at, None, told)
            yield each


def _page(messages: Sequence[Msg], wanted: Wanted | None = None) -> LinePage:
    read = (_line(message) for message in messages if wanted is None or wanted(message.subject))
    lines = tuple(line for line in read if line is not None)
    return LinePage(lines, delivery_of(messages[-1].reply).seq)


def _line(message: Msg) -> Line | None:
    """Null where it cannot be read, or where it is of another job than its subject's."""
    try:
        line = LogLine.model_validate_json(message.data)
    except (ContractError, ValidationError):
        return None
    if line.job_id != job_said_on(message.subject):
        return None
    numbered = _NUMBERED.fullmatch((message.headers or {}).get("Nats-Msg-Id", ""))
    delivery = delivery_of(message.reply)
    return Line(delivery.seq, delivery.at, int(numbered[1]) if numbered else None, line)
