"""What the planner proposes by itself: how much it asks for in one turn, and what it will not have written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from headgate_contracts import Job, Priority, Status, Tier
from headgate_contracts.events import Group, JobDispatched
from libs.capacity.answers import DueTimer, LeaseRequest, Pick, Plan
from libs.capacity.ports import View
from libs.capacity.projection import timers_of
from libs.policy import Policy
from services.scheduler import planning
from services.scheduler.batches import BATCH_MAX
from services.scheduler.domain import Decision, spaced
from services.scheduler.planning import ASK_MAX, LOOK, LOOK_MAX, Planner, Proposal
from services.scheduler.replica import Replica
from tests.fixtures.schedulers import MemorySchedulers

HOUR = 3_600_000
LATE_MS = 10**13  # a timer of then is later than what any job of these tests has
CAP = 30  # jobs in the queue


@pytest.fixture
def policy() -> Policy:
    return Policy.model_validate({"queue": {"cap": CAP}})


def planner_of(leader: Replica) -> Planner:
    return leader.cycle._planner


async def propose(leader: Replica, *due: DueTimer) -> Proposal:
    return await planner_of(leader).propose(due, leader="a", now=leader.leader.now, excused=0)


async def fill(world: MemorySchedulers, leader: Replica, *, scheduled: int) -> list[DueTimer]:
    """A queue without room, and the timers of as many jobs that want to enter it."""
    await world.submit_many(CAP)
    for number in range(scheduled):
        await world.schedule(f"later-{number}", in_ms=HOUR)
    await world.settle(leader)
    return [DueTimer("release", f"later-{number}", LATE_MS + number) for number in range(scheduled)]


async def test_no_more_places_are_asked_for_in_one_turn_than_fifty(world: MemorySchedulers, leader: Replica) -> None:
    due = await fill(world, leader, scheduled=ASK_MAX + 5)

    proposal = await propose(leader, *due)

    assert (proposal.batch, proposal.more, proposal.overdue) == (None, False, False)
    assert len(planner_of(leader).duties.refused) == ASK_MAX


async def test_a_timer_of_another_attempt_is_about_nobody(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit("job-1")
    await world.beat(slots=1)
    await world.settle(leader)
    await world.write("job-1", "started")
    await world.settle(leader)

    earlier = await propose(leader, DueTimer("lease", "job-1", 0, 0))
    running = await propose(leader, DueTimer("lease", "job-1", 0, 1))

    assert earlier.batch is None
    assert running.batch is not None
    assert running.batch.link.jobs == ("job-1",)


class Timers:
    """A view whose due timers are these, in the order of their time; it remembers how many it was asked for."""

    def __init__(self, view: View, *kinds: str) -> None:
        self._view = view
        self._due = tuple(DueTimer(kind, f"job-{number}", number) for number, kind in enumerate(kinds))
        self.asked: list[int] = []

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._view, verb)

    async def due(self, limit: int) -> tuple[DueTimer, ...]:
        self.asked.append(limit)
        return self._due[:limit]


@pytest.mark.parametrize(
    ("urgent", "waiting", "asked"),
    [
        (0, LOOK - 1, [LOOK]),
        (0, LOOK, [LOOK, 4 * LOOK]),
        (0, 5 * LOOK, [LOOK, 4 * LOOK, 16 * LOOK]),
        (BATCH_MAX, 5 * LOOK, [LOOK]),
        (BATCH_MAX - 1, 5 * LOOK, [LOOK, 4 * LOOK, 16 * LOOK]),
        (0, LOOK_MAX, [LOOK, 4 * LOOK, 16 * LOOK, 64 * LOOK, LOOK_MAX]),
    ],
)
async def test_one_looks_behind_those_who_wait_for_room_until_a_batch_is_full(
    world: MemorySchedulers, leader: Replica, urgent: int, waiting: int, asked: list[int]
) -> None:
    timers = Timers(world.view, *["age"] * urgent, *["release"] * waiting)
    planner = replace(planner_of(leader), view=timers)

    due = await planner.look()

    assert timers.asked == asked
    assert len(due) == min(asked[-1], urgent + waiting)


async def test_who_was_told_that_there_is_no_room_is_asked_again_once_a_look(
    world: MemorySchedulers, leader: Replica
) -> None:
    await world.submit_flow("flow", phases=2)
    await world.beat(slots=1)
    await world.settle(leader)
    await world.submit_many(CAP)
    await world.finish("flow-1")
    await world.beat(slots=0)
    await world.settle(leader)
    planner, told = planner_of(leader), list[int]()

    for looks in (True, False, True):
        if looks:
            await planner.look()
        await propose(leader)
        told.append(planner.duties.refused["flow-2"])

    assert told == [told[0], told[0], told[0] + 1]


async def test_what_cannot_be_read_back_is_not_written_but_said_and_is_aside(
    world: MemorySchedulers, leader: Replica, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The contracts allow an event of a certain size."""
    make = planning.start

    def long_winded(job: Job, **given: Any) -> Decision:
        decision = make(job, **given)
        assert isinstance(decision.data, JobDispatched)
        too_long = decision.data.model_copy(update={"cancel_requested_by": "x" * 40_000})
        return replace(decision, data=too_long) if job.id == "job-00" else decision

    monkeypatch.setattr(planning, "start", long_winded)
    names = await world.submit_many(2)
    await world.beat(slots=2)

    await world.settle(leader)

    assert world.dispatched() == names[1:]
    assert set(planner_of(leader).aside) == {"job-00"}
    assert caplog.text.count("nothing can be written about job job-00") == 1


async def test_who_is_aside_is_forgotten_when_it_moves_on(
    world: MemorySchedulers, leader: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(job: Job, **given: Any) -> Decision:
        raise ValueError("no such event")

    monkeypatch.setattr(planning, "start", refusing)
    await world.submit_many(1)
    await world.beat(slots=1)
    await world.settle(leader)
    aside = dict(planner_of(leader).aside)

    await world.write("job-00", "cancelled")
    await world.settle(leader)

    assert (set(aside), planner_of(leader).aside) == ({"job-00"}, {})


async def test_where_one_of_several_moves_cannot_be_written_none_is(
    world: MemorySchedulers, leader: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.submit_many(2)
    await world.settle(leader)
    queued = await world.job("job-00")
    moves = [spaced(queued, 17), spaced(queued.model_copy(update={"status": Status.READY}), 18)]

    async def spread_out(*_: Any, **__: Any) -> list[Decision]:
        return moves

    monkeypatch.setattr(planning, "spread_out", spread_out)
    both = await propose(leader)
    del moves[1]
    planner_of(leader).aside.clear()
    sound = await propose(leader)

    assert both.batch is None
    assert sound.batch is not None
    assert sound.batch.decisions == tuple(moves)
    assert (sound.more, sound.overdue) == (True, False)


async def test_no_place_is_asked_for_behind_a_full_batch(world: MemorySchedulers, leader: Replica) -> None:
    names = await world.submit_many(BATCH_MAX, tier=Tier.BOOTSTRAPPER)
    await world.schedule("later", in_ms=HOUR)
    await world.settle(leader)
    due = [DueTimer("age", name, LATE_MS + number) for number, name in enumerate(names)]

    await propose(leader, *due, DueTimer("release", "later", LATE_MS))

    assert len(await world.view.queue()) == BATCH_MAX


async def test_a_timer_that_the_job_has_a_later_one_of_is_left_alone(world: MemorySchedulers, leader: Replica) -> None:
    """As a view tells it that was put back: the job rose a moment ago, or has only just come."""
    [name] = await world.submit_many(1, tier=Tier.BOOTSTRAPPER)
    await world.settle(leader)

    own_ms = timers_of(planner_of(leader).ledger.jobs[name], world.policy)["age"]

    early = await propose(leader, DueTimer("age", name, own_ms - 1))
    own = await propose(leader, DueTimer("age", name, own_ms))
    later = await propose(leader, DueTimer("age", name, own_ms + 1))

    assert early.batch is None
    assert own.batch is not None
    assert later.batch is not None


async def test_who_left_while_there_was_no_room_is_not_remembered(world: MemorySchedulers, leader: Replica) -> None:
    due = await fill(world, leader, scheduled=2)
    await propose(leader, *due)
    await world.write("later-0", "cancelled")
    await world.settle(leader)

    await planner_of(leader).look()

    assert [*planner_of(leader).duties.refused] == ["later-1"]


async def test_whose_turn_it_is_anyway_is_told_by_the_first_who_is_not_aside(
    world: MemorySchedulers, leader: Replica
) -> None:
    await world.submit("aside", priority=Priority.URGENT)
    await world.submit("first", priority=Priority.LOW)
    await world.settle(leader)
    planner = planner_of(leader)
    planner.aside["aside"] = 1
    picks = (Pick("aside", 1), Pick("first", 2))

    classes = [planner._first_class(Plan(0, picks[:number], {}, {}, more=False)) for number in (1, 2)]

    assert classes == [None, Priority.LOW.class_number]


async def test_a_start_says_the_tier_that_its_user_has_by_now(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit("job-1", tier=Tier.BOOTSTRAPPER)
    await world.submit("job-2", tier=Tier.CTO_SCALE)
    await world.settle(leader)
    await world.beat(slots=2)

    await world.settle(leader)

    assert [data.tier for data in world.written(JobDispatched)] == [Tier.CTO_SCALE, Tier.CTO_SCALE]


# ── how often the engine and the border are asked ─────────────────────────────


class Asked:
    """The planner's engine and border, and whom they were asked about."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self.plans = 0
        self.claims: list[str] = []

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._planner.engine, verb)

    def plan(self, *args: Any, **details: Any) -> Plan:
        self.plans += 1
        return self._planner.engine.plan(*args, **details)

    async def refused(self, jobs: Sequence[Job]) -> frozenset[str]:
        self.claims += [job.id for job in jobs]
        return await self._planner.border.refused(jobs)


def asking(planner: Planner) -> tuple[Planner, Asked]:
    asked = Asked(planner)
    return replace(planner, engine=asked, border=asked), asked


async def test_where_the_border_refuses_nobody_one_plan_is_enough(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit_many(2)
    await world.settle(leader)
    await world.beat(slots=1)
    planner, asked = asking(planner_of(leader))

    proposal = await planner.propose((), leader="a", now=leader.leader.now, excused=0)

    assert proposal.batch is not None
    assert proposal.batch.link.jobs == ("job-00",)
    assert (asked.plans, asked.claims) == (1, ["job-00"])


async def test_the_slot_of_whom_the_border_refuses_is_proposed_for_the_next_at_once(
    world: MemorySchedulers, leader: Replica
) -> None:
    database = "group:user-1:project-1:db"
    held = LeaseRequest(lease="held", groups=(database,), owner=None, ttl_ms=HOUR, wait_ms=0)
    await world.view.acquire(held)
    await world.submit("refused", groups=(Group(name=database, limit=1),))
    await world.submit_many(2)
    await world.settle(leader)
    await world.beat(slots=1)
    planner, asked = asking(planner_of(leader))

    proposal = await planner.propose((), leader="a", now=leader.leader.now, excused=0)

    assert proposal.batch is not None
    assert proposal.batch.link.jobs == ("job-00",)
    assert (asked.plans, asked.claims) == (2, ["refused", "job-00"])


async def test_nothing_is_claimed_for_who_does_not_fit_into_the_batch(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit("runs")
    await world.beat(slots=1)
    await world.settle(leader)
    await world.write("runs", "started")
    await world.settle(leader)
    await world.beat(slots=0)
    await world.submit_many(BATCH_MAX + 2)
    await world.settle(leader)
    await world.beat(slots=64)
    planner, asked = asking(planner_of(leader))
    lost = DueTimer("lease", "runs", 0, 1)

    proposal = await planner.propose([lost], leader="a", now=leader.leader.now, excused=0)

    assert proposal.batch is not None
    assert proposal.batch.link.jobs == ("runs", *asked.claims)
    assert len(asked.claims) == BATCH_MAX - 1


async def test_beside_a_full_batch_nothing_is_claimed(world: MemorySchedulers, leader: Replica) -> None:
    names = await world.submit_many(BATCH_MAX + 2, tier=Tier.BOOTSTRAPPER)
    await world.settle(leader)
    await world.beat(slots=64)
    planner, asked = asking(planner_of(leader))
    due = [DueTimer("age", name, LATE_MS + number) for number, name in enumerate(names)]

    proposal = await planner.propose(due, leader="a", now=leader.leader.now, excused=0)

    assert proposal.overdue
    assert asked.claims == []
