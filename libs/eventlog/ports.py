"""The log's interface. `JetStreamLog` and its twin `MemoryLog` keep it, and one conformance suite holds both."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from headgate_contracts import Job
from headgate_contracts.envelope import AnyEvent
from libs.eventlog.values import Appended, Conflicted, Entry, Fill, Mark, Page, Record, Wanted


class EventLog(Protocol):
    """Every fact, in order. The truth."""

    async def append(
        self, event: AnyEvent, *, after: Job | int | None, traceparent: str | None = None
    ) -> Appended | Conflicted:
        """Store the event if its job's last one is still `after`: the job as the writer knows it, or its sequence.

        Null is "nothing yet" for a new job, and no expectation at all for an operator's act.
        """
        ...

    async def append_batch(self, entries: Sequence[Entry]) -> Appended | Conflicted:
        """Store all entries or none, one event a job. The first has an expectation."""
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
