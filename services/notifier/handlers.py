"""What the notifier does for one client: look at what has been, and begin the stream at the right place."""

import asyncio
from collections.abc import Awaitable, Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from headgate_contracts import Job
from headgate_contracts.commands import JobProgress, PositionChanged
from headgate_contracts.envelope import utc
from headgate_contracts.shown import ShownJob
from libs.eventlog import Record
from libs.eventlog.ports import Lines, ProgressBucket, Titles
from libs.forecast.shown import shown_job
from libs.policy import Policy
from libs.runtime.auth import Principal
from libs.runtime.clock import Clock
from libs.runtime.telemetry import job_trace
from services.notifier.domain import Begin, Complete, EventId, Known, NoJob, Resume, last_seen, opening, question
from services.notifier.fanout import Fanout, Interest, OfJob, OfToken, OfUser, Tap
from services.notifier.frames import frame
from services.notifier.histories import Histories, History
from services.notifier.ports import Positions
from services.notifier.rendering import item_of
from services.notifier.said import Said
from services.notifier.signals import Signals
from services.notifier.streaming import Moment, Opening, Pace, Stream

RESYNC: Final = frame("resync", {"reason": "the id is not of this log, or older than what is kept"})

Opened = Stream | Complete | NoJob


@dataclass(frozen=True, slots=True)
class AskedStream:
    """A stream as a client asks for it: what it listens to, and how it begins once its tap is attached to that."""

    interests: tuple[Interest, ...]
    begin: Callable[[Tap], Awaitable[Opened]]


@dataclass(frozen=True, slots=True)
class Notifier:
    """The use cases, with what they need."""

    epoch: str
    histories: Histories
    lines: Lines
    fanout: Fanout
    positions: Positions
    titles: Titles
    progress: ProgressBucket
    policy: Policy
    clock: Clock
    signals: Signals
    revocations: Container[str | None]

    def of_job(self, job_id: str, known: Known, who: Principal) -> AskedStream:
        """The stream of one job, if the asker may see it; another's does not exist."""

        async def begin(tap: Tap) -> Opened:
            return await self._opened_job(tap, job_id, known=known, who=who)

        return AskedStream((OfJob(job_id), *_of_token(who)), begin)

    def of_user(self, last_event_id: str | None, who: Principal) -> AskedStream:
        """The stream of all of one's jobs."""

        async def begin(tap: Tap) -> Opened:
            opening = await self._begin_user(last_event_id, who)
            return Stream(tap, opening, pace=self._pace(who), watch=self.signals, ends=False)

        return AskedStream((OfUser(who.user), *_of_token(who)), begin)

    def where(self, last_event_id: str | None, history: History) -> Begin | Resume | Complete:
        [job], seq = history.jobs, history.last_status_seq
        return opening(last_event_id, epoch=self.epoch, job=job, last_status_seq=seq)

    async def show(self, jobs: Sequence[Job]) -> list[ShownJob]:
        """Jobs of one user. What stands nowhere is not asked about; but one answer is needed, as it says the day."""
        asked = [job for number, job in enumerate(jobs) if number == 0 or not job.status.is_end]
        titles, progress, answers = await asyncio.gather(
            self.titles.of([job.id for job in jobs]),
            self.progress.of([job.id for job in jobs if job.status.is_running]),
            asyncio.gather(*(self.positions.ask(job.id) for job in asked)),
        )
        told = {answer.job_id: answer for answer in answers if answer is not None}
        used = max((answer.used_today or 0 for answer in told.values()), default=0)
        return [
            self._shown(job, told.get(job.id), used_today=used, title=titles.get(job.id), progress=progress.get(job.id))
            for job in jobs
        ]

    def _shown(
        self,
        job: Job,
        standing: PositionChanged | None,
        *,
        used_today: int,
        title: str | None,
        progress: JobProgress | None,
    ) -> ShownJob:
        return shown_job(
            job,
            policy=self.policy,
            used_today=used_today,
            now=utc(self.clock.now_ms()),
            debug_id=job_trace(job).debug_id,
            title=title,
            progress=progress,
            queue=standing and standing.queue,
            waiting_on=standing.waiting_on if standing else (),
        )

    async def _opened_job(self, tap: Tap, job_id: str, *, known: Known, who: Principal) -> Opened:
        history = await self.histories.of_job(job_id)
        if history is None or not who.may_see(history.jobs[0]):
            return NoJob(job_id)
        begin = self.where(known.last_event_id, history)
        if isinstance(begin, Complete):
            if known.line is None or known.line >= await self.lines.last(job_id):
                return begin
            begin = Resume(history.jobs[0].seq)  # it has every status, and was cut off among the lines
        with self.signals.first_delivery(history.jobs[0], history.records[-1]):
            opened = await self._begin_job(begin, history, replay=known.replay)
            said = Said(job_id, self.lines, self.clock, await self._heard(job_id, begin, known))
        return Stream(tap, opened, pace=self._pace(who), watch=self.signals, ends=True, said=said)

    async def _begin_job(self, begin: Begin | Resume, history: History, *, replay: bool) -> Opening:
        [job] = history.jobs
        question, over = _open_question(history), job.status.is_end
        if isinstance(begin, Resume):
            return Opening(job.seq, past=self._moments(history.records, after=begin.after), now=question, complete=over)
        [shown] = await self.show([job])
        first = RESYNC if begin.resync else b""
        snapshot = frame("snapshot", shown, id=str(EventId(self.epoch, job.seq))) + question
        if replay:
            return Opening(job.seq, first, self._moments(history.records), snapshot, complete=over)
        return Opening(job.seq, first + snapshot, complete=over)

    async def _heard(self, job_id: str, begin: Begin | Resume, known: Known) -> int:
        """Which line the client had last. One that comes back and does not say so is told what is said from now on."""
        match begin:
            case Begin(resync=True):
                return 0
            case Begin():
                return known.line or 0
            case Resume():
                return await self.lines.last(job_id) if known.line is None else known.line

    async def _begin_user(self, last_event_id: str | None, who: Principal) -> Opening:
        seen = last_seen(last_event_id, epoch=self.epoch)
        later = None if seen is None else await self.histories.of_user_after(who.user, seen)
        if later is not None:
            return Opening(later.seq, past=self._moments(later.records))
        history = await self.histories.of_user(who.user)
        jobs = await self.show(history.jobs)
        snapshot = frame("snapshot", {"jobs": jobs}, id=str(EventId(self.epoch, history.seq)))
        return Opening(history.seq, (RESYNC if last_event_id else b"") + snapshot)

    def _moments(self, records: Iterable[Record], *, after: int = 0) -> list[Moment]:
        told = ((record.at, item_of(record, epoch=self.epoch)) for record in records if record.seq > after)
        return [Moment(at, each.frames) for at, each in told if each is not None]

    def _pace(self, who: Principal) -> Pace:
        rules, expires_s, token_id = self.policy.stream, who.expires_s, who.token_id

        def left_s() -> float:
            if token_id in self.revocations:  # it may have been taken back before the tap was there
                return 0
            return rules.comment_s if expires_s is None else expires_s - self.clock.now_ms() / 1000

        return Pace(comment_s=rules.comment_s, retry_ms=rules.retry_ms, left_s=left_s)


def _of_token(who: Principal) -> tuple[OfToken, ...]:
    """By which the stream ends when the token is taken back."""
    return () if who.token_id is None else (OfToken(who.token_id),)


def _open_question(history: History) -> bytes:
    """The open question, with what was said of it since: it has no id, so nobody can say that they have seen it."""
    [job] = history.jobs
    if job.expires_at is None:
        return b""
    asked: dict[str, object] = {}
    for record in history.records:
        said = question(record.event) or {}
        asked = said if "next_batch" in said else asked | said  # what was said of an earlier question is over
    return frame("confirmation", asked)
