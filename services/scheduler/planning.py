"""From what is due and who may run to one batch: the questions to the view around the pure decisions of `domain`.

Owns the order of the questions, how many are asked in one turn, and whose turn it is: while a class starves, batches
are cut so that each of its own starts is exactly the one it is owed. Refuses to write: the cycle commits what is made.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Final

from headgate_contracts import Job, Status, Tier, advance
from libs.capacity import answers
from libs.capacity.engine import Engine
from libs.capacity.ledger import Ledger
from libs.capacity.patience import covered_ms
from libs.capacity.ports import View
from libs.capacity.projection import epoch_ms, groups_of, timers_of
from libs.capacity.turns import Starts, next_starts
from libs.policy import Policy
from libs.runtime.telemetry import job_context, job_trace
from services.scheduler.batches import BATCH_MAX, Batch, compose, signed
from services.scheduler.border import Border
from services.scheduler.domain import Circumstances, Decision, Due, decide, start
from services.scheduler.duties import Duties
from services.scheduler.folding import Folding
from services.scheduler.outages import Absences
from services.scheduler.spacing import spread_out

logger = logging.getLogger(__name__)

LOOK: Final = 256  # timers read at first; more where the first ones are jobs that wait for room
LOOK_MAX: Final = 65_536
STAYING: Final = (Due.RELEASE, Due.QUEUE_TTL)
ROUNDS: Final = 5  # plans of one turn: each that is refused at the border knows one group more that is full
AWAY_MS: Final = 60_000  # a view that is away is away until it is heard of, which ends this
ASK_MAX: Final = 50  # places asked for in one turn: while the queue is full each is a question without a gain
Refusing = Callable[[Sequence[Job]], Awaitable[frozenset[str]]]  # those who may not start now
UNSIGNED: Final = "0" * 26  # the id of an event that is only tried out


@dataclass(frozen=True, slots=True)
class Proposal:
    """What one turn would write, and whether there is more to start, or more that is due, than fits into it."""

    batch: Batch | None
    more: bool
    overdue: bool = False


@dataclass(slots=True)
class Planner:
    """Makes proposals for one shard. `aside`: jobs about which the contracts let nothing be written, and when."""

    view: View
    ledger: Ledger
    policy: Policy
    shard: str
    absences: Absences
    engine: Engine
    border: Border
    folding: Folding
    aside: dict[str, int] = field(default_factory=dict[str, int])
    stopped: set[str] = field(default_factory=set[str])
    duties: Duties = field(init=False)
    _looked: bool = False

    def __post_init__(self) -> None:
        self.duties = Duties(self.view, self.ledger, self.policy, self.folding, self.stopped)

    async def propose(self, due: Sequence[answers.DueTimer], *, leader: str, now: datetime, excused: int) -> Proposal:
        """The next batch. `excused`: attempts not heard of since this record could not be heard."""
        listed = [*self.duties.listed(again=self._looked), *due]
        self._looked = False
        decided = await self._decide(listed, now=now, excused=excused)
        self.aside = {job_id: seq for job_id, seq in self.aside.items() if self._stands_at(job_id, seq)}
        if not decided:
            decided = await self._spread()
            if decided:
                return Proposal(self._composed(decided, Starts(), (), leader=leader), more=True)
        starts, started = await self._start(decided, self.border.refused, now=now)
        batch = self._composed(decided, starts, started, leader=leader)
        return Proposal(batch, more=starts.plan.more, overdue=len(decided) >= BATCH_MAX)

    async def go_on(self, *, leader: str, now: datetime) -> Proposal:
        """The next batch while the view is away: starts alone, of those that need nothing but what the log tells of.

        Who has slipped past the cap of a day waits for another day, which is asked for when the view is there again.
        """
        self.engine.quarantine(self.engine.now_ms + AWAY_MS)

        async def unasked(jobs: Sequence[Job]) -> frozenset[str]:
            return self.border.unasked(jobs) | {job.id for job in self.ledger.days.slipped(self.ledger.jobs)}

        starts, started = await self._start((), unasked, now=now)
        return Proposal(self._composed((), starts, started, leader=leader), starts.plan.more)

    def stand_by(self) -> None:
        """Another leads: what was seen and claimed here counts no more."""
        self.absences.forget()
        self.border.settled()

    def look_at_workers(self) -> None:
        """What a plan counts with beside the log, as it is now."""
        self.engine.staff.forget_silent()
        self.engine.unlearn()
        self.absences.look(self.engine.staff.last_beats())

    async def look(self) -> tuple[answers.DueTimer, ...]:
        """What is due by the clock. Who waits for room stays due, and whose time does not all count: they must not hide
        what came due after them."""
        self._looked = True
        self.duties.forget()
        limit = LOOK
        while True:
            due = await self.view.due(limit)
            others = sum(each.kind not in STAYING for each in due)
            if len(due) < limit or others >= BATCH_MAX or limit >= LOOK_MAX:
                return due
            limit *= 4

    def _stands_at(self, job_id: str, seq: int) -> bool:
        job = self.ledger.jobs.get(job_id)
        return job is not None and job.seq == seq

    # ── what is to be done ────────────────────────────────────────────────────

    async def _decide(self, due: Sequence[answers.DueTimer], *, now: datetime, excused: int) -> list[Decision]:
        """As much as fits into a batch, what frees first. Who enters the queue comes last: each costs a question."""
        decided: list[Decision] = []
        asked = 0
        for each in sorted(due, key=self.duties.turn_of):
            job = self.ledger.jobs.get(each.job)
            if len(decided) >= BATCH_MAX or asked >= ASK_MAX:
                break
            if job is None or each.attempt not in (None, job.attempt) or self.aside.get(job.id) == job.seq:
                continue
            if self._is_outdated(each, job, now_ms=epoch_ms(now)):
                continue
            kind = self.duties.kind_of(each)
            asked += kind in (Due.RELEASE, Due.PHASE, Due.SLIPPED)
            given = await self._circumstances(kind, job, now=now, excused=excused)
            decided += self._sound(job, partial(decide, kind, job, given=given))
        return decided

    def _is_outdated(self, due: answers.DueTimer, job: Job, *, now_ms: int) -> bool:
        """Whether the job has a later timer of this kind: a view that was put back tells the one before, until a fold
        notices."""
        return max(due.due_ms, now_ms) < timers_of(job, self.policy).get(due.kind, 0)

    async def _circumstances(self, kind: str, job: Job, *, now: datetime, excused: int) -> Circumstances:
        given = self._given(job, now, outage=job.seq <= excused)
        match kind, job.status:
            case (Due.RELEASE, Status.SCHEDULED) | (Due.PHASE, Status.WAITING):
                return replace(given, placement=await self.duties.place(job))
            case Due.QUEUE_TTL, Status.QUEUED:
                return replace(given, waited_ms=self._waited_ms(job, now_ms=epoch_ms(now)))
            case Due.SLIPPED, Status.QUEUED:
                return replace(given, day=await self.duties.day(job, now=now))
            case _:
                return replace(given, cause=self.duties.cause(kind, job))

    def _waited_ms(self, job: Job, *, now_ms: int) -> int:
        if job.standing is None:
            return 0
        begin_ms, pool = epoch_ms(job.standing.entered_at), job.submission.pool
        spans = (*self.ledger.patience.spans(job.id, now_ms=now_ms), *self.absences.spans(pool, now_ms=now_ms))
        return now_ms - begin_ms - covered_ms(spans, begin_ms=begin_ms, end_ms=now_ms)

    async def _spread(self) -> list[Decision]:
        """In a batch of their own: where one of them could not be written, none may be."""
        if self.ledger.places.narrow:
            await self.folding.over()
        moves = await spread_out(self.view, self.ledger, aside=self.aside)
        sound = [self._sound(move.job, lambda move=move: move) for move in moves]
        return [decision for decisions in sound for decision in decisions] if all(sound) else []

    # ── who may start ─────────────────────────────────────────────────────────

    async def _start(
        self, decided: Sequence[Decision], refusing: Refusing, *, now: datetime
    ) -> tuple[Starts, list[Decision]]:
        """Who starts now, beside what was decided. Those at the border hold what they need there."""
        starts, started, refused = Starts(), list[Decision](), frozenset[str]()
        room = max(0, BATCH_MAX - len({decision.job.id for decision in decided}))
        for _ in range(ROUNDS):
            starts = await self._plan(now)
            if starts.claimed and decided:  # what they free or bring may be for the class that is owed the next start
                starts = Starts()
            started = self._started(starts, now=now)[:room]
            refused = await refusing([decision.job for decision in started])
            if not refused:
                break
        return starts, [decision for decision in started if decision.job.id not in refused]

    async def _plan(self, now: datetime) -> Starts:
        return await next_starts(
            self.ledger.turns.by_class,
            self.policy.order,
            now_ms=epoch_ms(now),
            most=BATCH_MAX,
            picks=self._picks,
            first_class=self._first_class,
        )

    async def _picks(self, most: int, *, only_class: int | None = None) -> answers.Plan:
        return self.engine.plan(most + len(self.aside), only_class=only_class)

    def _first_class(self, plan: answers.Plan) -> int | None:
        """Of the first one that is not aside."""
        jobs = (self.ledger.jobs[pick.job] for pick in plan.picks if pick.job not in self.aside)
        return next((job.priority.class_number for job in jobs), None)

    def _composed(
        self,
        decided: Sequence[Decision],
        starts: Starts,
        started: Sequence[Decision],
        *,
        leader: str,
    ) -> Batch | None:
        return compose(
            decided,
            started,
            shard=self.shard,
            leader=leader,
            limits=starts.plan.limits,
            slots=starts.plan.slots,
        )

    def _started(self, starts: Starts, *, now: datetime) -> list[Decision]:
        """The jobs that were picked, as the ledger knows them at the same place of the log."""
        started: list[Decision] = []
        for pick in starts.plan.picks:
            job = self.ledger.jobs.get(pick.job)
            if job is not None and job.seq == pick.seq and job.status is Status.QUEUED:
                given = self._given(job, now)
                make = partial(start, job, groups=groups_of(job), given=given, starved=starts.owed)
                started += self._sound(job, make)
        return started[: starts.most]

    # ── what may be written ───────────────────────────────────────────────────

    def _given(self, job: Job, now: datetime, *, outage: bool = False) -> Circumstances:
        tier = self.ledger.orders.tiers.get(job.user_id)
        return Circumstances(
            now=now,
            policy=self.policy,
            debug_id=job_trace(job).debug_id,
            outage=outage,
            tier=None if tier is None else Tier(tier),
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
            with job_context(job):
                logger.error("nothing can be written about job %s: %s", job.id, error)  # noqa: TRY400 - it says it all
            self.aside[job.id] = job.seq
            return []
        self.aside.pop(job.id, None)
        return [] if decision is None else [decision]
