"""The logs of jobs, on their way out: without what looks like a secret, bounded in the length of a line, in lines and
bytes of an attempt, and in what may wait.

    attempt ──add──► JobLog ──offer──► LinePump ──a few at a time──► stream

Where something is cut or missing, a line says so. Owns those bounds. A job never waits for its log: while the stream is
away lines wait here, and when there are too many the new ones are counted and not kept.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from headgate_contracts import Job
from headgate_contracts.commands import LogLine
from headgate_contracts.envelope import utc
from libs.policy import Runs
from libs.runtime.clock import Clock
from services.worker.attempt.secrets import Mask
from services.worker.child.messages import cut
from services.worker.ports import LinesOut

logger = logging.getLogger(__name__)

MAX_WAITING: Final = 5000  # lines of all attempts of this worker, while the stream is away
IN_FLIGHT: Final = 32
AGAIN_AFTER_MS: Final = 200


class LinePump:
    """Sends the lines of all attempts, in order, each until it was kept."""

    def __init__(self, out: LinesOut, clock: Clock) -> None:
        self._out = out
        self._clock = clock
        self._waiting: deque[tuple[str, LogLine] | asyncio.Event] = deque()
        self._stirred = asyncio.Event()
        self._sending = False

    def offer(self, line: LogLine, *, line_id: str, in_any_case: bool = False) -> bool:
        """False where too many wait already. Marks are taken in any case: they are few, and come after what is lost."""
        if len(self._waiting) >= MAX_WAITING and not in_any_case:
            return False
        self._waiting.append((line_id, line))
        self._stirred.set()
        return True

    async def sent(self, *, within_s: float) -> None:
        """Until all that was offered before is kept, or for this long."""
        if not (self._waiting or self._sending):
            return
        reached = asyncio.Event()
        self._waiting.append(reached)
        self._stirred.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await reached.wait()

    async def run(self, stopping: asyncio.Event) -> None:
        """Until cancelled: its owner waits with `sent` before it stops it."""
        while True:
            self._stirred.clear()
            if not self._waiting:
                await self._stirred.wait()
            self._sending = True
            await self._send_some()
            self._sending = False

    async def _send_some(self) -> None:
        batch: list[tuple[str, LogLine]] = []
        while self._waiting and len(batch) < IN_FLIGHT:
            if isinstance(self._waiting[0], asyncio.Event) and batch:
                break  # it is reached when these are kept
            item = self._waiting.popleft()
            if isinstance(item, asyncio.Event):
                item.set()
            else:
                batch.append(item)
        while batch:
            kept = await asyncio.gather(*(self._out.put(line, line_id=line_id) for line_id, line in batch))
            batch = [item for item, done in zip(batch, kept, strict=True) if not done]
            if batch:
                await self._clock.sleep_ms(AGAIN_AFTER_MS)


class JobLog:
    """The log of one attempt."""

    def __init__(self, job: Job, pump: LinePump, *, clock: Clock, runs: Runs, secrets: Iterable[str] = ()) -> None:
        self._job = job
        self._pump = pump
        self._clock = clock
        self._runs = runs
        self._mask = Mask(secrets)
        self._count, self._bytes = 0, 0
        self._missing = 0
        self._full = False
        self._stage = ""  # none before the first line

    def add(self, stage: str, text: str) -> None:
        if self._full:
            return
        self._stage = stage
        text = cut(self._mask.line(text))
        if (mark := self._too_much(text)) is not None:
            text, self._full = mark, True
        self._tell_missing(in_any_case=self._full)
        if not self._offer(text, in_any_case=self._full):
            self._missing += 1

    def close(self) -> None:
        """No line will come any more: where the last ones are missing, the log ends by saying so. Safe twice."""
        self._tell_missing(in_any_case=True)

    def _tell_missing(self, *, in_any_case: bool) -> None:
        mark = f"… [{self._missing} lines are missing: too many came at once]"
        if self._missing and self._offer(mark, in_any_case=in_any_case):
            self._missing = 0

    def _too_much(self, text: str) -> str | None:
        """The mark that stands where the log is cut, once it is."""
        self._bytes += len(text.encode(errors="replace"))
        if self._count >= self._runs.log_lines:
            return f"… [cut: the log of an attempt has at most {self._runs.log_lines} lines]"
        if self._bytes > self._runs.log_bytes:
            return f"… [cut: the log of an attempt has at most {self._runs.log_bytes} bytes]"
        return None

    def _offer(self, text: str, *, in_any_case: bool) -> bool:
        self._count += 1
        line = LogLine(
            job_id=self._job.id,
            attempt=self._job.attempt,
            stage=self._stage,
            line=text,
            ts=utc(self._clock.now_ms()),
        )
        line_id = f"{self._job.id}:{self._job.attempt}:{self._count}"
        return self._pump.offer(line, line_id=line_id, in_any_case=in_any_case)
