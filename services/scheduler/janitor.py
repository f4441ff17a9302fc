"""Workspaces that nobody goes on from any more are deleted: some time after their job's end, by the leader.

    <job>-<attempt>-<n>  ──► does a job name it that is unfinished, or ended lately? ─yes─► kept
                         ──► did its own job end long enough ago? ──no──► kept
                                                                 ──yes─► deleted

A job that was submitted again names the workspace of the one it goes on from, so that one lives as long as it does.
Owns the question and nothing else: it decides no job, and runs beside the cycle, never in it. What it cannot delete now
it deletes the next time.
"""

from __future__ import annotations

import asyncio
import logging
import re
from datetime import datetime, timedelta
from typing import Final

from headgate_contracts import Event
from headgate_contracts.events import JobData
from libs.capacity.ledger import Ledger
from libs.eventlog.errors import LogError
from libs.runtime.clock import Clock
from services.scheduler.leader import Leader
from services.scheduler.ports import History, Workspaces

logger = logging.getLogger(__name__)

LOOK_EVERY_MS: Final = 60_000  # what is kept for days may go a minute late
NAME: Final = re.compile(r"([A-Za-z0-9_-]{1,40})-[0-9]{1,9}-[0-9]{1,9}")  # <job>-<attempt>-<n>
LOOK_AGAIN: Final = 20  # deletions: meanwhile somebody may have begun to go on from one of those that are left
PACE_MS: Final = 10  # between two deletions, so that a thousand of them disturb nobody


class Janitor:
    """One replica's; it works while that leads."""

    def __init__(
        self, workspaces: Workspaces, history: History, *, ledger: Ledger, leader: Leader, clock: Clock
    ) -> None:
        self._workspaces = workspaces
        self._history = history
        self._ledger = ledger
        self._leader = leader
        self._clock = clock
        self._kept = timedelta(days=ledger.policy.retention.workspaces_days)
        self._ends: dict[str, datetime] = {}  # of jobs that only the log knows, as long as something of them is there

    async def run(self, stopping: asyncio.Event) -> None:
        """Look now and then."""
        while not stopping.is_set():
            await self._clock.sleep_ms(LOOK_EVERY_MS)
            if self._leader.leads:
                try:
                    await self.sweep()
                except LogError as fault:
                    logger.warning("workspaces are not looked through: %s", fault)

    async def sweep(self) -> int:
        """Delete what nobody needs; how many that were."""
        names = await self._workspaces.names()
        named = self._named()
        gone: list[str] = []
        for name in names:
            job_id = job_of(name)
            if job_id is not None and name not in named and await self._is_over(job_id):
                gone.append(name)
        for number, name in enumerate(gone):
            if number % LOOK_AGAIN == 0:
                named = self._named()
            if name not in named:
                await self._workspaces.delete(name)
            await self._clock.sleep_ms(PACE_MS)
        if gone:
            logger.info("%s workspaces were deleted, of jobs that ended", len(gone))
        left = {job_of(name) for name in names}.difference(map(job_of, gone))
        self._ends = {job_id: at for job_id, at in self._ends.items() if job_id in left}
        return len(gone)

    def _named(self) -> set[str | None]:
        """The workspaces that somebody may still go on from: a job, or whoever submits one again that ended lately."""
        since = self._leader.now - self._kept
        jobs = [job for job in self._ledger.jobs.values() if not job.status.is_end or job.updated_at > since]
        return {name for job in jobs for name in (job.checkpoint, job.submission.checkpoint)}

    async def _is_over(self, job_id: str) -> bool:
        """Whether the job ended long enough ago."""
        job = self._ledger.jobs.get(job_id)
        if job is None:
            ended_at = await self._end_in_the_log(job_id)
        else:
            ended_at = job.updated_at if job.status.is_end else None
        return ended_at is not None and ended_at <= self._leader.now - self._kept

    async def _end_in_the_log(self, job_id: str) -> datetime | None:
        """Of a job that this fold has forgotten. What the log does not know either is of no job any more."""
        if job_id not in self._ends:
            records = await self._history.read(job_id)
            if not records:
                return self._leader.now - self._kept
            event = records[-1].event
            if not (isinstance(event, Event) and isinstance(event.data, JobData) and event.data.status.is_end):
                return None
            self._ends[job_id] = records[-1].at
        return self._ends[job_id]


def job_of(workspace: str) -> str | None:
    """Whose it is, by its name; null for one that no worker has given: it is not ours to delete."""
    found = NAME.fullmatch(workspace)
    return found and found[1]
