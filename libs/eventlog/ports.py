"""What services use of NATS, a Protocol for each far end: the log, its snapshots, buckets, lines, a pool's messages.

Each has its store and its twin in memory, and one conformance suite holds both. A service that needs one method of a
far end asks for the far end: what it may do there is said by its rights at the server (`libs/local/permissions.py`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Protocol

from headgate_contracts import Job
from headgate_contracts.commands import JobProgress
from headgate_contracts.envelope import AnyEvent
from libs.eventlog.values import Appended, Conflicted, Entry, Fill, Mark, Page, Record, Wanted

if TYPE_CHECKING:  # they are made by what is kept here
    from libs.eventlog.buckets import Found
    from libs.eventlog.lines import LinePage
    from libs.eventlog.pipelines import AnnouncedPipeline


class EventLog(Protocol):
    """Every fact, in order. The truth. Of the log that `epoch` names."""

    @property
    def epoch(self) -> str: ...

    async def append(
        self, event: AnyEvent, *, after: Job | int | None, traceparent: str | None = None
    ) -> Appended | Conflicted:
        """Store the event if its job's last one is still `after`: the job as the writer knows it, or its sequence.

        Null is "nothing yet" for a new job, and no expectation at all for an operator's act; a reload of the policy
        names the reload before it, or 0.
        """
        ...

    async def append_batch(self, entries: Sequence[Entry]) -> Appended | Conflicted:
        """Store all entries or none, one event a job. The first has an expectation; one alone may expect besides where
        the whole log ends."""
        ...

    async def read(self, job_id: str, *, after: int = 0) -> list[Record]:
        """The job's records, oldest first, from the leader."""
        ...

    async def last(self, subject_filter: str) -> Record | None:
        """The newest record of these subjects, from the leader."""
        ...

    def follow(self, *, after: int, wanted: Wanted | None = None) -> AsyncGenerator[Page, None]:
        """Every record from `after` + 1 on, in pages, for ever. The first page may be empty: then there is nothing new.

        `wanted` is asked of each record's subject, once and when it comes: what it does not want is left out, and
        nobody looks into it. Close it (`contextlib.aclosing`) when leaving it early.
        """
        ...

    async def mark(self) -> Mark:
        """Epoch and last sequence, from the leader."""
        ...

    async def fill(self) -> Fill:
        """How full it is, from the leader."""
        ...


class Snapshots(Protocol):
    """Folds of the log, kept so that a rebuild need not read all of it."""

    async def put(self, data: bytes, *, mark: Mark) -> None:
        """Keep what the log adds up to at this mark. Older ones go, but for the one before."""
        ...

    async def newest(self, epoch: str) -> tuple[Mark, bytes] | None:
        """The furthest one of this log that can be read."""
        ...


class Inputs(Protocol):
    """Small contents by name: what jobs are made from, and answers to their questions."""

    async def put(self, name: str, content: bytes, /) -> None: ...
    async def get(self, name: str, /) -> bytes | None: ...
    async def delete(self, name: str, /) -> None: ...
    async def names(self) -> list[str]: ...
    async def revision(self) -> int: ...
    async def purge(self, name: str, /, *, through: int | None = None) -> None: ...


class Objects(Protocol):
    """Large contents by name: results, and the work that stages leave."""

    async def put(self, name: str, content: bytes, /) -> None: ...
    async def get(self, name: str, /) -> bytes | None: ...
    async def find(self, name: str, /) -> Found | None: ...
    def stream(self, found: Found, /, *, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes]: ...
    async def names(self, prefix: str = "", /) -> list[str]: ...
    async def delete(self, name: str, /) -> None: ...


class Titles(Protocol):
    """What lists call jobs."""

    async def write(self, job_id: str, title: str, /) -> None: ...
    async def of(self, ids: Sequence[str], /) -> dict[str, str]:
        """Those that can be had, and none where the bucket does not answer."""
        ...

    async def found(self, ids: Sequence[str], /) -> dict[str, str]:
        """The same; raises where the bucket does not answer."""
        ...

    async def delete(self, name: str, /) -> None: ...


class ProgressBucket(Protocol):
    """How far running jobs are."""

    async def report(self, said: JobProgress, /) -> None: ...
    async def of(self, ids: Sequence[str], /) -> dict[str, JobProgress]: ...
    async def delete(self, name: str, /) -> None: ...


class Lines(Protocol):
    """Lines of job logs."""

    def of(self, job_id: str, /, *, after: int = 0) -> AsyncGenerator[LinePage]: ...
    def follow(self, *, after: int, wanted: Wanted | None = None) -> AsyncGenerator[LinePage]: ...
    async def last(self, job_id: str, /) -> int: ...
    async def erase(self, job_id: str, /) -> None: ...


class PipelineBucket(Protocol):
    """Pipelines, as workers announce them."""

    async def announce(self, pipeline: AnnouncedPipeline, /) -> bool: ...
    async def all(self) -> tuple[AnnouncedPipeline, ...]: ...
    async def revision(self) -> int: ...
    async def remove(self, pool: str, name: str, /) -> bool: ...


class Dispatch(Protocol):
    """A message of a pool, as one of those who share it has it."""

    @property
    def record(self) -> Record: ...
    @property
    def tries(self) -> int:
        """How often it was delivered, this time included."""
        ...

    async def ack(self, *, sure: bool = True) -> None:
        """It is done with. Where it is not to be `sure`, it may come again."""
        ...

    async def nak(self, *, after_s: float = 0) -> None: ...


class Dispatches(Protocol):
    """The messages of a pool."""

    async def next(self) -> Dispatch: ...
