"""What admission does, from top to bottom: take a job in, read it, end it.

    submit    input ─► reserve ─► first event ─► 202      the input first: a job that may run must be able to read it
    read      the view's copy of the job, else the log's
    cancel    one event after the job as last seen; whoever was first is looked at, and it is tried again

The log decides. A reservation is never released here: it is folded into the job, or it lapses.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headgate_contracts import Event, Job, JobEvent, Tier, advance
from headgate_contracts.envelope import utc
from headgate_contracts.events import JobData
from headgate_contracts.shown import shown_event
from headgate_contracts.tokens import input_name
from libs.capacity.answers import Busy, Deferred, HorizonFull, Known, Outlook, Request, Reserved, ShareFull
from libs.eventlog import Conflicted
from libs.eventlog.folding import job_in
from libs.policy import Policy
from libs.runtime.clock import Clock
from services.admission.domain import (
    NewJob,
    Place,
    busy_minutes,
    cancelling_event,
    confirming_event,
    day_number,
    queued_event,
    same_request,
    scheduled_event,
)
from services.admission.ports import Ids, Inputs, Log, View

CANCEL_TRIES = 20  # each lost try means that the job went on by one event; a cycle has five


@dataclass(frozen=True, slots=True)
class Accepted:
    """The job is in the log. `again`: it was there before, under the same key."""

    job: Job
    again: bool = False


@dataclass(frozen=True, slots=True)
class KeyReused:
    """The key stands for another request."""

    job_id: str


@dataclass(frozen=True, slots=True)
class SystemBusy:
    """The queue is full."""

    minutes: int


@dataclass(frozen=True, slots=True)
class OverShare:
    """The user holds as many places of the queue as one user may."""

    held: int


@dataclass(frozen=True, slots=True)
class NoDayLeft:
    """Every day up to the horizon is taken."""

    last_day: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The job has ended already."""

    job: Job


@dataclass(frozen=True, slots=True)
class NotAsked:
    """The job does not wait for an answer."""

    job: Job


@dataclass(frozen=True, slots=True)
class Standing:
    """A job and where it stands."""

    job: Job
    outlook: Outlook | None
    used_today: int


SubmitOutcome = Accepted | KeyReused | SystemBusy | OverShare | NoDayLeft


@dataclass(frozen=True, slots=True)
class Admission:
    """The use cases, with what they need."""

    view: View
    log: Log
    inputs: Inputs
    policy: Policy
    clock: Clock
    ids: Ids

    async def submit(self, new: NewJob, *, traceparent: str | None = None) -> SubmitOutcome:
        """Take the job in, or say what keeps it out."""
        await self.inputs.put(input_name(new.id, new.submission.input_digest), new.input)
        answer = await self.view.reserve(self._request(new))
        match answer:
            case Reserved():
                place = Place(answer.arrival, answer.place, answer.passed, answer.position, answer.day)
                event = queued_event(new, place, event_id=self.ids.event_id(), now=self._now())
                return await self._begin(new, event, traceparent)
            case Deferred():
                spread_s = self.policy.queue.release_spread_s
                event_id = self.ids.event_id()
                event = scheduled_event(new, answer.day, event_id=event_id, now=self._now(), spread_s=spread_s)
                return await self._begin(new, event, traceparent)
            case Known():
                return await self._first_of(new)
            case Busy():
                return SystemBusy(self._minutes(answer))
            case ShareFull():
                return OverShare(answer.held)
            case HorizonFull():
                return NoDayLeft(answer.last_day)

    async def cancel(self, job: Job, *, by: str, reason: str) -> Accepted | Ended:
        """End the job, or ask its worker to."""
        for _ in range(CANCEL_TRIES):
            event = cancelling_event(job, by=by, reason=reason, event_id=self.ids.event_id(), now=self._now())
            if event is None:
                return Ended(job)
            if job.cancel_requested_by is not None and job.status.is_running:
                return Accepted(job, again=True)
            answer = await self.log.append(event, after=job)
            if not isinstance(answer, Conflicted):
                return Accepted(advance(job, event, seq=answer.records[0].seq))
            job = job_in(await self.log.read(job.id)) or job
        raise TimeoutError(f"job {job.id} changed {CANCEL_TRIES} times while it was to be cancelled: try again")

    async def find(self, job_id: str) -> Job | None:
        """The job as the view has it, or, once it has left the view, as the log has it."""
        text = await self.view.job(job_id)
        if text is not None:
            return Job.model_validate_json(text)
        return job_in(await self.log.read(job_id))

    async def jobs_of(self, user: str, *, count: int) -> list[Job]:
        """The user's jobs that the view holds, newest first."""
        found = [await self.view.job(job_id) for job_id, _ in await self.view.jobs_of(user, count=count)]
        return [Job.model_validate_json(text) for text in found if text is not None]

    async def confirm(self, job: Job, *, by: str) -> Accepted | NotAsked:
        """Grant another batch of cycles, if that is what the job waits for."""
        event = confirming_event(job, by=by, policy=self.policy, event_id=self.ids.event_id(), now=self._now())
        if event is None:
            return NotAsked(job)
        answer = await self.log.append(event, after=job)
        if isinstance(answer, Conflicted):  # answered, cancelled or timed out a moment ago
            return NotAsked(job_in(await self.log.read(job.id)) or job)
        return Accepted(advance(job, event, seq=answer.records[0].seq))

    async def history(self, job_id: str) -> list[dict[str, object]]:
        """Every event of the job, as the log has it."""
        return [
            {"seq": record.seq, "at": record.at, **shown_event(record.event.data)}
            for record in await self.log.read(job_id)
            if isinstance(record.event, Event) and isinstance(record.event.data, JobData)
        ]

    async def standing(self, job: Job) -> Standing:
        """Where the job stands, and what its user has used of today."""
        today = day_number(self._now())
        outlook = await self.view.outlook(job.id)
        return Standing(job, outlook, await self.view.day_used(job.user_id, today))

    async def _begin(self, new: NewJob, event: JobEvent, traceparent: str | None) -> SubmitOutcome:
        answer = await self.log.append(event, after=None, traceparent=traceparent)
        if isinstance(answer, Conflicted):
            return await self._first_of(new)
        return Accepted(advance(None, event, seq=answer.records[0].seq))

    async def _first_of(self, new: NewJob) -> SubmitOutcome:
        """The job that was submitted before under this id: the same request, or a key used for another one."""
        job = job_in(await self.log.read(new.id))
        if job is None or not same_request(new, job):
            return KeyReused(new.id)
        return Accepted(job, again=True)

    def _request(self, new: NewJob) -> Request:
        policy, asked, now = self.policy, new.submission, self._now()
        tier = policy.tier_limits(asked.tier)
        later = asked.run_at is not None and asked.run_at > now
        return Request(
            job=new.id,
            user=new.user_id,
            project=new.project_id,
            pool=asked.pool,
            class_number=asked.priority.class_number,
            boost=tier.boost,
            workflow=asked.workflow,
            first_day=day_number(asked.run_at) if later and asked.run_at else 0,
            later=later,
            per_day=tier.jobs_per_day,
            horizon_days=policy.queue.horizon_days,
            cap=policy.queue.cap,
            user_share=policy.queue.user_share,
            passed_bound=policy.order.max_passed,
            lapse_ms=round(policy.submissions.reservation_s * 1000),
        )

    def _minutes(self, busy: Busy) -> int:
        tiers = [self.policy.tier_limits(tier).first_duration_s for tier in Tier]
        return busy_minutes(
            queued=busy.queued,
            cap=self.policy.queue.cap,
            average_s=sum(tiers) / len(tiers),
            workers=busy.slots,
            step_minutes=self.policy.queue.busy_step_minutes,
        )

    def _now(self) -> datetime:
        return utc(self.clock.now_ms())
