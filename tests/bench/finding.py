"""How long lists take: an index of so many jobs, and each filter in each order.

python -m tests.bench.finding 100000
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final

from headgate_contracts import Status, advance
from libs.eventlog import Record
from services.admission.finding import JobFilter, Sort
from services.admission.index import Index, IndexReader
from tests.fixtures.lives import queued, step

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


def main(jobs: int) -> None:
    """Make the index, then ask it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.sqlite3"
        began = time.perf_counter()
        _fill(path, jobs)
        took_s, size = time.perf_counter() - began, path.stat().st_size / 1e6
        print(f"{jobs} jobs folded in {took_s:.1f} s, {size:.0f} MB")
        reader = IndexReader(path)
        for name, wanted in FILTERS.items():
            for sort in Sort:
                print(f"{name:28} {sort:9} {_asked_ms(reader, wanted, sort):7.1f} ms")
        reader.close()


def _fill(path: Path, jobs: int) -> None:
    index, dice, seq = Index(path, epoch="bench"), random.Random(1), 0
    index.open()
    piece, titles = list[Record](), dict[str, str]()
    for number in range(jobs):
        job_id = f"j{dice.getrandbits(96):024x}"
        event = queued(job_id, user_id=f"u{dice.randrange(100)}", project_id=f"p{dice.randrange(20)}")
        seq += 1
        piece.append(Record(seq, event.time, event))
        titles[job_id] = " ".join(dice.sample(WORDS, 5))
        if number % 3 == 0:
            ended = step(advance(None, event, seq=seq), "cancelled")
            seq += 1
            piece.append(Record(seq, ended.time, ended))
        if len(piece) >= PIECE or number == jobs - 1:
            index.fold(piece, titles)
            piece, titles = [], {}
    index.close()


def _asked_ms(reader: IndexReader, wanted: JobFilter, sort: Sort) -> float:
    times = list[float]()
    for _ in range(ROUNDS):
        began = time.perf_counter()
        reader.find(wanted, sort, before=None, count=51)
        times.append((time.perf_counter() - began) * 1000)
    return median(times)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
