"""What the notifier does for one client: look at the job, and begin its stream at the right place."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from headgate_contracts import Job
from headgate_contracts.envelope import utc
from headgate_contracts.shown import ShownJob
from libs.eventlog.folding import job_in
from libs.forecast.shown import shown_job
from libs.policy import Policy
from libs.runtime.clock import Clock
from services.notifier.domain import Begin, Complete, Resume, opening
from services.notifier.fanout import Fanout
from services.notifier.ports import Log, Positions
from services.notifier.signals import Signals
from services.notifier.streaming import History, Pace, stream


@dataclass(frozen=True, slots=True)
class Notifier:
    """The use cases, with what they need."""

    log: Log
    fanout: Fanout
    positions: Positions
    policy: Policy
    clock: Clock
    debug_id_of: Callable[[str], str]
    signals: Signals

    async def history(self, job_id: str) -> History | None:
        """The job as the log's leader has it; null where there is none."""
        records = await self.log.read(job_id)
        job = job_in(records)
        return None if job is None else History(job, tuple(records))

    def where(self, last_event_id: str | None, history: History) -> Begin | Resume | Complete:
        seq = history.last_status_seq
        return opening(last_event_id, epoch=self.log.epoch, job=history.job, last_status_seq=seq)

    async def follow(self, job_id: str, last_event_id: str | None) -> AsyncIterator[bytes]:
        """The stream. The history is read again once the tap is attached, so that nothing falls in between."""
        with self.fanout.attached(job_id) as tap:
            history = await self.history(job_id)
            if history is None:
                return
            begin = self.where(last_event_id, history)
            if isinstance(begin, Complete):
                return
            pieces = stream(tap, epoch=self.log.epoch, begin=begin, history=history, show=self.show, pace=self._pace())
            with self.signals.first_delivery(job_id, history.records[-1]):
                first = [await anext(pieces), await anext(pieces)]  # `retry:`, and all that there is by now
            yield b"".join(first)
            async for piece in pieces:
                yield piece

    async def show(self, job: Job) -> ShownJob:
        standing = await self.positions.ask(job.id)
        return shown_job(
            job,
            policy=self.policy,
            used_today=(standing and standing.used_today) or 0,
            now=utc(self.clock.now_ms()),
            debug_id=self.debug_id_of(job.id),
            queue=standing and standing.queue,
            waiting_on=standing.waiting_on if standing else (),
        )

    def _pace(self) -> Pace:
        return Pace(comment_s=self.policy.stream.comment_s, retry_ms=self.policy.stream.retry_ms)
