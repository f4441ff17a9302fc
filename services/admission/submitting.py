"""How work comes in: a job, or the phases of a workflow, whole or not at all.

    is its key known? ─► does its pipeline take it? ─► reserve ─► content ─► first events, one append ─► 202
                                                          │ (at once, where   │     ├ another event stands there: the
                                                          │  one is welcome)  │     │ same key was here just now
                                                          │                   │     └ nobody knows: 503, and the same
                                                          │                   │       key finds what became of it
                                                          └ a refusal: nothing is kept, and the janitor takes an input
                                                            that was put already

What refuses at `reserve`, the cap and the day among it, is `lua/reserve_v1.lua` of `libs/capacity`, in Python
`memory/entering.py`. The log decides. A reservation is never released here: it is folded into its job, or it lapses.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from headgate_contracts import Job
from headgate_contracts.envelope import utc
from headgate_contracts.events import Estimate
from headgate_contracts.tokens import input_name, is_of_key
from libs.capacity.answers import (
    Busy,
    BytesFull,
    Deferred,
    HorizonFull,
    Known,
    Other,
    Request,
    ReserveAnswer,
    Reserved,
    ShareFull,
    TooFast,
)
from libs.capacity.ports import View
from libs.capacity.projection import epoch_ms
from libs.capacity.rooms import Room, held_bytes
from libs.eventlog import Conflicted, Entry
from libs.eventlog.ports import EventLog, Inputs, Titles
from libs.forecast.place import estimate_of
from libs.policy import Policy
from libs.policy.daily_cap import DayPlace
from libs.runtime.clock import Clock
from libs.runtime.spans import step
from services.admission.domain import NewJob, busy_minutes, day_number, digest_of_all, same_request
from services.admission.events import FirstEvent, Stamp, queued_event, scheduled_event, waiting_event
from services.admission.forecasts import Forecasts, Surroundings
from services.admission.outcomes import (
    Accepted,
    KeyReused,
    NoDayLeft,
    NotTaken,
    OverBytes,
    OverShare,
    Previewed,
    PreviewOutcome,
    SubmitOutcome,
    SystemBusy,
    TooOften,
)
from services.admission.phases import job_in_log
from services.admission.pipelines import Pipelines
from services.admission.ports import Ids

DAY_S: Final = 86_400


MOST_USERS: Final = 10_000  # that are remembered; the one that was taken in longest ago goes first


class Welcome:
    """The users whose last submission this replica has accepted."""

    def __init__(self) -> None:
        self._users: dict[str, None] = {}

    def takes(self, user: str) -> bool:
        """Whether their input may be put at once. Until that is taken in no other one may."""
        if user not in self._users:
            return False
        del self._users[user]
        return True

    def taken_in(self, user: str) -> None:
        """A submission of theirs is in the log."""
        self._users[user] = None
        if len(self._users) > MOST_USERS:
            del self._users[next(iter(self._users))]


@dataclass(frozen=True, slots=True)
class Submitting:
    """The use cases, with what they need."""

    view: View
    log: EventLog
    inputs: Inputs
    titles: Titles
    pipelines: Pipelines
    forecasts: Forecasts
    policy: Policy
    clock: Clock
    ids: Ids
    welcome: Welcome = field(default_factory=Welcome)

    async def submit(self, first: NewJob, *later: NewJob) -> SubmitOutcome:
        """Take the job in, or all phases of a workflow, or say what keeps them out."""
        before = await self._used_before((first, *later)) or await self.pipelines.refusal((first, *later))
        if before is not None:
            return before
        phases, asked_ms = (first, *later), self.clock.monotonic_ms()
        ahead = () if later or not self.welcome.takes(first.user_id) else phases
        (answer, begun), _ = await asyncio.gather(self._placed(phases, surely=bool(ahead)), self._keep_content(ahead))
        if not begun:
            return await self._known(phases) or await self._refusal(answer, first)
        async with asyncio.timeout(self._left_s(asked_ms)):
            if not ahead:
                await self._keep_content(phases)
            outcome = await self._begin(begun, phases, asked_ms=asked_ms)
        if isinstance(outcome, Accepted):
            self.welcome.taken_in(first.user_id)
        return outcome

    async def preview(self, first: NewJob, *later: NewJob) -> PreviewOutcome:
        """What would come of submitting it. Nothing is held, counted or stored."""
        before = await self._used_before((first, *later)) or await self.pipelines.refusal((first, *later))
        if before is not None:
            return before
        answer = await self.view.reserve(replace(self._request(first, *later), dry=True))
        if not isinstance(answer, Reserved | Deferred):
            return await self._known((first, *later)) or await self._refusal(answer, first)
        around = await Surroundings.of(first, view=self.view)
        jobs = tuple(each.job for each in await self._first_events(answer, around, first, *later, dry=True))
        place = answer if isinstance(answer, Reserved) else None
        used_today = await self.view.day_used(first.user_id, day_number(self._now()))
        return Previewed(jobs, around.prospect(jobs[0], place), used_today)

    async def _placed(self, phases: Sequence[NewJob], *, surely: bool) -> tuple[ReserveAnswer, list[FirstEvent]]:
        """What the view answers, and the first events where there is a place: while the content is on its way.
        `surely`: a refusal is not expected, so what an estimate is made by is asked with it."""
        if surely:
            answer, around = await asyncio.gather(self._reserved(phases), Surroundings.of(phases[0], view=self.view))
        else:
            answer, around = await self._reserved(phases), None
        if isinstance(answer, Reserved | Deferred):
            return answer, await self._first_events(answer, around, *phases)
        return answer, []

    async def _reserved(self, phases: Sequence[NewJob]) -> ReserveAnswer:
        with step("reserve") as span:
            answer = await self.view.reserve(self._request(*phases))
            span.set_attribute("headgate.outcome", type(answer).__name__)
            return answer

    async def _keep_content(self, phases: Sequence[NewJob]) -> None:
        """Before the first event, so that no job is without: inputs and titles."""
        await asyncio.gather(
            *(self.inputs.put(input_name(new.id, new.submission.input_digest), new.input) for new in phases),
            *(self.titles.write(new.id, new.title) for new in phases if new.title),
        )

    async def _first_events(
        self,
        answer: Reserved | Deferred,
        around: Surroundings | None,
        first: NewJob,
        *later: NewJob,
        dry: bool = False,
    ) -> list[FirstEvent]:
        per_day = self.policy.tier_limits(first.submission.tier).jobs_per_day
        match answer:
            case Reserved():
                placed = FirstEvent.of(queued_event(first, answer, self._stamp(), per_day=per_day))
                begin = placed.estimated(await self._estimate(placed.job, answer, around, new=first))
            case Deferred(day):
                spread_s = self.policy.queue.release_spread_s
                taken = await self.view.day_used(first.user_id, day)
                place = DayPlace(day, taken - (not dry), per_day)
                begin = FirstEvent.of(scheduled_event(first, place, self._stamp(), spread_s=spread_s))
        return [begin, *(FirstEvent.of(waiting_event(new, self._stamp())) for new in later)]

    async def _begin(self, begun: Sequence[FirstEvent], phases: Sequence[NewJob], *, asked_ms: int) -> SubmitOutcome:
        if self._left_s(asked_ms) <= 0:  # the process stood still: its reservation may have lapsed
            raise TimeoutError(f"the place for job {phases[0].id} was held too long ago: try again")
        entries = [Entry(each.event, None, each.job.submission.traceparent) for each in begun]
        with step(f"append {begun[0].event.data.EVENT.value}"):
            answer = await self.log.append_batch(entries)
        if isinstance(answer, Conflicted):
            return await self._known(phases) or KeyReused(phases[0].id)
        stored = zip(begun, answer.records, strict=True)
        titles = {new.id: new.title for new in phases if new.title}
        return Accepted(tuple(each.stored(record.seq) for each, record in stored), titles=titles)

    async def _used_before(self, phases: Sequence[NewJob]) -> Accepted | KeyReused | None:
        """What a key stands for. It takes no second place, not even for a moment: so the log is asked first, as the
        view forgets what has ended."""
        return await self._known(phases) if is_of_key(phases[0].id) else None

    async def _known(self, phases: Sequence[NewJob]) -> Accepted | KeyReused | None:
        """What was submitted before under these ids: the same request, or a key used for another one."""
        found = await asyncio.gather(*(job_in_log(self.log, new.id) for new in phases))
        if found[0] is None:
            return None
        titles = await self.titles.of([new.id for new in phases])
        jobs = [
            job
            for new, job in zip(phases, found, strict=True)
            if job is not None and same_request(new, job) and titles.get(new.id, new.title) == new.title
        ]
        return Accepted(tuple(jobs), again=True) if len(jobs) == len(phases) else KeyReused(phases[0].id)

    async def _refusal(self, answer: ReserveAnswer, new: NewJob) -> NotTaken:
        match answer:
            case Busy():
                return SystemBusy(await self._minutes(answer, new))
            case TooFast(retry_ms):
                rules = self.policy.submissions
                return TooOften(rules.per_minute, rules.bytes_per_minute, retry_ms)
            case ShareFull(held):
                return OverShare(held)
            case BytesFull(held, most, retry_ms):
                return OverBytes(held, most, retry_ms)
            case Other():
                return KeyReused(new.id)
            case HorizonFull(last_day):
                return NoDayLeft(last_day, retry_s=DAY_S - self.clock.now_ms() // 1000 % DAY_S)
            case Known() | Reserved() | Deferred():  # the view knows the job and the log does not: it is another's log
                raise TimeoutError(f"job {new.id} is known and cannot be read: try again")

    async def _estimate(
        self, job: Job, place: Reserved, around: Surroundings | None, *, new: NewJob
    ) -> Estimate | None:
        """What is shown when the job enters the queue, and later compared with what came: what a dry run tells, and
        what the job's page tells a moment later, so that nobody reads two answers to one question."""
        forecast = await self.forecasts.current()
        if not forecast.learned:
            return None
        around = around or await Surroundings.of(new, view=self.view)
        outlook = around.prospect(job, place)
        return estimate_of(job, outlook, forecast=forecast, now_ms=self.clock.now_ms())

    async def _minutes(self, busy: Busy, new: NewJob) -> int:
        forecast = await self.forecasts.current()
        queued = await self.view.tiers_queued()
        return busy_minutes(
            queued=busy.queued,
            cap=self.policy.queue.cap,
            average_s=forecast.average_s(queued, tier=new.submission.tier.value),
            workers=busy.slots,
            step_minutes=self.policy.queue.busy_step_minutes,
        )

    def _request(self, new: NewJob, *later: NewJob) -> Request:
        policy, asked = self.policy, new.submission
        tier = policy.tier_limits(asked.tier)
        phases = (new, *later)
        return Request(
            job=new.id,
            user=new.user_id,
            project=new.project_scope,
            pool=asked.pool,
            class_number=asked.priority.class_number,
            boost=tier.boost,
            workflow=asked.workflow,
            run_at_ms=None if asked.run_at is None else epoch_ms(asked.run_at),
            first_day=day_number(asked.run_at) if asked.run_at else 0,
            per_day=tier.jobs_per_day,
            horizon_days=policy.queue.horizon_days,
            cap=policy.queue.cap,
            user_share=policy.queue.user_share,
            passed_bound=policy.order.max_passed,
            lapse_ms=round(policy.submissions.reservation_s * 1000),
            cost_ms=policy.submissions.cost_ms(
                phases=len(phases), input_bytes=sum(each.submission.input_bytes for each in phases)
            ),
            inputs={each.id: held_bytes(each.submission.input_bytes) for each in phases},
            digest=digest_of_all(phases),
            room=Room.of(policy),
        )

    def _left_s(self, asked_ms: int) -> float:
        """How long it may still be tried to append: far below the time after which the reservation lapses."""
        return self.policy.submissions.append_deadline_s - (self.clock.monotonic_ms() - asked_ms) / 1000

    def _stamp(self) -> Stamp:
        return Stamp(self.ids.event_id(), self._now())

    def _now(self) -> datetime:
        return utc(self.clock.now_ms())
