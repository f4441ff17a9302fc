"""The log, read backwards in time: what a view of unfinished work does not hold any more.

    first_events(user)   newest first, page by page      counted first, in windows that grow: nothing is read in vain
    jobs(ids)            as their events add up to       some at a time
    acts(since)          what was done by operators      oldest first, as an audit is read

Owns the filters of these questions. A scan may lag behind the leader by as much as a replica does: these are lists for
people, no decision rests on them.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from headgate_contracts import ContractError, Event, EventName, Job, Writer, consumer_filter, job_filter
from headgate_contracts.events import JobData
from headgate_contracts.subjects import OPS_PREFIX
from libs.eventlog.decoding import job_in
from libs.eventlog.memory import MemoryServer
from libs.eventlog.scanning import JetStreamScans
from libs.eventlog.values import Record

FIRST_SPAN = 20_000  # records of the log that one user's newest jobs are counted in; then four times as many
WIDER = 4
JOBS_AT_ONCE = 16  # consumers at a time
BEGINNINGS = (EventName.QUEUED, EventName.SCHEDULED, EventName.WAITING)
DONE_TO_JOBS = (EventName.REPRIORITIZED, EventName.MOVED, EventName.CANCEL_REQUESTED, EventName.CANCELLED)
_log = logging.getLogger(__name__)


class Scans(Protocol):
    """The far end: what a log holds now, oldest first."""

    async def ends(self) -> tuple[int, int]: ...
    async def count(self, filters: Sequence[str], *, after: int) -> int: ...
    def pages(
        self, filters: Sequence[str], *, after: int = 0, since: datetime | None = None, most: int | None = None
    ) -> AsyncGenerator[list[Record]]: ...


@dataclass(frozen=True, slots=True)
class _Window:
    """From `start` on and before `end`, and how many records it holds of each filter."""

    start: int
    end: int
    records: tuple[int, ...]


class History:
    """What has been. `JetStreamScans` or `MemoryScans` is where it is read from."""

    def __init__(self, scans: Scans) -> None:
        self._scans = scans

    async def first_events(
        self, user: str, *, project: str | None = None, before: int | None = None, count: int
    ) -> list[Record]:
        """The first events of this user's jobs, newest first: at most `count`, all older than the record `before`."""
        filters = [consumer_filter(user_id=user, project_id=project, event=event) for event in BEGINNINGS]
        first, last = await self._scans.ends()
        end, found = last + 1 if before is None else min(before, last + 1), list[Record]()
        while end > first and len(found) < count:
            window = await self._window(filters, first, end, count=count - len(found))
            if not any(window.records):
                break
            found = await self._begun(filters, window) + found
            end = window.start
        return found[::-1][:count]

    async def jobs(self, ids: Sequence[str], *, after: int = 0) -> dict[str, Job]:
        """These jobs, as far as the log has them. `after`: none of them began before that."""
        turns = asyncio.Semaphore(JOBS_AT_ONCE)

        async def records_of(job_id: str) -> list[Record]:
            async with turns:
                return await self._all([job_filter(job_id)], after=after)

        return dict(_folded(await asyncio.gather(*map(records_of, ids))))

    async def acts(self, *, since: datetime | None = None, after: int = 0, count: int) -> list[Record]:
        """What operators did to the queue and to others' jobs, oldest first: at most `count` records."""
        filters = [f"{OPS_PREFIX}.>", *(consumer_filter(event=event) for event in DONE_TO_JOBS)]
        found = list[Record]()
        async with aclosing(self._scans.pages(filters, after=after, since=None if after else since)) as pages:
            async for page in pages:
                found += [record for record in page if _done_by_somebody(record)]
                if len(found) >= count:
                    break
        return found[:count]

    async def _window(self, filters: Sequence[str], first: int, end: int, *, count: int) -> _Window:
        """The nearest stretch before `end` that holds so many records, or all that there are."""
        beyond, start, span = await self._count(filters, end), end, FIRST_SPAN
        while True:
            start, span = max(first, start - span), span * WIDER
            counts = await self._count(filters, start)
            records = tuple(many - few for many, few in zip(counts, beyond, strict=True))
            if sum(records) >= count or start == first:
                return _Window(start, end, records)

    async def _count(self, filters: Sequence[str], start: int) -> list[int]:
        """One by one: a consumer of several filters looks at every block of the log, one of a single one does not."""
        return await asyncio.gather(*(self._scans.count([each], after=start - 1) for each in filters))

    async def _begun(self, filters: Sequence[str], window: _Window) -> list[Record]:
        after, wanted = window.start - 1, zip(filters, window.records, strict=True)
        found = await asyncio.gather(*(self._all([each], after=after, most=count) for each, count in wanted if count))
        begun = (record for records in found for record in records if record.seq < window.end and _begins(record))
        return sorted(begun, key=lambda record: record.seq)

    async def _all(self, filters: Sequence[str], *, after: int, most: int | None = None) -> list[Record]:
        async with aclosing(self._scans.pages(filters, after=after, most=most)) as pages:
            return [record async for page in pages for record in page]


class MemoryScans:
    """The twin of `JetStreamScans`."""

    def __init__(self, server: MemoryServer) -> None:
        self._server = server

    async def ends(self) -> tuple[int, int]:
        return self._server.first_seq, self._server.last_seq

    async def count(self, filters: Sequence[str], *, after: int) -> int:
        return len(self._server.records(filters, after=after))

    async def pages(
        self, filters: Sequence[str], *, after: int = 0, since: datetime | None = None, most: int | None = None
    ) -> AsyncGenerator[list[Record]]:
        records = [each for each in self._server.records(filters, after=after) if since is None or each.at >= since]
        if records:
            yield records[:most]


def _begins(record: Record) -> bool:
    """A job enters the queue more than once; only its first event has no other before it."""
    return isinstance(record.event, Event) and record.event.sequence == 1


def _done_by_somebody(record: Record) -> bool:
    """What ageing, spacing, an ended phase or a job's own user did is no operator's act."""
    match record.event:
        case Event(data=JobData() as data, writer=writer):
            return writer is Writer.ADMISSION and getattr(data, "by", data.user_id) != data.user_id
        case Event():
            return True
        case _:
            return False


def _folded(lives: Iterable[Sequence[Record]]) -> Iterator[tuple[str, Job]]:
    for records in lives:
        try:
            job = job_in(records)
        except ContractError as error:  # its first events have gone by age, or one is strange: the others are shown
            _log.warning("a job cannot be read from the log: %s", error)
        else:
            if job is not None:
                yield job.id, job


__all__ = ["History", "JetStreamScans", "MemoryScans", "Scans"]
