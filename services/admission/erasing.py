"""The end of a user's content: what their jobs were made from and called, what they made and said.

    cancel what is unfinished ─► wait a while for its workers ─► delete ─► `content_erased`, once nothing can come after

Events stay: they hold ids and no content. What stands beside the inputs is found by name: an answer to a question may
be there that no event names. As long as a worker still runs a job of the user it may write again, so then the act is
not written and the answer names the jobs: the same call, repeated, ends it. A replica that is killed in the middle
repeats it too: what is gone stays gone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from headgate_contracts import Event, Job, consumer_filter
from headgate_contracts.envelope import utc
from headgate_contracts.events import ContentErased, JobData
from libs.eventlog import LogUnavailable, Record
from libs.eventlog.history import History
from libs.eventlog.ports import EventLog, Inputs, Lines, Objects, ProgressBucket, Titles
from libs.policy import Policy
from libs.runtime.clock import Clock
from services.admission.acts import Acts
from services.admission.changing import Changing
from services.admission.events import Actor
from services.admission.ports import Ids

BATCH: Final = 100
AT_ONCE: Final = 16  # deletions under way
WORKERS_WITHIN_MS: Final = 15_000  # a heartbeat brings a worker the news within 5 s, then it ends its processes
LOOK_EVERY_MS: Final = 250


@dataclass(frozen=True, slots=True)
class NobodysJobs:
    """The log knows no job of this user."""


@dataclass(frozen=True, slots=True)
class Erased:
    """`unfinished` jobs still run: what they write from now on is not erased."""

    jobs: int
    cancelled: tuple[str, ...]
    unfinished: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ContentStores:
    """Where content is kept: everywhere that a job's events name, and its lines."""

    inputs: Inputs
    titles: Titles
    progress: ProgressBucket
    buckets: tuple[Objects, ...]  # results and workspaces
    lines: Lines


@dataclass(frozen=True, slots=True)
class Erasing:
    """The use case, with what it needs."""

    past: History
    log: EventLog
    changing: Changing
    kept: ContentStores
    policy: Policy
    clock: Clock
    ids: Ids

    async def erase(self, user: str, *, by: str, reason: str) -> Erased | NobodysJobs:
        """Everything of this user that the log knows of."""
        jobs = await self._all_jobs(user)
        if not jobs:
            return NobodysJobs()
        unfinished = [job for job in jobs if not job.status.is_end]
        for job in unfinished:
            await self.changing.cancel(job, act=Actor(by, reason or "content erased", operator=True))
        running = await self._still_running(unfinished)
        await self._delete(jobs)
        if not running:
            act = ContentErased(by=by, reason=reason, user_id=user)
            await Acts(self.log, self.clock, self.ids).write(act)
        return Erased(len(jobs), tuple(job.id for job in unfinished), tuple(running))

    async def _all_jobs(self, user: str) -> list[Job]:
        """As far as the log's leader says that the user's records go: what is listed may come from a copy that is
        behind, and nothing may be left of what was submitted a moment ago."""
        last = await self.log.last(consumer_filter(user_id=user))
        give_up_at_ms = self.clock.monotonic_ms() + WORKERS_WITHIN_MS
        while True:
            jobs = await self._jobs_of(user)
            if last is None or any(job.seq >= last.seq for job in jobs):
                return jobs
            if self.clock.monotonic_ms() >= give_up_at_ms:
                raise LogUnavailable(reason=f"no copy of the log has come as far as its leader, {last.seq}")
            await self.clock.sleep_ms(LOOK_EVERY_MS)

    async def _jobs_of(self, user: str) -> list[Job]:
        """Newest first: later phases are cancelled before the ones that they wait for."""
        found, before = list[Job](), None
        while firsts := await self.past.first_events(user, before=before, count=BATCH):
            before = firsts[-1].seq
            ids = [data.job_id for record in firsts if isinstance(data := _data(record), JobData)]
            jobs = await self.past.jobs(ids, after=before - 1)
            found += (jobs[job_id] for job_id in ids if job_id in jobs)
        return found

    async def _still_running(self, cancelled: Sequence[Job]) -> list[str]:
        """Those that have not ended within the time that workers take."""
        left, give_up_at_ms = [job.id for job in cancelled], self.clock.monotonic_ms() + WORKERS_WITHIN_MS
        while left:
            jobs = await self.past.jobs(left)
            left = [job_id for job_id in left if job_id not in jobs or not jobs[job_id].status.is_end]
            if left and self.clock.monotonic_ms() >= give_up_at_ms:
                break
            if left:
                await self.clock.sleep_ms(LOOK_EVERY_MS)
        return left

    async def _delete(self, jobs: Sequence[Job]) -> None:
        for bucket in self.kept.buckets:
            await _each(bucket.delete, _of(jobs, await bucket.names()))
        await _each(self.kept.inputs.delete, _of(jobs, await self.kept.inputs.names()))
        await _each(self.kept.titles.delete, [job.id for job in jobs])
        await _each(self.kept.progress.delete, [job.id for job in jobs if self._may_have_lines(job)])
        await _each(self.kept.lines.erase, [job.id for job in jobs if self._may_have_lines(job)])

    def _may_have_lines(self, job: Job) -> bool:
        """Those of jobs that ended long ago have gone by age."""
        kept = timedelta(days=self.policy.retention.logs_days + 1)
        return not job.status.is_end or job.updated_at > utc(self.clock.now_ms()) - kept


async def _each(delete: Callable[[str], Awaitable[None]], names: Iterable[str]) -> None:
    """Some at a time: a user may have thousands of jobs, and others want answers too."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def in_turn(name: str) -> None:
        async with turns:
            await delete(name)

    await asyncio.gather(*map(in_turn, names))


def _of(jobs: Sequence[Job], names: Iterable[str]) -> list[str]:
    """Results are called `<job>-<attempt>`, workspaces `<job>-<attempt>-<n>`, inputs and answers `<job>-<digits>`."""
    owners = {job.id for job in jobs}
    return [name for name in names if owners.intersection(name.rsplit("-", count)[0] for count in range(3))]


def _data(record: Record) -> object:
    return record.event.data if isinstance(record.event, Event) else None
