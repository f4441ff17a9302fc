"""How long lists, counts and charts take: an index of so many jobs, each filter in each order, each span of time; and
how far the index is behind a log that is being written.

Printed as rows of Markdown tables. Nothing is asserted: what is found is held by tests/conformance.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

import pytest

from headgate_contracts import Status, advance
from libs.eventlog import Appended, Record, migrate, open_log
from libs.eventlog.ports import EventLog
from libs.eventlog.titles import JetStreamTitles
from libs.runtime.clock import SystemClock
from services.admission.figures import ChartSpan
from services.admission.finding import Facet, JobFilter, Sort
from services.admission.index import Index
from services.admission.index_reader import IndexReader
from services.admission.indexing import PIECE, Indexing
from tests.fixtures.indexed import END, LIVES, records_of, title_of, titles_of
from tests.fixtures.lives import queued, step
from tests.fixtures.logs import connected, new_epoch, settings

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3600)]

SHARE: Final = float(os.environ.get("HEADGATE_BENCH_SHARE", "1"))
JOBS: Final = max(1000, round(100_000 * SHARE))
SPAN: Final = timedelta(days=30)  # over which they come
ROUNDS: Final = 5
RATES: Final = (10, 50)  # jobs that end in a second, each with all events of its life
WRITTEN_S: Final = max(2.0, 20 * SHARE)
NOBODY: Final = frozenset({Status.FAILED})
FILTERS: Final = {
    "all": JobFilter(user=None),
    "a user": JobFilter(user="u7"),
    "a status that none has": JobFilter(user=None, statuses=NOBODY),
    "a user, a status, a project": JobFilter(user="u7", statuses=frozenset({Status.CANCELLED}), project="p3"),
    "a project": JobFilter(user=None, project="p3"),
    "a pool": JobFilter(user=None, pool="gpu"),
    "a pool that none has": JobFilter(user=None, pool="none"),
    "a pipeline": JobFilter(user=None, pipeline="rehearsal"),
    "since a day": JobFilter(user=None, since=END - timedelta(days=1)),
    "until its first day": JobFilter(user=None, until=END - SPAN + timedelta(days=1)),
    "a day in the middle": JobFilter(user=None, since=END - SPAN / 2, until=END - SPAN / 2 + timedelta(days=1)),
    "a label of all": JobFilter(user=None, label="env=prod"),
    "a label of an eighth": JobFilter(user=None, label="team=t3"),
    "a label of all, a status that none has": JobFilter(user=None, label="env=prod", statuses=NOBODY),
    "a label that none has": JobFilter(user=None, label="env=none"),
    "a word of many": JobFilter(user=None, text="shop"),
    "a word of many, of a user": JobFilter(user="u7", text="shop"),
    "a word of many, a label of an eighth": JobFilter(user=None, text="shop", label="team=t3"),
    "two words, none": JobFilter(user=None, text="shop che", statuses=NOBODY),
    "what every id begins with": JobFilter(user=None, text="j"),
    "the same, none": JobFilter(user=None, text="j", project="none"),
    "the same, a label that none has": JobFilter(user=None, text="j", label="env=none"),
    "the same, a label of all, none": JobFilter(user=None, text="j", label="env=prod", project="none"),
}
SPANS: Final = {"a day": timedelta(days=1), "a week": timedelta(days=7), "a month": SPAN}


def test_lists_counts_and_charts(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite3"
    began = time.perf_counter()
    records = _fill(path)
    took_s = time.perf_counter() - began
    reader = IndexReader(path)

    print("\n| jobs | records | folded in, s | file, MB |\n| --- | --- | --- | --- |")
    print(f"| {JOBS:,} | {records:,} | {took_s:.0f} | {path.stat().st_size / 1e6:.0f} |")
    print("\n| which jobs | newest first, ms | the slowest other order, ms | counted by all there is, ms |")
    print("| --- | --- | --- | --- |")
    for name, wanted in FILTERS.items():
        others = max(_listed_ms(reader, wanted, sort) for sort in Sort if sort is not Sort.NEWEST)
        counted = _took_ms(lambda wanted=wanted: [reader.counts(wanted, each, most=100) for each in Facet])
        print(f"| {name} | {_listed_ms(reader, wanted, Sort.NEWEST):.1f} | {others:.1f} | {counted:.0f} |")
    print("\n| charts of | steps | ms |\n| --- | --- | --- |")
    for name, long in SPANS.items():
        span = ChartSpan.between(END - long, END, step_s=None)
        print(f"| {name} | {span.count} | {_took_ms(lambda span=span: reader.counted(span)):.1f} |")
    print(f"| a worker's attempts | – | {_took_ms(lambda: reader.attempts('w1', count=100)):.1f} |")
    reader.close()


async def test_how_far_the_index_is_behind_the_log(nats_url: str, tmp_path: Path) -> None:
    """From the answer to an append to when a list has it, by the writer's own process."""
    print("\n| jobs that end, a second | records, a second | behind p50, ms | p99, ms | at most, ms |")
    print("| --- | --- | --- | --- | --- |")
    async with connected(nats_url) as client:
        shape = settings()
        await migrate(client, shape, new_epoch=new_epoch())
        log, titles = await open_log(client, shape), JetStreamTitles(client)
        index = TimedIndex(tmp_path / "jobs.sqlite3", log, titles, epoch=log.epoch, clock=SystemClock())
        running = asyncio.create_task(index.run(asyncio.Event()))
        for rate in RATES:
            written = await _written(log, titles, rate=rate)
            while index.progress.applied < max(written)[0] and not running.done():
                await index.page(JobFilter(user=None), Sort.NEWEST, before=None, count=1, head=max(written)[0])
            behind = [max(0.0, index.reached_at(seq) - at_s) * 1000 for seq, at_s in written]
            p99 = quantiles(behind, n=100)[-1]
            per_s = len(written) / WRITTEN_S
            print(f"| {rate} | {per_s:.0f} | {median(behind):.1f} | {p99:.1f} | {max(behind):.1f} |")
        running.cancel()
        await asyncio.wait([running])
        await index.close()


class TimedIndex(Indexing):
    """One that keeps when it had come how far."""

    def __init__(self, *given: Any, **more: Any) -> None:
        self._reached: list[tuple[int, float]] = []
        super().__init__(*given, **more)

    def _advance(self, applied: int, last: int) -> None:
        self._reached.append((applied, time.perf_counter()))
        super()._advance(applied, last)

    def reached_at(self, seq: int) -> float:
        return self._reached[bisect_left(self._reached, (seq, 0.0))][1]


async def _written(log: EventLog, titles: JetStreamTitles, *, rate: int) -> list[tuple[int, float]]:
    """Each record's sequence, and when its append was answered."""
    written, lives = list[tuple[int, float]](), list[asyncio.Task[None]]()
    for number in range(round(rate * WRITTEN_S)):
        lives.append(asyncio.create_task(_live(log, titles, f"r{rate}-{number}", written)))
        await asyncio.sleep(1 / rate)
    await asyncio.gather(*lives)
    return written


async def _live(log: EventLog, titles: JetStreamTitles, job_id: str, written: list[tuple[int, float]]) -> None:
    await titles.write(job_id, title_of(job_id))
    job = None
    for word in LIVES[-1].split():
        event = queued(job_id) if job is None else step(job, word)
        answer = await log.append(event, after=job)
        assert isinstance(answer, Appended)
        written.append((answer.records[0].seq, time.perf_counter()))
        job = advance(job, event, seq=answer.records[0].seq)


def _fill(path: Path) -> int:
    index, seq = Index(path, epoch="bench"), 0
    index.open()
    piece = list[Record]()
    for record in records_of(JOBS, span=SPAN, dice=random.Random(1)):
        piece.append(record)
        seq = record.seq
        if len(piece) == PIECE:
            _fold(index, piece)
            piece = []
    if piece:
        _fold(index, piece)
    index.close()
    return seq


def _fold(index: Index, piece: Sequence[Record]) -> None:
    index.fold(piece, titles_of(index.unknown(piece)))


def _listed_ms(reader: IndexReader, wanted: JobFilter, sort: Sort) -> float:
    return _took_ms(lambda: reader.find(wanted, sort, before=None, count=51))


def _took_ms(ask: Callable[[], object]) -> float:
    times = list[float]()
    for _ in range(ROUNDS):
        began = time.perf_counter()
        ask()
        times.append((time.perf_counter() - began) * 1000)
    return median(times)
