"""How long lists, counts and charts take: an index of so many jobs, each filter in each order, each span of time.

Printed as rows of Markdown tables. Nothing is asserted: what is found is held by tests/conformance.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Final

import pytest

from headgate_contracts import Status, advance
from libs.eventlog import Record
from services.admission.figures import ChartSpan
from services.admission.finding import Facet, JobFilter, Sort
from services.admission.index import Index, IndexReader
from tests.fixtures.lives import queued, step

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3600)]

JOBS: Final = max(1000, round(100_000 * float(os.environ.get("HEADGATE_BENCH_SHARE", "1"))))
SPAN: Final = timedelta(days=30)  # over which they come
END: Final = datetime(2026, 3, 1, tzinfo=UTC)
PIECE: Final = 200
ROUNDS: Final = 5
WORDS: Final = ("url", "shortener", "with", "expiry", "todo", "list", "rate", "limiter", "shop", "checkout", "page")
FILTERS: Final = {
    "all": JobFilter(user=None),
    "a user": JobFilter(user="u7"),
    "a status that none has": JobFilter(user=None, statuses=frozenset({Status.FAILED})),
    "a user, a status, a project": JobFilter(user="u7", statuses=frozenset({Status.CANCELLED}), project="p3"),
    "a word of many": JobFilter(user=None, text="shop"),
    "two words, none": JobFilter(user=None, text="shop che", statuses=frozenset({Status.FAILED})),
    "what every id begins with": JobFilter(user=None, text="j"),
    "the same, none": JobFilter(user=None, text="j", project="none"),
}
LIVES: Final = ("queued", "queued cancelled", "queued dispatched started scaffold code deps checks ready")
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


def _fill(path: Path) -> int:
    index, seq = Index(path, epoch="bench"), 0
    index.open()
    piece, titles = list[Record](), dict[str, str]()
    for record, title in _records(random.Random(1)):
        piece.append(record)
        titles |= title
        seq = record.seq
        if len(piece) == PIECE:
            index.fold(piece, titles)
            piece, titles = [], {}
    if piece:
        index.fold(piece, titles)
    index.close()
    return seq


def _records(dice: random.Random) -> Iterator[tuple[Record, dict[str, str]]]:
    """Jobs one after the other, evenly over the span: a third waits, a third is cancelled, a third has run."""
    seq = 0
    for number in range(JOBS):
        at, job, job_id = END - SPAN + SPAN * number / JOBS, None, f"j{dice.getrandbits(96):024x}"
        title = {job_id: " ".join(dice.sample(WORDS, 5))}
        for word in LIVES[number % len(LIVES)].split():
            owner = {"user_id": f"u{dice.randrange(100)}", "project_id": f"p{dice.randrange(20)}"}
            event = queued(job_id, **owner) if job is None else step(job, word)
            seq, at = seq + 1, at + timedelta(seconds=30)
            job = advance(job, event, seq=seq, at=at)
            yield Record(seq, at, event), title


def _listed_ms(reader: IndexReader, wanted: JobFilter, sort: Sort) -> float:
    return _took_ms(lambda: reader.find(wanted, sort, before=None, count=51))


def _took_ms(ask: Callable[[], object]) -> float:
    times = list[float]()
    for _ in range(ROUNDS):
        began = time.perf_counter()
        ask()
        times.append((time.perf_counter() - began) * 1000)
    return median(times)
