"""The index while it is made: writers that are killed, a file that is taken away, and how it keeps up with the log."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
import pytest_asyncio

from headgate_contracts import Event, Job
from headgate_contracts.events import JobData
from libs.eventlog import Appended, Record, migrate, open_log
from libs.eventlog.decoding import job_in
from libs.eventlog.memory import MemoryLog, MemoryServer
from libs.eventlog.ports import EventLog
from libs.eventlog.titles import MemoryTitles
from libs.runtime.clock import ManualClock
from libs.runtime.eventually import eventually
from services.admission.finding import JobFilter, Sort
from services.admission.index import Index
from services.admission.index_reader import IndexReader
from services.admission.indexing import Indexing
from tests.fixtures.indexed import WORDS
from tests.fixtures.killed_index import EPOCH, ERASED, fold, lose, story
from tests.fixtures.lives import queued
from tests.fixtures.logs import connected, new_epoch, settings

ROUNDS = 40
ALL = JobFilter(user=None)
TABLES = {
    "jobs": "SELECT * FROM jobs",
    "states": "SELECT seq, state FROM states",
    "labels": "SELECT * FROM labels",
    "words": "SELECT rowid, title, id, labels FROM words",
    "minutes": "SELECT * FROM minutes WHERE count != 0",
    "waits": "SELECT * FROM waits",
    "attempts": "SELECT * FROM attempts",
}


def test_a_writer_that_is_killed_anywhere_leaves_what_a_scan_of_the_log_says_or_nothing(tmp_path: Path) -> None:
    path, records, dice = tmp_path / "jobs.sqlite3", story(), Random(11)
    ended, reached = list[str](), set[int]()

    with children(path) as come_to_harm:
        for number in range(ROUNDS):
            deed, steps = dice.choice(("kill", "kill", "lose")), round(10 ** dice.uniform(1, 5.5))
            ended.append(come_to_harm(deed, steps))
            applied = opened_at(path)
            reached.add(applied)
            assert indexed(path) == scanned(records[:applied]), (number, deed, steps)
            assert dumped(path) == dumped(fresh(tmp_path, records, applied)), (number, deed, steps)
            if applied == len(records):
                assert_no_byte(path, records)
                lose(path)

    assert ended.count("9") > ROUNDS / 4
    assert ended.count("0") + ended.count("9") == ROUNDS
    assert len(reached) > 5


@contextmanager
def children(path: Path) -> Iterator[Any]:
    command = [sys.executable, "-m", "tests.fixtures.killed_index", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as nursery:  # noqa: S603 - our own words
        stdin, stdout = nursery.stdin, nursery.stdout
        assert stdin is not None
        assert stdout is not None

        def come_to_harm(deed: str, steps: int) -> str:
            stdin.write(f"{deed} {steps}\n")
            stdin.flush()
            return stdout.readline().strip()

        yield come_to_harm
        stdin.close()


def opened_at(path: Path) -> int:
    index = Index(path, epoch=EPOCH)
    applied = index.open()
    index.close()
    return applied


def fresh(folder: Path, records: Sequence[Record], applied: int) -> Path:
    """An index of these records that nothing has ever happened to."""
    path = folder / f"fresh-{applied}.sqlite3"
    if not path.exists():
        index = Index(path, epoch=EPOCH)
        index.open()
        fold(index, records[:applied])
        index.close()
    return path


def dumped(path: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(path)) as db:
        return {name: sorted(db.execute(query).fetchall()) for name, query in TABLES.items()}


def indexed(path: Path) -> list[Job]:
    reader = IndexReader(path)
    found = [job for _, job in reader.find(ALL, Sort.OLDEST, before=None, count=1000)]
    reader.close()
    return found


def scanned(records: Sequence[Record]) -> list[Job]:
    """A plain scan of the log, job by job."""
    by_job = defaultdict[str, list[Record]](list)
    for record in records:
        match record.event:
            case Event(data=JobData(job_id=job_id)):
                by_job[job_id].append(record)
            case _:
                pass
    return [job for each in by_job.values() if (job := job_in(each)) is not None]


def assert_no_byte(path: Path, records: Sequence[Record]) -> None:
    """Nobody has a title who had one before the erasure."""
    erased_at = next(record.seq for record in records if not _is_of_job(record))
    with closing(sqlite3.connect(path)) as db:
        of_user = "SELECT title FROM words JOIN jobs ON jobs.seq = words.rowid WHERE user = ? AND jobs.seq < ?"
        assert {title for (title,) in db.execute(of_user, (ERASED, erased_at))} == {""}
        others = "SELECT title FROM words JOIN jobs ON jobs.seq = words.rowid WHERE user != ?"
        assert all(set(title.split()) <= {*WORDS} and title for (title,) in db.execute(others, (ERASED,)))
        assert db.execute("SELECT 1 FROM meta WHERE name = 'untidy'").fetchone() is None


def _is_of_job(record: Record) -> bool:
    return isinstance(record.event, Event) and isinstance(record.event.data, JobData)


# ── keeping up ────────────────────────────────────────────────────────────────


@pytest.fixture(params=["memory", "nats"])
def where(request: pytest.FixtureRequest) -> str | None:
    return None if request.param == "memory" else request.getfixturevalue("nats_url")


@pytest_asyncio.fixture
async def still_log(where: str | None, clock: ManualClock) -> AsyncIterator[EventLog]:
    """A log by a clock that stands still: a wait for a time never ends."""
    if where is None:
        yield MemoryLog(MemoryServer(clock, epoch=EPOCH), clock=clock)
        return
    async with connected(where) as client:
        await migrate(client, settings(), new_epoch=new_epoch())
        yield await open_log(client, settings(), clock=clock)


async def test_what_is_appended_is_in_the_list_without_any_look_by_the_clock(
    still_log: EventLog, clock: ManualClock, tmp_path: Path
) -> None:
    index = Indexing(tmp_path / "jobs.sqlite3", still_log, MemoryTitles(), epoch=EPOCH, clock=clock)
    running, began_ms = asyncio.create_task(index.run(asyncio.Event())), clock.now_ms()

    for job_id in ("job-1", "job-2", "job-3"):
        written = await still_log.append(queued(job_id), after=None)
        assert isinstance(written, Appended)
        await eventually(partial(_is_listed, index, written.records[0].seq))

    assert clock.now_ms() == began_ms
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    await index.close()


async def _is_listed(index: Indexing, seq: int) -> bool:
    page = await index.page(ALL, Sort.NEWEST, before=None, count=1, head=seq)
    return page is not None and [job.first_seq for job in page.jobs] == [seq]
