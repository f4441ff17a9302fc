"""From what is due and who may run to one batch: the questions to the view around the pure decisions of `domain`.

Owns the order of the questions and how many are asked in one turn. Refuses to write: the cycle commits what is made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final

from headgate_contracts import Job, Status, advance
from libs.capacity import answers
from libs.capacity.ledger import Ledger
from libs.capacity.ports import View
from libs.capacity.projection import groups_of
from libs.policy import Policy
from libs.runtime.telemetry import job_context
from services.scheduler.domain import (
    BATCH_MAX,
    Batch,
    Circumstances,
    Decision,
    Due,
    Placement,
    compose,
    decide,
    signed,
    start,
    urgency,
)

logger = logging.getLogger(__name__)

LOOK: Final = 256  # timers read at first; more where the first ones are jobs that wait for room
LOOK_MAX: Final = 65_536
ASK_MAX: Final = 50  # places asked for in one turn: while the queue is full each is a question without a gain
UNSIGNED: Final = "0" * 26  # the id of an event that is only tried out
NO_PLAN: Final = answers.Plan(0, (), {}, {}, more=False)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What one turn would write, and whether there is more to start, or more that is due, than fits into it."""

    batch: Batch | None
    more: bool
    overdue: bool


@dataclass(slots=True)
class Planner:
    """Makes proposals for one shard. `aside`: jobs about which the contracts let nothing be written, and when."""

    view: View
    ledger: Ledger
    policy: Policy
    shard: str
    debug_id_of: Callable[[str], str]
    aside: dict[str, int] = field(default_factory=dict[str, int])

    async def propose(self, due: Sequence[answers.Due], *, leader: str, now: datetime, outage: bool) -> Proposal:
        """The next batch. `outage`: nobody could hear the workers until lately."""
        decided = await self._decide(due, now=now, outage=outage)
        self.aside = {job_id: seq for job_id, seq in self.aside.items() if self._stands_at(job_id, seq)}
        plan = await self.view.plan(BATCH_MAX + len(self.aside))
        if plan.applied != self.ledger.applied:
            plan = NO_PLAN  # somebody folds beside us: what the view says is not about the jobs we know
        batch = compose(
            decided,
            self._starts(plan.picks, now=now),
            shard=self.shard,
            leader=leader,
            limits=plan.limits,
            slots=plan.slots,
        )
        return Proposal(batch, more=plan.more, overdue=len(decided) >= BATCH_MAX)

    async def look(self) -> tuple[answers.Due, ...]:
        """What is due. Jobs that wait for room stay due: they must not hide what came due after them."""
        limit = LOOK
        while True:
            due = await self.view.due(limit)
            others = sum(each.kind != Due.RELEASE for each in due)
            if len(due) < limit or others >= BATCH_MAX or limit >= LOOK_MAX:
                return due
            limit *= 4

    async def forget(self, due: Sequence[answers.Due]) -> None:
        """What ended long ago leaves the view. It is no fact, so nothing is written."""
        for each in due:
            if each.kind == Due.FORGET:
                await self.view.forget(each.job)

    def _stands_at(self, job_id: str, seq: int) -> bool:
        job = self.ledger.jobs.get(job_id)
        return job is not None and job.seq == seq

    async def _decide(self, due: Sequence[answers.Due], *, now: datetime, outage: bool) -> list[Decision]:
        """As much as fits into a batch, what frees first. Releases come last: each costs a question."""
        decided: list[Decision] = []
        asked = 0
        for each in sorted(due, key=lambda each: urgency(each.kind)):
            job = self.ledger.jobs.get(each.job)
            if len(decided) >= BATCH_MAX or asked >= ASK_MAX:
                break
            if job is None or each.attempt not in (None, job.attempt):
                continue
            placement = None
            if each.kind == Due.RELEASE and job.status is Status.SCHEDULED:
                asked += 1
                placement = await self._place(job)
            given = self._given(job, now, outage=outage, placement=placement)
            decided += self._sound(job, partial(decide, each.kind, job, given=given))
        return decided

    async def _place(self, job: Job) -> Placement | None:
        request = answers.Release(
            job=job.id,
            cap=self.policy.queue.cap,
            passed_bound=self.policy.order.max_passed,
            lapse_ms=round(self.policy.submissions.reservation_s * 1000),
        )
        match await self.view.release(request):
            case answers.Reserved(arrival, place, passed, position):
                return Placement(arrival, place, passed, position)
            case _:
                return None

    def _starts(self, picks: Sequence[answers.Pick], *, now: datetime) -> list[Decision]:
        """The jobs that the view picked, as the ledger knows them at the same place of the log."""
        starts: list[Decision] = []
        for pick in picks:
            job = self.ledger.jobs.get(pick.job)
            if job is not None and job.seq == pick.seq and job.status is Status.QUEUED:
                make = partial(start, job, groups=groups_of(job), given=self._given(job, now))
                starts += self._sound(job, make)
        return starts

    def _given(
        self, job: Job, now: datetime, *, outage: bool = False, placement: Placement | None = None
    ) -> Circumstances:
        return Circumstances(
            now=now, policy=self.policy, debug_id=self.debug_id_of(job.id), outage=outage, placement=placement
        )

    def _sound(self, job: Job, make: Callable[[], Decision | None]) -> list[Decision]:
        """The decision, if there is one and the contracts let it be written.

        One job about which nothing can be written must not hold up the others: it is aside until it changes.
        """
        if self.aside.get(job.id) == job.seq:
            return []
        try:
            decision = make()
            if decision is not None:
                event = signed(decision, event_id=UNSIGNED, now=job.updated_at)
                advance(job, event)
                event.encode()
        except ValueError as error:  # the contracts' errors and pydantic's are all of this kind
            with job_context(job.id):
                logger.error("nothing can be written about job %s: %s", job.id, error)  # noqa: TRY400 - it says it all
            self.aside[job.id] = job.seq
            return []
        self.aside.pop(job.id, None)
        return [] if decision is None else [decision]
