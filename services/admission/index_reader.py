"""Finding jobs in the index, and counting them: the file's reader, beside its one writer (`index`).

Owns the questions that are asked of the tables. Reads alone, and opens the file again where another has taken its
place.
"""

import sqlite3
import zlib
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from headgate_contracts import Job
from headgate_contracts.envelope import utc
from headgate_contracts.shown import WorkerAttempt
from headgate_contracts.tokens import is_mapped
from libs.forecast.waited import HoldSpans
from services.admission import index
from services.admission.figures import ChartSpan, Counted
from services.admission.finding import Facet, JobFilter, Sort, count_query, page_query
from services.admission.index_holds import holds_in

STEPS: Final = "SELECT (minute-?)/?, name, of, sum(count) FROM minutes WHERE minute >= ? GROUP BY 1, 2, 3"
WAITS: Final = "SELECT (minute-?)/?, ms FROM waits WHERE minute >= ? ORDER BY ms"
ATTEMPTS: Final = (
    "SELECT jobs.id, attempt, worker, jobs.pool, began, ended, end FROM attempts JOIN jobs USING (seq)"
    " WHERE worker = ? OR ? IS NULL ORDER BY began DESC, seq DESC LIMIT ?"
)


class IndexReader:
    """Finds jobs in the file, which another may be writing. Its methods block: they are called from one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._opened = ""

    def find(self, wanted: JobFilter, sort: Sort, *, before: int | None, count: int) -> list[tuple[int, Job]]:
        """At most `count` jobs that come after `before` in this order, each with its own place in it. Raises
        IndexStrange where there is no file, or one that cannot be read."""
        with self._reading() as db:
            rows: list[Any] = db.execute(*page_query(wanted, sort, before=before, count=count)).fetchall()
            return [(sort.key(row[0], row[1]), index.unpacked(row[2])) for row in rows]

    def counts(self, wanted: JobFilter, facet: Facet, *, most: int) -> dict[str, int]:
        """How many jobs have each name, the most frequent first, by the names that their users gave."""
        with self._reading() as db:
            rows: list[Any] = db.execute(*count_query(wanted, facet, most=most)).fetchall()
            return {self._as_given(db, facet, name, newest): count for name, count, newest in rows}

    def counted(self, span: ChartSpan) -> Counted:
        """What charts of this span are made of."""
        within = (span.start, span.step, span.start)
        with self._reading() as db:
            before: list[Any] = db.execute(index.LEVELS_BEFORE, (span.start,)).fetchall()
            steps: list[Any] = db.execute(STEPS, within).fetchall()
            waits: list[Any] = db.execute(WAITS, within).fetchall()
            return Counted({(name, of): count for name, of, count in before}, tuple(steps), tuple(waits))

    def attempts(self, worker: str | None, *, count: int) -> list[WorkerAttempt]:
        """The newest first."""
        with self._reading() as db:
            rows: list[Any] = db.execute(ATTEMPTS, (worker, worker, count)).fetchall()
            return [_attempt(row) for row in rows]

    def holds(self, scopes: Iterable[str], groups: Iterable[str], *, since_ms: int, until_ms: int) -> HoldSpans:
        """What held jobs of these scopes and groups between these moments."""
        with self._reading() as db:
            return holds_in(db, scopes, groups, since_ms=since_ms, until_ms=until_ms)

    def _as_given(self, db: sqlite3.Connection, facet: Facet, name: str, newest: int) -> str:
        if facet is not Facet.PROJECT or not is_mapped(name):
            return name
        [(state,)] = db.execute("SELECT state FROM states WHERE seq=?", (newest,)).fetchall()
        return index.unpacked(state).submission.project_name or name

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        try:
            yield self._connected()
        except (sqlite3.Error, OSError, zlib.error) as fault:
            self.close()
            raise index.IndexStrange(str(fault)) from fault

    def close(self) -> None:
        """Safe twice."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _connected(self) -> sqlite3.Connection:
        there = index.file_id(self._path)
        if self._db is None or there != self._opened:
            self.close()
            self._db = sqlite3.connect(f"file:{self._path}?mode=rw", uri=True, check_same_thread=False)
            self._db.execute(f"PRAGMA busy_timeout={index.BUSY_MS}").fetchall()
            self._db.execute("PRAGMA query_only=ON").fetchall()
            self._opened = there
        return self._db


def _attempt(row: Sequence[Any]) -> WorkerAttempt:
    job_id, attempt, worker, pool, began, ended, end = row
    return WorkerAttempt(
        job_id=job_id,
        attempt=attempt,
        worker=worker,
        pool=pool,
        began_at=utc(began),
        ended_at=None if ended is None else utc(ended),
        end=end,
    )
