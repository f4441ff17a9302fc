"""How work that is in is changed: events after the jobs as last seen, in one append, all or none.

    decide (pure) ─► append after what was seen ─► done
       ▲                    │ somebody was first
       └──── read again ────┘

The change that was first is looked at, and it is decided again: what the client asked for may still apply, or no
longer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeVar

from headgate_contracts import Job, JobEvent, Priority, advance
from headgate_contracts.envelope import utc
from headgate_contracts.vocabulary import PRIORITY_OF_CLASS
from libs.capacity.answers import Between, NoGap, NotQueued
from libs.capacity.errors import ViewLost
from libs.capacity.ports import View
from libs.eventlog import Appended, Conflicted, Entry
from libs.eventlog.ports import EventLog
from libs.policy import Policy
from libs.runtime.clock import Clock
from libs.runtime.etags import names_strongly
from libs.runtime.telemetry import job_parts
from services.admission.domain import etag_of, may_be_placed
from services.admission.events import (
    Actor,
    Stamp,
    cancelling_event,
    confirming_event,
    moving_event,
    reprioritizing_event,
)
from services.admission.keeping_up import has_folded
from services.admission.outcomes import (
    Accepted,
    Changed,
    Ended,
    NeighbourGone,
    NoRoomBetween,
    NotAsked,
    TooManyChanges,
    Underway,
)
from services.admission.phases import job_in_log, workflow_phases
from services.admission.ports import Ids

TRIES: Final = 20  # each lost try means that a job went on by one event; an iteration has five
PAGE: Final = 100

T = TypeVar("T")
SeenJobs = tuple[Job, ...]
Steps = dict[str, JobEvent]  # what is to be written, by job; a job without a step stays as it is


MINUTE_MS: Final = 60_000


MOST_USERS: Final = 10_000  # 1.2 MB; to be counted, each has written an event within the last minute


def early_ms(until_ms: int, *, cost_ms: int, now_ms: int) -> int:
    """By how much it is too early for who has spent their time up to `until_ms`; zero: it may be done now."""
    return max(0, max(until_ms, now_ms) + cost_ms - now_ms - MINUTE_MS)


@dataclass(slots=True)
class ChangeRate:
    """Up to when each user has spent their time. All times are monotonic."""

    until_ms: dict[str, int] = field(default_factory=dict[str, int])

    def spend(self, user: str, cost_ms: int, *, now_ms: int) -> int:
        """Zero, and it is spent; or in how many ms it may be, and nothing is."""
        until_ms = self.until_ms.get(user, now_ms)
        wait_ms = early_ms(until_ms, cost_ms=cost_ms, now_ms=now_ms)
        if wait_ms == 0:
            self._make_room(user, now_ms)
            self.until_ms[user] = max(until_ms, now_ms) + cost_ms
        return wait_ms

    def _make_room(self, user: str, now_ms: int) -> None:
        """Users who owe nothing any more go first, then the one who owes least."""
        if user in self.until_ms or len(self.until_ms) < MOST_USERS:
            return
        self.until_ms = {each: until_ms for each, until_ms in self.until_ms.items() if until_ms > now_ms}
        if len(self.until_ms) >= MOST_USERS:
            del self.until_ms[min(self.until_ms, key=self.until_ms.__getitem__)]


@dataclass(frozen=True, slots=True)
class Changing:
    """The use cases, with what they need."""

    view: View
    log: EventLog
    policy: Policy
    clock: Clock
    ids: Ids
    rate: ChangeRate = field(default_factory=ChangeRate)

    async def cancel(self, *jobs: Job, act: Actor) -> Accepted | Ended | TooManyChanges:
        """End the jobs, or ask their workers to. Of several, those that have ended stay as they are."""

        async def decide(seen: SeenJobs) -> Steps | Ended:
            if all(job.status.is_end for job in seen):
                return Ended(seen[0])
            asked_anew = (job for job in seen if not (job.status.is_running and job.cancel_requested_by is not None))
            return _steps((job.id, cancelling_event(job, act, self.stamp())) for job in asked_anew)

        return await self.settle(jobs, decide, spender=_spender(act))

    async def confirm(self, job: Job, *, by: str) -> Accepted | NotAsked | TooManyChanges:
        """Grant another batch of iterations, if that is what the job waits for."""
        answered = job.confirmations  # a later question is another one

        async def decide(seen: SeenJobs) -> Steps | NotAsked:
            event = confirming_event(seen[0], self.stamp(), by=by, policy=self.policy)
            if event is None or seen[0].confirmations != answered:
                return NotAsked(seen[0])
            return {job.id: event}

        return await self.settle((job,), decide, spender=by)

    async def prioritize(
        self, job: Job, to: Priority, *, act: Actor, expected: frozenset[str] | None = None
    ) -> Accepted | Underway | Changed | TooManyChanges:
        """Another class for the job and for the phases of its workflow that have not started.

        `expected`: the tags of which the job has to have one (`If-Match`); null: wherever it stands.
        """

        async def decide(seen: SeenJobs) -> Steps | Underway | Changed:
            if expected is not None and not names_strongly(expected, etag_of(seen[0])):
                return Changed(seen[0])
            if not may_be_placed(seen[0]):
                return Underway(seen[0])
            others = (each for each in seen if each.priority is not to)
            return _steps((each.id, reprioritizing_event(each, to, act, self.stamp())) for each in others)

        return await self.settle(await self._with_other_phases(job), decide, spender=_spender(act))

    async def move(
        self, job: Job, *, before: str | None, after: str | None, act: Actor
    ) -> Accepted | Underway | NeighbourGone | NoRoomBetween | TooManyChanges:
        """Put the job right before or right after another one in the queue."""

        async def decide(seen: SeenJobs) -> Steps | Underway | NeighbourGone | NoRoomBetween:
            match await self.view.between(job.id, before=before, after=after):
                case Between(class_number, place):
                    to = PRIORITY_OF_CLASS[class_number]
                    event = moving_event(seen[0], to, place, act, self.stamp())
                    return Underway(seen[0]) if event is None else {job.id: event}
                case NoGap():
                    return NoRoomBetween()
                case NotQueued(gone):
                    return Underway(seen[0]) if gone == job.id else NeighbourGone(gone)

        return await self.settle((job,), decide, spender=_spender(act))

    async def unfinished(self, user: str, *, wanted: Callable[[Job], bool]) -> SeenJobs:
        """The user's jobs that have not ended, newest first: all that the log holds now, as none may be left out."""
        if not await has_folded(self.view, (await self.log.mark()).seq, clock=self.clock):
            raise ViewLost
        found: list[Job] = []
        before: int | None = None
        while page := await self.view.jobs_of(user, before=before, count=PAGE):
            texts = await asyncio.gather(*(self.view.job(job_id) for job_id, _ in page))
            found += [Job.model_validate_json(text) for text in texts if text is not None]
            before = page[-1][1]
        return tuple(job for job in found if not job.status.is_end and wanted(job))

    async def settle(
        self, jobs: SeenJobs, decide: Callable[[SeenJobs], Awaitable[Steps | T]], *, spender: str | None
    ) -> Accepted | T | TooManyChanges:
        """Write what is decided about the jobs, as they are by then."""
        paid = 0  # events; what is tried again is paid once
        for attempt in range(TRIES):
            steps = await decide(jobs)
            # What is seen at first may be the view's, a moment behind: that nothing is to be done only the log can say.
            fresh = attempt > 0
            if isinstance(steps, dict) and steps:
                if spender is not None and (early := self._pay(spender, len(steps) - paid)) is not None:
                    return early
                paid = max(paid, len(steps))
                answer = await self._append([(steps[job.id], job) for job in jobs if job.id in steps])
                if isinstance(answer, Appended):
                    seqs = {stored.event.id: stored.seq for stored in answer.records}
                    return Accepted(tuple(_after(job, steps.get(job.id), seqs) for job in jobs))
            elif fresh:
                return Accepted(jobs, again=True) if isinstance(steps, dict) else steps
            jobs = tuple(await asyncio.gather(*map(self._again, jobs)))
        raise TimeoutError(f"job {jobs[0].id} changed {TRIES} times while it was to be changed: try again")

    async def _append(self, changes: Sequence[tuple[JobEvent, Job]]) -> Appended | Conflicted:
        with job_parts((f"append {event.data.EVENT.value}", job) for event, job in changes) as carried:
            entries = [Entry(event, job, trace) for (event, job), trace in zip(changes, carried, strict=True)]
            return await self.log.append_batch(entries)

    def _pay(self, user: str, events: int) -> TooManyChanges | None:
        rules = self.policy.submissions
        cost_ms = rules.change_cost_ms(max(0, events))
        wait_ms = self.rate.spend(user, cost_ms, now_ms=self.clock.monotonic_ms())
        return TooManyChanges(rules.changes_per_minute, wait_ms) if wait_ms else None

    async def _with_other_phases(self, job: Job) -> SeenJobs:
        """The job, and what of its workflow can still change with it."""
        workflow = job.submission.workflow
        phases = await workflow_phases(self.log, workflow) if workflow else ()
        return (job, *(other for other in phases if other.id != job.id and may_be_placed(other)))

    async def _again(self, job: Job) -> Job:
        return await job_in_log(self.log, job.id) or job

    def stamp(self) -> Stamp:
        return Stamp(self.ids.event_id(), self._now())

    def _now(self) -> datetime:
        return utc(self.clock.now_ms())


def _spender(act: Actor) -> str | None:
    """Whose minute it is; null for operators, who may have to end everything at once and are trusted with it."""
    return None if act.operator else act.by


def _steps(decided: Iterable[tuple[str, JobEvent | None]]) -> Steps:
    return {job_id: event for job_id, event in decided if event is not None}


def _after(job: Job, event: JobEvent | None, seqs: dict[str, int]) -> Job:
    return job if event is None else advance(job, event, seq=seqs[event.id])
