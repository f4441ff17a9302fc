"""What jobs leave behind is deleted some time after their end, by the leader: workspaces, and inputs.

    <job>-…  ──► does a job name it that is unfinished, or ended lately? ─yes─► kept
             ──► did its own job end long enough ago? ──no──► kept
                                                     ──yes─► deleted

A job that was submitted again names the workspace of the one it goes on from, so that one lives as long as it does. It
has its own copy of the input; so an input goes when no retry can come, whatever became of retries before.

An input whose job never began may be put anew at any moment, by a client that repeats its key, and its job's first
event may follow while others are deleted. Each submission puts its input before it appends. So such an input is deleted
through the revision that the bucket had when it was seen, `strange_for` ago, longer than any submission takes: what was
put since is a later one and stays. To ask the log once more before each deletion would leave a gap.

Owns the question and nothing else: it decides no job, and runs beside the cycle, never in it. It goes by what is there
and by what the log says: a replica that was killed in the middle, or has lost the view, begins again and finds the
same. What it cannot delete now it deletes the next time.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from headgate_contracts import Event
from headgate_contracts.events import JobData
from libs.capacity.ledger import Ledger
from libs.eventlog.errors import LogError
from libs.eventlog.ports import EventLog, Inputs, Objects
from libs.policy import Retention
from libs.runtime.clock import Clock
from services.scheduler.leader import Leader

logger = logging.getLogger(__name__)

MINUTE_MS: Final = 60_000
WORKSPACE: Final = re.compile(r"([A-Za-z0-9_-]{1,40})-[0-9]{1,9}-[0-9]{1,9}")  # <job>-<attempt>-<n>
INPUT: Final = re.compile(r"([A-Za-z0-9_-]{1,40})-[0-9a-f]{22}")  # as `input_name` has it
LOOK_AGAIN: Final = 20  # deletions: meanwhile somebody may have begun to go on from one of those that are left
BREATHE: Final = 1000  # names: others of this process want their turn
PACE_MS: Final = 10  # between two deletions, so that a thousand of them disturb no other work


@dataclass(frozen=True, slots=True)
class Strange:
    """What is there of a job that even the log does not know: since when, and what was put last by then."""

    since: datetime
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """One kind of what jobs leave behind, and how long it outlives its job."""

    what: str
    names: Callable[[], Awaitable[list[str]]]
    revision: Callable[[], Awaitable[int]]  # of what was put last
    delete: Callable[[str, int | None], Awaitable[None]]  # through this revision, or whatever is there
    pattern: re.Pattern[str]
    kept: timedelta
    strange_for: timedelta  # how long it may be there before its job is
    look_every_ms: int

    def job_of(self, name: str) -> str | None:
        """Whose it is, by its name; null for one that none of us has given: it is not ours to delete."""
        found = self.pattern.fullmatch(name)
        return found and found[1]


def kept_workspaces(bucket: Objects, kept: Retention) -> Remains:
    """Kept for days, so they may go a minute late."""
    return Remains(
        what="workspaces",
        names=bucket.names,
        revision=_put_once,
        delete=lambda name, _: bucket.delete(name),
        pattern=WORKSPACE,
        kept=timedelta(days=kept.workspaces_days),
        strange_for=timedelta(),
        look_every_ms=MINUTE_MS,
    )


def kept_inputs(bucket: Inputs, kept: Retention) -> Remains:
    """An input is written before its job's first event, which follows within a minute or never. There may be a
    million, so they are listed less often: the bucket has room for what goes ten minutes late."""
    return Remains(
        what="inputs",
        names=bucket.names,
        revision=bucket.revision,
        delete=lambda name, through: bucket.purge(name, through=through),
        pattern=INPUT,
        kept=timedelta(days=kept.inputs_days),
        strange_for=timedelta(hours=1),
        look_every_ms=10 * MINUTE_MS,
    )


class Janitor:
    """One replica's, for one kind; it works while that leads."""

    def __init__(self, remains: Remains, history: EventLog, *, ledger: Ledger, leader: Leader, clock: Clock) -> None:
        self._remains = remains
        self._history = history
        self._ledger = ledger
        self._leader = leader
        self._clock = clock
        self._ends: dict[str, datetime] = {}  # of jobs that only the log knows, as long as something of them is there
        self._strange: dict[str, Strange] = {}  # by name

    async def run(self, stopping: asyncio.Event) -> None:
        """Look now and then."""
        while not stopping.is_set():
            await self._clock.sleep_ms(self._remains.look_every_ms)
            if self._leader.leads:
                try:
                    await self.sweep()
                except LogError as fault:
                    logger.warning("%s are not looked through: %s", self._remains.what, fault)

    async def sweep(self) -> int:
        """Delete what is not needed any more; how many that were."""
        names = await self._remains.names()
        gone = await self._over(names)
        named = self._named()
        for number, name in enumerate(gone, 1):
            if number % LOOK_AGAIN == 0:
                named = self._named()
            if name not in named:
                strange = self._strange.get(name)
                await self._remains.delete(name, strange and strange.revision)
            await self._clock.sleep_ms(PACE_MS)
        if gone:
            logger.info("%s %s were deleted, of jobs that ended", len(gone), self._remains.what)
        left = {self._remains.job_of(name) for name in names}.difference(map(self._remains.job_of, gone))
        self._ends = {job_id: at for job_id, at in self._ends.items() if job_id in left}
        self._strange = {name: seen for name, seen in self._strange.items() if self._remains.job_of(name) in left}
        return len(gone)

    async def _over(self, names: list[str]) -> list[str]:
        named, gone = self._named(), list[str]()
        for number, name in enumerate(names, 1):
            job_id = self._remains.job_of(name)
            if job_id is not None and name not in named and await self._is_over(job_id, name):
                gone.append(name)
            if number % BREATHE == 0:
                await asyncio.sleep(0)
        return gone

    def _named(self) -> set[str | None]:
        """The workspaces that somebody may still go on from: a job, or the retry of one that ended lately."""
        since, lent = self._leader.now - self._remains.kept, self._ledger.remnants.lent
        named = {name for job in self._ledger.roster.unfinished for name in (job.checkpoint, job.submission.checkpoint)}
        return named.union(name for name, at in lent.items() if at > since)

    async def _is_over(self, job_id: str, name: str) -> bool:
        """Whether the job of this name ended long enough ago, or never began."""
        job = self._ledger.jobs.get(job_id)
        if job is not None:
            return job.status.is_end and self._is_past(job.updated_at, self._remains.kept)
        if job_id not in self._ends:
            records = await self._history.read(job_id)
            if not records:
                return await self._is_long_strange(name)
            self._strange.pop(name, None)
            event = records[-1].event
            if not (isinstance(event, Event) and isinstance(event.data, JobData) and event.data.status.is_end):
                return False
            self._ends[job_id] = records[-1].at
        return self._is_past(self._ends[job_id], self._remains.kept)

    async def _is_long_strange(self, name: str) -> bool:
        if name not in self._strange:
            self._strange[name] = Strange(since=self._leader.now, revision=await self._remains.revision())
        return self._is_past(self._strange[name].since, self._remains.strange_for)

    def _is_past(self, since: datetime, by: timedelta) -> bool:
        return since + by <= self._leader.now


async def _put_once() -> int:
    """Of a workspace: each has a name of its own."""
    return 0
