"""The job as this attempt last saw it, and the only way in which the attempt writes about it.

    write(data) ──append after the job──► stored ─────────────────────────────► the job goes on
                        │
                        ├─ the log is away: the same event again, for as long as the attempt is ours
                        │
                        └─ conflict ─► read what is new ─► not ours any more ──► nothing is written
                                                        ├─ cancel asked for ──► `cancelled` in place of it
                                                        └─ nothing to us ─────► the same data after that

Owns the rule that an attempt whose lease has ended by our own clock writes nothing: the log would refuse it as soon as
it was given away, and this way nothing is even tried. Refuses to decide what is written.
"""

import asyncio
from collections.abc import Callable, Iterable

from headgate_contracts import Job, JobEvent, advance
from headgate_contracts.envelope import utc
from headgate_contracts.events import JobCancelled, JobData
from libs.eventlog import Appended, Conflicted, Record
from libs.eventlog.decoding import job_in
from libs.eventlog.ports import EventLog
from libs.runtime.clock import Clock
from libs.runtime.spans import step
from libs.runtime.telemetry import job_trace, traceparent
from libs.runtime.troubles import say_trouble
from services.worker.attempt.patience import insist_while
from services.worker.domain import cancel, event_about, still_ours, usage_of


class Chain:
    """The events that one attempt appends, each after the last one it knows of its job."""

    def __init__(
        self, job: Job, *, log: EventLog, clock: Clock, new_id: Callable[[], str], ours: Callable[[], bool]
    ) -> None:
        self.job = job
        self._attempt, self._worker = job.attempt, job.worker or ""
        self._log = log
        self._clock = clock
        self._new_id = new_id
        self._ours = ours
        self._turn = asyncio.Lock()  # a task that writes after `job`, or reads on from it, has it alone

    async def write(self, data: JobData) -> JobData | None:
        """What was written in the end; null where the attempt is not ours any more."""
        async with self._turn:
            return await self._write(data)

    async def look_again(self) -> bool:
        """Take in what others wrote meanwhile; whether the attempt is ours still."""
        async with self._turn:
            return await self._read_on()

    async def _write(self, data: JobData) -> JobData | None:
        while self._ours():
            if self.job.cancel_requested_by is not None and not isinstance(data, JobCancelled):
                data = cancel(self.job, usage=usage_of(data))
            event = event_about(self.job, data, event_id=self._new_id(), now=utc(self._clock.now_ms()))
            with step(f"append {data.EVENT.value}"):
                answer = await append_surely(self._log, event, after=self.job, clock=self._clock, ours=self._ours)
            match answer:
                case Appended(records):
                    self.job = advance(self.job, event, seq=records[0].seq)
                    say_trouble(data)
                    return data
                case Conflicted() if not await self._read_on():
                    return None
                case _:
                    pass
        return None

    async def _read_on(self) -> bool:
        said = f"{self.job.id} waits to be read"
        news = await insist_while(
            self._ours, lambda: self._log.read(self.job.id, after=self.job.seq), self._clock, said=said
        )
        return news is not None and self._follow(news)

    def _follow(self, news: Iterable[Record]) -> bool:
        """Up to where the attempt is not ours any more: what became of the job then may need what we were not told."""
        for record in news:
            self.job = job_in([record], onto=self.job) or self.job
            if not still_ours(self.job, attempt=self._attempt, worker=self._worker):
                return False
        return still_ours(self.job, attempt=self._attempt, worker=self._worker)


async def append_surely(
    log: EventLog, event: JobEvent, *, after: Job, clock: Clock, ours: Callable[[], bool]
) -> Appended | Conflicted | None:
    """The same event until it is known what became of it; null once it is no longer ours to write."""
    parent = traceparent() or job_trace(after).header
    said = f"{event.data.EVENT.value} waits to be written"
    return await insist_while(ours, lambda: log.append(event, after=after, traceparent=parent), clock, said=said)
