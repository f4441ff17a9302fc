"""Keeps the index equal to a fold of the log, from the first record that there is, whatever becomes of its file.

    log ──pages──► some records at a time ─► titles of jobs that begin, in one question ─► one transaction
     ▲                                                                                        │
     └── what is strange is thrown away, and folded again from the start ◄────────────────────┘

SQLite blocks, so it has threads of its own, one that writes and one that reads; between two pieces the event loop has
its turn. Nothing waits for the index to be ready: a list that it answers meanwhile says how far it has come.
"""

import asyncio
import fcntl
import logging
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, aclosing, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final, TypeVar

from headgate_contracts import Job
from libs.eventlog import LogError, Record, RecordsMissing
from libs.eventlog.history import Scans
from libs.eventlog.ports import EventLog, Titles
from libs.runtime.clock import Clock
from libs.runtime.lifecycle import Health
from services.admission.finding import JobFilter, Sort
from services.admission.index import Index, IndexStrange
from services.admission.index_reader import IndexReader

logger = logging.getLogger(__name__)

PIECE: Final = 200  # records in a transaction: some 20 ms of its thread
AGAIN_AFTER_MS: Final = 1000  # where the log, or the disk, says no
HOUR_MS: Final = 3_600_000
REST_MS: Final = 80  # after a transaction, of which each has its price, unless somebody asks for what comes meanwhile
LISTED_WITHIN_MS: Final = 500  # what a client was told is in its next list, unless the index is behind by more
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the log is folded, and where it ended when that was last seen."""

    applied: int = 0
    last: int = 0

    @property
    def is_whole(self) -> bool:
        return self.applied >= self.last


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs in their order. `before`: where the next page goes on; null at the end."""

    jobs: tuple[Job, ...]
    before: int | None
    progress: Progress


class Indexing:
    """One replica's index: its loop, and what is asked of it."""

    def __init__(self, path: Path, log: EventLog, titles: Titles, *, epoch: str, clock: Clock) -> None:
        self._log = log
        self._titles = titles
        self._clock = clock
        self._index = Index(path, epoch=epoch)
        self._reader = IndexReader(path)
        self._writes = ThreadPoolExecutor(1, "index-writer")
        self._reads = ThreadPoolExecutor(1, "index-reader")
        self._lost = asyncio.Event()
        self._moved = asyncio.Event()
        self._asked = asyncio.Event()
        self.progress = Progress(0, 1)

    async def run(self, _stopping: asyncio.Event) -> None:
        """For ever: follow the log until the file is lost, then begin anew."""
        while True:
            self._lost.clear()
            following, lost = asyncio.create_task(self._follow()), asyncio.create_task(self._lost.wait())
            try:
                await asyncio.wait((following, lost), return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (following, lost):
                    task.cancel()
                await asyncio.wait((following, lost))
            if not following.cancelled() and (fault := following.exception()) is not None:
                await self._mend(fault)

    async def close(self) -> None:
        """Safe twice."""
        with suppress(RuntimeError):  # they have ended
            await self._write(self._index.close)
            await asyncio.get_running_loop().run_in_executor(self._reads, self._reader.close)
        self._writes.shutdown(wait=False)
        self._reads.shutdown(wait=False)

    async def page(self, wanted: JobFilter, sort: Sort, *, before: int | None, count: int, head: int) -> JobPage | None:
        """At most `count` jobs, by all that the log held up to `head` if that comes soon enough; null where there is
        nothing yet to look in."""
        progress, found = await self._read(
            lambda reader: reader.find(wanted, sort, before=before, count=count + 1), head=head
        )
        if found is None:
            return None
        jobs = tuple(job for _, job in found[:count])
        return JobPage(jobs, found[count - 1][0] if len(found) > count else None, progress)

    async def ask(self, question: Callable[[IndexReader], T], *, head: int) -> tuple[Progress, T] | None:
        """What the reader says; null where there is nothing yet to look in."""
        progress, answer = await self._read(question, head=head)
        return None if answer is None else (progress, answer)

    async def _read(self, question: Callable[[IndexReader], T], *, head: int) -> tuple[Progress, T | None]:
        """By all that the log held up to `head` if that comes soon enough."""
        await self._reach(head)
        progress = self.progress
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._reads, lambda: question(self._reader))
        except IndexStrange as strange:
            logger.warning("the index cannot be read and is made anew: %s", strange)
            self._lost.set()
            return progress, None
        return progress, answer

    async def take(self, records: Sequence[Record], *, last: int) -> None:
        """Fold what comes next in the log, some at a time."""
        for start in range(0, len(records), PIECE):
            piece = records[start : start + PIECE]
            titles = await self._titles.found(self._index.unknown(piece))
            await self._write(lambda piece=piece, titles=titles: self._index.fold(piece, titles))
            self._advance(piece[-1].seq, last)

    async def open(self) -> int:
        """How far the file is folded; it is made where there is none."""
        applied = await self._write(self._index.open)
        self._advance(applied, max(applied, self.progress.last))
        return applied

    async def forget_before(self, first_seq: int) -> None:
        """Jobs of which the log has nothing any more."""
        await self._write(lambda: self._index.forget_before(first_seq))

    async def age(self, scans: Scans) -> None:
        """For ever: forget now and then what the log has forgotten."""
        while True:
            await self._clock.sleep_ms(HOUR_MS)
            with suppress(LogError, sqlite3.Error, IndexStrange):  # then it is not sound, or nobody says: an hour on
                first_seq, _ = await scans.ends()
                await self.forget_before(first_seq)

    async def _follow(self) -> None:
        applied, loop, busy_until_s = await self.open(), asyncio.get_running_loop(), 0.0
        async with aclosing(self._log.follow(after=applied)) as pages:
            async for page in pages:
                self._advance(self.progress.applied, page.last_seq)
                is_newest = bool(page.records) and page.records[-1].seq >= page.last_seq
                is_first = loop.time() >= busy_until_s  # after a while: what it tells of needs the processor itself
                if is_newest and is_first:
                    await self._rest()
                await self.take(page.records, last=page.last_seq)
                if self.progress.is_whole and not is_first:
                    await self._rest()
                busy_until_s = loop.time() + REST_MS / 1000

    async def _rest(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(REST_MS / 1000):
                await self._asked.wait()
        self._asked.clear()

    async def _mend(self, fault: BaseException) -> None:
        match fault:
            case sqlite3.Error() | IndexStrange() | OSError() | RecordsMissing():
                logger.warning("the index is thrown away and made anew: %s", fault)
                with suppress(OSError, sqlite3.Error):
                    await self._write(self._index.discard)
                self._advance(0, self.progress.last)
            case LogError():
                logger.warning("the index does not follow the log: %s", fault)
            case _:
                raise fault
        await self._clock.sleep_ms(AGAIN_AFTER_MS)

    async def _reach(self, head: int) -> None:
        """Until the index is there, if it is not far."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LISTED_WITHIN_MS / 1000):
                while self.progress.applied < head:
                    self._asked.set()
                    await self._moved.wait()

    def _advance(self, applied: int, last: int) -> None:
        self.progress = Progress(applied, last)
        self._moved.set()
        self._moved = asyncio.Event()

    async def _write(self, deed: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._writes, deed)


def index_file(folder: Path | None, health: Health) -> tuple[Path, Callable[[], Awaitable[None]]]:
    """A file that no other replica of this machine has, the same again after a restart; and how to let it go. Without a
    folder, or one that can be written to, it passes with the process: what is taken in does not wait for lists."""
    stack = ExitStack()

    async def release() -> None:
        stack.close()

    if folder is not None:
        try:
            return _file_in(folder, stack), release
        except OSError as fault:
            note = f"the index of jobs cannot be in {folder} ({fault.strerror}), and is made anew at each start"
            logger.warning("the index has no folder that lasts: %s", note)
            health.note("the index", note)
    passing = stack.enter_context(tempfile.TemporaryDirectory(prefix="headgate-index-"))
    return _file_in(Path(passing), stack), release


def _file_in(folder: Path, stack: ExitStack) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    number = next(number for number in count(1) if _is_ours(folder / f"jobs-{number}.lock", stack))
    return folder / f"jobs-{number}.sqlite3"


def _is_ours(path: Path, stack: ExitStack) -> bool:
    """From now on, until the stack is closed."""
    with ExitStack() as closing:
        lock = closing.enter_context(path.open("w"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        stack.push(closing.pop_all())
    return True
