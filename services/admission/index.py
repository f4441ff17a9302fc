"""The index: every job that the log has, in one SQLite file of this replica, to be found by anything.

    jobs      what lists are filtered and sorted by, one narrow row a job    a walk over 100,000 takes some 10 ms
    states    the folded job, packed
    labels    label → jobs
    words     title, id and labels: FTS5
    minutes   what each minute's events changed, for charts; waits: each first start; attempts: what workers took up
    pauses    and full groups: what has held jobs, and when (`index_holds`)
    meta      which log, how far it is folded, and which file this was when it was made

A view that can be thrown away: a file that is missing, of another log or shape, copied, or not sound is made anew.
Owns the file and its SQL. Refuses to know where records come from. What a tenant types is quoted: it never becomes
syntax. Erased text leaves no byte: freed pages are zeroed, the words are made again, the write-ahead log is cut.
"""

import sqlite3
import zlib
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from headgate_contracts import ContractError, Event, Job, UnknownEvent
from headgate_contracts.events import ContentErased, JobData, JobGivenBack
from libs.capacity.projection import epoch_ms
from libs.eventlog import Record
from libs.eventlog.decoding import job_in
from services.admission import index_holds
from services.admission.figures import changes, minute_of, summed, wait_ms

SHAPE: Final = "6"  # of the tables; another one is made anew
KNOWN: Final = 20_000  # unfinished jobs that are kept folded
BUSY_MS: Final = 2000
FILES: Final = ("", "-wal", "-shm")
TABLES: Final = """
CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE jobs(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, user TEXT, project TEXT, status TEXT, pipeline TEXT,
                  pool TEXT, workflow TEXT, created INTEGER, updated INTEGER, class INTEGER, last INTEGER);
CREATE INDEX of_user ON jobs(user, seq);
CREATE TABLE states(seq INTEGER PRIMARY KEY, state BLOB NOT NULL);
CREATE TABLE labels(label TEXT, seq INTEGER, PRIMARY KEY(label, seq)) WITHOUT ROWID;
CREATE INDEX labels_of ON labels(seq);
CREATE TABLE minutes(minute INTEGER, name TEXT, of TEXT, count INTEGER, PRIMARY KEY(minute, name, of)) WITHOUT ROWID;
CREATE TABLE waits(seq INTEGER PRIMARY KEY, minute INTEGER, ms INTEGER);
CREATE INDEX of_minute ON waits(minute);
CREATE TABLE attempts(seq INTEGER, attempt INTEGER, worker TEXT, began INTEGER, ended INTEGER, end TEXT,
                      PRIMARY KEY(seq, attempt)) WITHOUT ROWID;
CREATE INDEX of_worker ON attempts(worker, began);
CREATE INDEX of_began ON attempts(began);
CREATE VIRTUAL TABLE words USING fts5(title, id, labels, prefix='1 2 3', tokenize='unicode61 remove_diacritics 2');
"""
MINUTES_KEPT: Final = 100 * 24 * 60
COUNT: Final = "INSERT INTO minutes VALUES(?,?,?,?) ON CONFLICT DO UPDATE SET count=count+excluded.count"
LEVELS_BEFORE: Final = (
    "SELECT name, of, sum(count) FROM minutes WHERE minute < ? AND name IN ('queued', 'running') GROUP BY 1, 2"
)
IndexStep = tuple[Job | None, Job, Record]  # a job before an event and after it
JOB_ROW: Final = "INSERT OR REPLACE INTO jobs VALUES(?,?,?,?,?,?,?,?,?,?,?,?)"


class IndexStrange(Exception):
    """The index's file is not the one that was made here, or not sound."""


class Index:
    """The file's one writer. Its methods block: they are called from one thread."""

    def __init__(self, path: Path, *, epoch: str) -> None:
        self.path = path
        self._epoch = epoch
        self._db: sqlite3.Connection | None = None
        self._jobs: dict[str, Job] = {}

    def open(self) -> int:
        """How far it is folded. What is no sound index of this log is thrown away."""
        self.close()
        try:
            return self._opened()
        except (sqlite3.Error, OSError, IndexStrange, ValueError):
            self.discard()
            self._create()
            return self._opened()

    def close(self) -> None:
        """Safe twice."""
        self._jobs.clear()
        if self._db is not None:
            self._db.close()
            self._db = None

    def discard(self) -> None:
        """It is made anew when it is opened next."""
        self.close()
        for end in FILES:
            Path(f"{self.path}{end}").unlink(missing_ok=True)

    def unknown(self, records: Sequence[Record]) -> list[str]:
        """The jobs that begin in these records: those whose titles are wanted."""
        return [job_id for record in records for job_id in _begun(record)]

    def fold(self, records: Sequence[Record], titles: Mapping[str, str]) -> None:
        """All of them, or none."""
        db = self._checked()
        changed, erased, steps = dict[str, Job](), list[tuple[str, int]](), list[IndexStep]()
        for record in records:
            match record.event:
                case Event(data=ContentErased(user_id=user)):
                    erased.append((user, record.seq))
                case Event(data=JobData(job_id=job_id)) | UnknownEvent(job_id=str(job_id)):
                    before = changed.get(job_id) or self._known(db, job_id)
                    job = self._after(before, record)
                    if job is not None and job is not before:
                        changed[job_id] = job
                        steps.append((before, job, record))
                case _:
                    pass
        try:
            with _transaction(db):
                self._write(db, changed.values(), titles)
                _count(db, steps)
                _fold_holds(db, records, steps)
                for user, seq in erased:
                    _erase(db, user, before=seq)
                db.execute("INSERT OR REPLACE INTO meta VALUES('applied', ?)", (str(records[-1].seq),))
        except BaseException:
            self._jobs.clear()
            raise
        self._remember(changed)
        if erased:
            _leave_no_byte(db)

    def forget_before(self, first_seq: int) -> None:
        """Jobs of which the log has nothing any more."""
        db = self._checked()
        with _transaction(db):
            old = [(seq,) for (seq,) in db.execute("SELECT seq FROM jobs WHERE last < ?", (first_seq,))]
            for statement in (
                "DELETE FROM words WHERE rowid=?",
                "DELETE FROM states WHERE seq=?",
                "DELETE FROM labels WHERE seq=?",
                "DELETE FROM waits WHERE seq=?",
                "DELETE FROM attempts WHERE seq=?",
                "DELETE FROM jobs WHERE seq=?",
            ):
                db.executemany(statement, old)
            _join_old_minutes(db)
            index_holds.forget_holds(db, first_seq)

    def _opened(self) -> int:
        this_file = file_id(self.path)
        db = self._db = sqlite3.connect(
            f"file:{self.path}?mode=rw", uri=True, isolation_level=None, check_same_thread=False
        )
        for pragma in ("secure_delete=ON", "temp_store=MEMORY", "synchronous=NORMAL", f"busy_timeout={BUSY_MS}"):
            db.execute(f"PRAGMA {pragma}").fetchall()
        [(sound,)] = db.execute("PRAGMA quick_check(1)").fetchall()
        meta = dict(db.execute("SELECT name, value FROM meta").fetchall())
        wanted = {"shape": SHAPE, "epoch": self._epoch, "file": this_file}
        if sound != "ok" or any(meta.get(name) != value for name, value in wanted.items()):
            raise IndexStrange(f"{self.path} is no index of this log")
        if "untidy" in meta:
            _leave_no_byte(db)
        return int(meta["applied"])

    def _create(self) -> None:
        self.path.touch(mode=0o600)
        with closing(sqlite3.connect(self.path, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.executescript(TABLES + index_holds.TABLES)
            meta = {"shape": SHAPE, "epoch": self._epoch, "file": file_id(self.path), "applied": "0"}
            db.executemany("INSERT INTO meta VALUES(?, ?)", meta.items())

    def _checked(self) -> sqlite3.Connection:
        if self._db is None or not self.path.exists():
            raise IndexStrange(f"{self.path} is gone")
        [(made_as,)] = self._db.execute("SELECT value FROM meta WHERE name='file'").fetchall()
        if made_as != file_id(self.path):
            raise IndexStrange(f"another file has taken the place of {self.path}")
        return self._db

    def _known(self, db: sqlite3.Connection, job_id: str) -> Job | None:
        if job_id in self._jobs:
            return self._jobs[job_id]
        row = db.execute("SELECT state FROM states JOIN jobs USING (seq) WHERE id=?", (job_id,)).fetchone()
        return None if row is None else unpacked(row[0])

    def _after(self, job: Job | None, record: Record) -> Job | None:
        """Null for what cannot be folded: its first events have gone by age, or it is strange."""
        if job is not None and record.seq <= job.seq:
            return job
        try:
            return job_in([record], onto=job)
        except ContractError:
            return job

    def _write(self, db: sqlite3.Connection, jobs: Iterable[Job], titles: Mapping[str, str]) -> None:
        for job in jobs:
            asked = job.submission
            times = (epoch_ms(job.created_at), epoch_ms(job.updated_at))
            what = (job.status.value, asked.pipeline, asked.pool, asked.workflow)
            row = (
                job.first_seq,
                job.id,
                job.user_id,
                job.project_id,
                *what,
                *times,
                job.priority.class_number,
                job.seq,
            )
            db.execute(JOB_ROW, row)
            db.execute("INSERT OR REPLACE INTO states VALUES(?, ?)", (job.first_seq, _packed(job)))
            if job.id not in self._jobs and not _is_there(db, job.first_seq):
                labels = [f"{name}={value}" for name, value in asked.labels.items()]
                db.executemany("INSERT OR IGNORE INTO labels VALUES(?, ?)", [(each, job.first_seq) for each in labels])
                words = (job.first_seq, titles.get(job.id, ""), job.id, " ".join(labels))
                db.execute("INSERT INTO words(rowid, title, id, labels) VALUES(?, ?, ?, ?)", words)

    def _remember(self, changed: Mapping[str, Job]) -> None:
        for job_id, job in changed.items():
            self._jobs.pop(job_id, None)
            if not job.status.is_end:
                self._jobs[job_id] = job
        while len(self._jobs) > KNOWN:
            del self._jobs[next(iter(self._jobs))]


def unpacked(state: bytes) -> Job:
    return Job.model_validate_json(zlib.decompress(state))


def _packed(job: Job) -> bytes:
    return zlib.compress(job.model_dump_json(exclude_defaults=True).encode(), 1)


def file_id(path: Path) -> str:
    """A copy that has taken its place is another file."""
    found = path.stat()
    return f"{found.st_dev}:{found.st_ino}"


def _count(db: sqlite3.Connection, steps: Sequence[IndexStep]) -> None:
    """What each event changed, for charts and for the workers' history."""
    found = summed(
        (minute_of(record), *change) for before, job, record in steps for change in changes(before, job, record)
    )
    db.executemany(COUNT, [(*key, count) for key, count in found.items()])
    for before, job, record in steps:
        waited = wait_ms(before, job, record)
        if waited is not None:
            db.execute("INSERT OR REPLACE INTO waits VALUES(?,?,?)", (job.first_seq, minute_of(record), waited))
        if job.worker is not None and job.status.is_running and (before is None or before.worker is None):
            taken = (job.first_seq, job.attempt, job.worker, epoch_ms(record.at))
            db.execute("INSERT OR IGNORE INTO attempts VALUES(?,?,?,?,NULL,NULL)", taken)
        if before is not None and before.status.is_running and not job.status.is_running:
            ended = (epoch_ms(record.at), _end_of(job, record), job.first_seq, before.attempt)
            db.execute("UPDATE attempts SET ended=?, end=? WHERE seq=? AND attempt=?", ended)


def _fold_holds(db: sqlite3.Connection, records: Sequence[Record], steps: Sequence[IndexStep]) -> None:
    known = {record.seq: (before, job) for before, job, record in steps}
    for record in records:
        index_holds.fold_hold(db, record, *known.get(record.seq, (None, None)))


def _end_of(job: Job, record: Record) -> str:
    match record.event:
        case Event(data=JobGivenBack(reason=reason)):
            return reason.value
        case _:
            return job.status.value


def _join_old_minutes(db: sqlite3.Connection) -> None:
    """Of what is older than charts go, only the levels are kept, as one minute."""
    [(newest,)] = db.execute("SELECT max(minute) FROM minutes").fetchall()
    oldest = (newest or 0) - MINUTES_KEPT
    levels: list[Any] = db.execute(LEVELS_BEFORE, (oldest,)).fetchall()
    db.execute("DELETE FROM minutes WHERE minute < ?", (oldest,))
    db.executemany(COUNT, [(oldest - 1, name, of, count) for name, of, count in levels if count])


def _begun(record: Record) -> Iterator[str]:
    match record.event:
        case Event(data=JobData(job_id=job_id), sequence=1):
            yield job_id
        case _:
            pass


def _is_there(db: sqlite3.Connection, seq: int) -> bool:
    return db.execute("SELECT 1 FROM words WHERE rowid=?", (seq,)).fetchone() is not None


def _erase(db: sqlite3.Connection, user: str, *, before: int) -> None:
    """The titles of all that this user had submitted by then. `untidy` stays until their bytes are gone too."""
    db.execute("UPDATE words SET title='' WHERE rowid IN (SELECT seq FROM jobs WHERE user=? AND seq<?)", (user, before))
    db.execute("INSERT OR REPLACE INTO meta VALUES('untidy', '1')")


def _leave_no_byte(db: sqlite3.Connection) -> None:
    """Made again from what is there, the words keep nothing of what is gone (merging them does, by newer SQLite); then
    what was written on the way is cut off."""
    with _transaction(db):
        db.execute("INSERT INTO words(words) VALUES('rebuild')")
    [(busy, _, _)] = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    if busy:
        raise IndexStrange("a reader holds on to what is to be erased")
    db.execute("DELETE FROM meta WHERE name='untidy'")


@contextmanager
def _transaction(db: sqlite3.Connection) -> Generator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
