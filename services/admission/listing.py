"""A user's jobs, newest first, page by page: all that the log has of them, each as the view has it where it does.

    view    unfinished ones, and those that ended a moment ago      as they stand now
    log     all                                                     which there are, and how it ended with those

What has ended never changes, so what was read of it once is remembered, for as many as `REMEMBERED`.

Owns the filters and the cursor. A cursor names the list it belongs to and the job to go on after: it means nothing in
another list, and is refused there.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from headgate_contracts import Event, Job, Status
from headgate_contracts.events import JobData
from libs.eventlog import Record

BATCH: Final = 100  # jobs looked at together
MOST_BATCHES: Final = 10  # then the page is as short as it is: a filter that finds little must not hold up others
REMEMBERED: Final = 2000  # some ten megabytes


class Copies(Protocol):
    async def job(self, job: str) -> str | None: ...
    async def jobs_of(
        self, user: str, *, before: int | None = None, count: int = 50
    ) -> tuple[tuple[str, int], ...]: ...


class Past(Protocol):
    async def first_events(
        self, user: str, *, project: str | None = None, before: int | None = None, count: int
    ) -> list[Record]: ...
    async def jobs(self, ids: Sequence[str], *, after: int = 0) -> dict[str, Job]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs of whom."""

    user: str
    statuses: frozenset[Status] = frozenset()
    project: str | None = None
    workflow: str | None = None

    def takes(self, job: Job) -> bool:
        return (
            (not self.statuses or job.status in self.statuses)
            and self.project in (None, job.project_id)
            and self.workflow in (None, job.submission.workflow)
        )

    def name(self, epoch: str) -> str:
        """The same for the same list, and for no other: a sequence means something in one log alone."""
        parts = [epoch, self.user, sorted(self.statuses), self.project, self.workflow]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs, newest first. `before`: where the next page goes on; null at the end."""

    jobs: tuple[Job, ...]
    before: int | None


@dataclass(frozen=True, slots=True)
class Listing:
    """The use case, with what it needs."""

    view: Copies
    past: Past
    _ended: dict[str, Job] = field(default_factory=dict[str, Job])

    async def page(self, wanted: JobFilter, *, before: int | None, count: int) -> JobPage:
        """At most `count` jobs, all of them older than the one whose first event is `before`."""
        found, looked = list[Job](), before
        for _ in range(MOST_BATCHES):
            batch = await self._older(wanted, looked)
            if not batch:
                return _page(found, count, None)
            found += filter(wanted.takes, batch)
            looked = batch[-1].first_seq
            if len(found) > count:
                break
        return _page(found, count, looked)

    async def _older(self, wanted: JobFilter, before: int | None) -> list[Job]:
        """The next jobs of the user, wanted or not; none at the end."""
        near, firsts = await asyncio.gather(
            self.view.jobs_of(wanted.user, before=before, count=BATCH),
            self.past.first_events(wanted.user, project=wanted.project, before=before, count=BATCH),
        )
        last = firsts[-1].seq if len(firsts) == BATCH else 0
        there = {seq: job_id for job_id, seq in near if seq >= last}
        there |= {record.seq: job_id for record in firsts for job_id in _job_in(record)}
        jobs = await self._jobs(list(there.values()), after=min(there, default=1) - 1)
        return [jobs[there[seq]] for seq in sorted(there, reverse=True) if there[seq] in jobs]

    async def _jobs(self, ids: Sequence[str], *, after: int) -> dict[str, Job]:
        known = await self._copies(ids) | {job_id: self._ended[job_id] for job_id in ids if job_id in self._ended}
        gone = [job_id for job_id in ids if job_id not in known]
        read = await self.past.jobs(gone, after=after) if gone else {}
        for job in read.values():
            self._remember(job)
        return known | read

    def _remember(self, job: Job) -> None:
        if job.status.is_end:
            self._ended[job.id] = job
            if len(self._ended) > REMEMBERED:
                del self._ended[next(iter(self._ended))]

    async def _copies(self, ids: Iterable[str]) -> dict[str, Job]:
        texts = await asyncio.gather(*map(self.view.job, ids))
        jobs = (Job.model_validate_json(text) for text in texts if text is not None)
        return {job.id: job for job in jobs}


def cursor_of(before: int, *, name: str) -> str:
    """Where to go on, in this list."""
    return base64.urlsafe_b64encode(f"{before}.{name}".encode()).decode().rstrip("=")


def read_cursor(text: str, *, name: str) -> int | None:
    """Null where it does not belong to this list."""
    try:
        before, _, named = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().partition(".")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
    return int(before) if named == name and before.isascii() and before.isdigit() else None


def _page(found: list[Job], count: int, looked: int | None) -> JobPage:
    jobs = tuple(found[:count])
    return JobPage(jobs, jobs[-1].first_seq if len(found) > count else looked)


def _job_in(record: Record) -> Iterator[str]:
    if isinstance(record.event, Event) and isinstance(record.event.data, JobData):
        yield record.event.data.job_id
