"""What admission tells about jobs: the view's copy of a job, else the log's. Changes nothing."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from headgate_contracts import Event, Job, Status, Tier
from headgate_contracts.commands import JobProgress
from headgate_contracts.envelope import utc
from headgate_contracts.events import JobData
from headgate_contracts.shown import Explanation, HistoryEntry, QueuePart, ShownJob, Usage, WaitingOn, shown_event
from headgate_contracts.vocabulary import UNSTARTED
from libs.capacity.answers import Outlook
from libs.capacity.errors import ViewLost, ViewUnavailable
from libs.capacity.ports import ViewReadings
from libs.eventlog.ports import EventLog, ProgressBucket, Titles
from libs.forecast.place import shown_standing
from libs.forecast.shown import shown_job, usage
from libs.forecast.standing import would_run
from libs.forecast.table import Forecast
from libs.policy import Policy
from libs.runtime.clock import Clock
from libs.runtime.telemetry import job_trace
from services.admission.domain import day_number
from services.admission.forecasts import Forecasts
from services.admission.phases import job_in_log

NO_PROGRESS: Final[Mapping[str, JobProgress]] = {}


@dataclass(frozen=True, slots=True)
class Seen:
    """A job and where it stands, as one look at the view told."""

    job: Job
    queue: QueuePart | None
    waiting_on: tuple[WaitingOn, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """The use cases, with what they need."""

    view: ViewReadings
    log: EventLog
    titles: Titles
    progress: ProgressBucket
    forecasts: Forecasts
    policy: Policy
    clock: Clock

    async def find(self, job_id: str) -> Job | None:
        """The job as the view has it, or, once it has left the view, as the log has it."""
        text = await self.view.job(job_id)
        if text is not None:
            return Job.model_validate_json(text)
        return await job_in_log(self.log, job_id)

    async def history(self, job_id: str) -> list[HistoryEntry]:
        """Every event of the job, as the log has it."""
        return [
            HistoryEntry(seq=record.seq, at=record.at, **shown_event(record.event.data))
            for record in await self.log.read(job_id)
            if isinstance(record.event, Event) and isinstance(record.event.data, JobData)
        ]

    async def shown(
        self, jobs: Sequence[Job], *, owner: bool = True, titles: Mapping[str, str] | None = None
    ) -> list[ShownJob]:
        """The jobs as their owners see them, or an operator in their place. `titles`: as far as they are known."""
        users = {job.user_id for job in jobs}
        running = [job.id for job in jobs if job.status.is_running]
        seen, used, titled, progress = await asyncio.gather(
            self.seen(jobs, owner=owner),
            self._used_today(users),
            self._titles(jobs, titles),
            self.progress.of(running),
        )
        return [
            self._in_words(each, used_today=used[each.job.user_id], titles=titled, progress=progress) for each in seen
        ]

    async def taken(
        self, jobs: Sequence[Job], *, owner: bool = True, titles: Mapping[str, str] | None = None
    ) -> list[ShownJob]:
        """What was just taken in or changed. It is in the log: that the view is away by now must not look like a
        refusal, or who sends no Idempotency-Key submits it twice. Then no place can be told, nor what else the day has
        seen."""
        try:
            return await self.shown(jobs, owner=owner, titles=titles)
        except (ViewLost, ViewUnavailable):
            used = sum(job.quota_day == self._now().date() for job in jobs)
            titled = await self._titles(jobs, titles)
            return [self._in_words(Seen(job, None, ()), used_today=used, titles=titled) for job in jobs]

    async def seen(self, jobs: Sequence[Job], *, owner: bool = True) -> list[Seen]:
        """Where each of the jobs stands, in words for its owner or for an operator."""
        unstarted = [job.id for job in jobs if job.status in UNSTARTED]
        found, forecast = await asyncio.gather(self.view.outlooks(unstarted), self.forecasts.current())
        outlooks, now_ms = dict(zip(unstarted, found, strict=True)), self.clock.now_ms()
        return [_seen(job, outlooks.get(job.id), forecast, now_ms=now_ms, owner=owner) for job in jobs]

    async def explained(self, job: Job, *, owner: bool) -> Explanation:
        """Why the job waits, and what would let it run."""
        [shown] = await self.shown([job], owner=owner)
        return Explanation(
            id=job.id,
            status=job.status,
            message=shown.message,
            queue=shown.queue,
            waiting_on=shown.waiting_on,
            would_run=would_run(job, shown.waiting_on, owner=owner),
            may_wait_s=self._may_wait_s(job),
        )

    def _may_wait_s(self, job: Job) -> float | None:
        waits = job.status is Status.QUEUED and job.started_at is None
        return self.policy.queue.ttl_s(job.submission.queue_ttl_s) if waits else None

    async def usage(self, user: str, tier: Tier) -> Usage:
        """What the user has used of today."""
        used = await self._used_today({user})
        return usage(tier, self.policy, used_today=used[user], now=self._now())

    async def _used_today(self, users: set[str]) -> Mapping[str, int]:
        today, names = day_number(self._now()), sorted(users)
        counts = await asyncio.gather(*(self.view.day_used(user, today) for user in names))
        return dict(zip(names, counts, strict=True))

    async def _titles(self, jobs: Sequence[Job], known: Mapping[str, str] | None) -> Mapping[str, str]:
        return await self.titles.of([job.id for job in jobs]) if known is None else known

    def _in_words(
        self,
        seen: Seen,
        *,
        used_today: int,
        titles: Mapping[str, str],
        progress: Mapping[str, JobProgress] = NO_PROGRESS,
    ) -> ShownJob:
        return shown_job(
            seen.job,
            policy=self.policy,
            used_today=used_today,
            now=self._now(),
            debug_id=job_trace(seen.job).debug_id,
            title=titles.get(seen.job.id),
            progress=progress.get(seen.job.id),
            queue=seen.queue,
            waiting_on=seen.waiting_on,
        )

    def _now(self) -> datetime:
        return utc(self.clock.now_ms())


def _seen(job: Job, outlook: Outlook | None, forecast: Forecast, *, now_ms: int, owner: bool) -> Seen:
    standing = shown_standing(job, outlook, forecast=forecast, now_ms=now_ms, owner=owner)
    return Seen(job, standing.queue, standing.waiting_on)
