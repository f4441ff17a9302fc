"""What has been, for a stream that begins: of one job, or of all jobs of one user. Read from the log, never guessed.

A scan may come from a copy that lags behind the leader. So the leader is asked first which record is the user's last,
and a scan that does not reach it is made again: everything up to there is in, everything after it is in the tap.
"""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from headgate_contracts import ContractError, Event, Job, UnknownEvent, consumer_filter
from headgate_contracts.events import JobData
from libs.eventlog import LogUnavailable, Record
from libs.eventlog.decoding import job_in
from libs.eventlog.history import History as Past
from libs.eventlog.history import Scans
from libs.eventlog.ports import EventLog
from libs.runtime.clock import Clock
from services.notifier.domain import shows_status

SHOWN_JOBS: Final = 50  # of a user, the newest; a list has the others
SCANS: Final = 20
AGAIN_AFTER_MS: Final = 100


@dataclass(frozen=True, slots=True)
class History:
    """Records up to `seq`, and the jobs that they add up to, newest first."""

    records: tuple[Record, ...]
    jobs: tuple[Job, ...]
    seq: int

    @property
    def last_status_seq(self) -> int:
        return max((record.seq for record in self.records if shows_status(record.event)), default=0)


@dataclass(frozen=True, slots=True)
class Histories:
    """Reads the past of one job, or of a user's jobs, from the log."""

    log: EventLog
    scans: Scans
    clock: Clock

    async def of_job(self, job_id: str) -> History | None:
        """From the leader itself; null where there is no such job, or not all of it any more."""
        records = await self.log.read(job_id)
        return next((History(tuple(records), (job,), job.seq) for job in _folded(records)), None)

    async def of_user(self, user_id: str) -> History:
        """The user's newest jobs."""
        reached = await self._last_of(user_id)
        first = await Past(self.scans).first_events(user_id, count=SHOWN_JOBS)
        has_older = len(first) == SHOWN_JOBS  # fewer may be all, or what a copy that lags has of them
        since = min(record.seq for record in first) - 1 if has_older else 0
        records = await self._scanned(user_id, after=since, reached=reached)
        jobs = sorted(_folded(records), key=lambda job: job.first_seq, reverse=True)
        return History(tuple(records), tuple(jobs), _end(records, default=since))

    async def of_user_after(self, user_id: str, after: int) -> History | None:
        """What followed that record; null where the user has no record as late as that, or where age may have taken
        some of what followed."""
        reached = await self._last_of(user_id)
        if after > reached:
            return None
        if after == reached:
            return History((), (), after)
        records = await self._scanned(user_id, after=after, reached=reached)
        first, _ = await self.scans.ends()  # afterwards: the scan had all that was there then
        return History(tuple(records), (), _end(records, default=after)) if first <= after + 1 else None

    async def _last_of(self, user_id: str) -> int:
        last = await self.log.last(consumer_filter(user_id=user_id))
        return 0 if last is None else last.seq

    async def _scanned(self, user_id: str, *, after: int, reached: int) -> list[Record]:
        for _ in range(SCANS):
            records = await self._scan(consumer_filter(user_id=user_id), after=after)
            if _end(records, default=after) >= reached:
                return records
            await self.clock.sleep_ms(AGAIN_AFTER_MS)
        raise LogUnavailable(reason=f"no copy of the log has come as far as its leader, {reached}")

    async def _scan(self, wanted: str, *, after: int) -> list[Record]:
        found: list[Record] = []
        async with aclosing(self.scans.pages([wanted], after=after)) as pages:
            async for page in pages:
                found += page
        return found


def _end(records: Sequence[Record], *, default: int) -> int:
    return max((record.seq for record in records), default=default)


def _folded(records: Sequence[Record]) -> list[Job]:
    """The jobs that began within these records. One that cannot be folded is left out: its first events are older than
    these, or gone by age."""
    by_job = defaultdict[str, list[Record]](list)
    for record in records:
        match record.event:
            case Event(data=JobData(job_id=job_id)) | UnknownEvent(job_id=str(job_id)):
                by_job[job_id].append(record)
            case _:
                pass
    jobs: list[Job] = []
    for of_one in by_job.values():
        try:
            job = job_in(of_one)
        except ContractError:
            continue
        if job is not None:
            jobs.append(job)
    return jobs
