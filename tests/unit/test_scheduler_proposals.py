"""What the planner proposes by itself: how much it asks for in one turn, and what it will not have written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headgate_contracts import Job
from headgate_contracts.events import JobDispatched
from libs.capacity.answers import Due as DueTimer
from libs.policy import Policy
from services.scheduler import planning
from services.scheduler.domain import Decision
from services.scheduler.planning import ASK_MAX, LOOK, Planner, Proposal
from services.scheduler.replica import Replica
from tests.fixtures.schedulers import World

SECOND, HOUR = 1000, 3_600_000


@pytest.fixture
def policy() -> Policy:
    return Policy.model_validate({"queue": {"cap": 3}})


def planner_of(leader: Replica) -> Planner:
    return leader.cycle._planner


async def propose(leader: Replica, *due: DueTimer) -> Proposal:
    return await planner_of(leader).propose(due, leader="a", now=leader.leader.now, outage=False)


async def fill(world: World, leader: Replica, *, scheduled: int) -> list[DueTimer]:
    """A queue without room, and the timers of as many jobs that want to enter it."""
    await world.submit_many(3)
    for number in range(scheduled):
        await world.schedule(f"later-{number}", in_ms=HOUR)
    await world.settle(leader)
    return [DueTimer("release", f"later-{number}", number) for number in range(scheduled)]


async def test_no_more_places_are_asked_for_in_one_turn_than_fifty(world: World, leader: Replica) -> None:
    due = await fill(world, leader, scheduled=ASK_MAX + 5)

    proposal = await propose(leader, *due)

    assert (proposal.batch, proposal.more, proposal.overdue) == (None, False, False)
    assert len(planner_of(leader).duties.refused) == ASK_MAX


async def test_a_timer_of_another_attempt_is_about_nobody(world: World, leader: Replica) -> None:
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


async def test_what_came_due_behind_many_that_wait_for_room_is_seen(world: World, leader: Replica) -> None:
    await world.submit_many(3)
    for number in range(2 * LOOK):
        await world.schedule(f"later-{number}", in_ms=1)
    await world.settle(leader)
    await world.clock.advance_ms(SECOND)

    due = await planner_of(leader).look()

    assert len(due) == 2 * LOOK


async def test_what_cannot_be_read_back_is_not_written_and_is_aside(
    world: World, leader: Replica, monkeypatch: pytest.MonkeyPatch
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


async def test_who_is_aside_is_forgotten_when_it_moves_on(
    world: World, leader: Replica, monkeypatch: pytest.MonkeyPatch
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
