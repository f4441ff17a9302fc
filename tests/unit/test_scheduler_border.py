"""Jobs that want what leases want too: they take it before they are started, and hold nobody else up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from headgate_contracts.events import Group, JobDispatched
from libs.capacity.answers import Full, Granted, LeaseAnswer, LeaseRequest
from libs.capacity.errors import ViewUnavailable
from libs.capacity.memory.state import State
from libs.eventlog.expectation import Message
from libs.eventlog.memory import Fate
from libs.forecast.machine import answer
from libs.policy import Policy
from services.scheduler.replica import Replica
from tests.fixtures.schedulers import MemorySchedulers

DB = "group:user-1:project-1:db"


async def submit(world: MemorySchedulers, job_id: str) -> None:
    """A job that wants the one slot."""
    await world.submit(job_id, groups=(Group(name=DB, limit=1),))


async def lease(world: MemorySchedulers, name: str) -> LeaseAnswer:
    asked = LeaseRequest(lease=name, groups=(DB,), owner=None, ttl_ms=3_600_000, wait_ms=0)
    return await world.view.acquire(asked)


def state_of(world: MemorySchedulers) -> State:
    assert world.store.state is not None
    return world.store.state


class Claiming:
    """The world's view, with claims of its own."""

    def __init__(self, world: MemorySchedulers, claim: Callable[..., Awaitable[Any]]) -> None:
        self._view = world.view
        self.claim = claim

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._view, verb)


async def test_a_job_whose_slot_a_lease_holds_holds_nobody_else_up(world: MemorySchedulers, leader: Replica) -> None:
    await lease(world, "held")
    await submit(world, "job-1")
    await world.submit_many(2)

    await world.beat(slots=1)
    await world.settle(leader)

    assert world.dispatched() == ["job-00"]


async def test_it_starts_once_the_lease_is_given_up(world: MemorySchedulers, leader: Replica) -> None:
    await lease(world, "held")
    await submit(world, "job-1")
    await world.beat(slots=2)
    await world.settle(leader)

    await world.view.give_up("held")
    await world.pass_ms(1000, leader)

    assert world.dispatched() == ["job-1"]
    assert not state_of(world).claims


async def test_after_a_reload_a_claim_lapses_as_the_policy_in_force_says(world: MemorySchedulers) -> None:
    lapses = list[int]()

    async def claim(*asked: Any, **details: Any) -> Any:
        lapses.append(details["lapse_ms"])
        return await world.view.claim(*asked, **details)

    replica = world.replica("a", view=Claiming(world, claim))
    await world.settle(replica)
    await world.reload(Policy.model_validate({"submissions": {"reservation_s": 70}}))
    await submit(world, "job-1")
    await world.beat(slots=1)
    await world.settle(replica)

    assert world.dispatched() == ["job-1"]
    assert lapses[-1] == 70_000


async def test_nobody_gets_the_slot_between_the_plan_and_the_commit(world: MemorySchedulers) -> None:
    asked: list[LeaseAnswer] = []

    def meanwhile(messages: Sequence[Message]) -> Fate:
        if isinstance(messages[-1].entry.event.data, JobDispatched):
            asked.append(answer(lease(world, "late")))
        return Fate.ARRIVES

    replica = world.replica("a", fate=meanwhile)
    await world.settle(replica)
    await world.beat(slots=1)
    await submit(world, "job-1")
    await world.settle(replica)

    assert world.dispatched() == ["job-1"]
    assert asked == [Full(DB, limit=1, active=1)]


async def test_what_was_claimed_for_nothing_is_let_go_in_the_next_turn(world: MemorySchedulers) -> None:
    """Between the claim and the commit another job of the batch is cancelled, and this one's user is paused."""

    async def claim(*asked: Any, **details: Any) -> Any:
        claimed = await world.view.claim(*asked, **details)
        if claimed.held and not cancelled:
            cancelled.append("job-00")
            await world.write("job-00", "cancelled")
            await world.pause("user:user-1")
        return claimed

    cancelled: list[str] = []
    replica = world.replica("a", view=Claiming(world, claim))
    await world.settle(replica)
    await submit(world, "job-1")
    await world.submit_many(1)
    await world.beat(slots=2)
    await world.settle(replica)

    assert (cancelled, world.dispatched()) == (["job-00"], [])
    assert not state_of(world).claims
    assert isinstance(await lease(world, "next"), Granted)


async def test_where_the_border_does_not_answer_all_others_start(world: MemorySchedulers) -> None:
    async def claim(*_: Any, **__: Any) -> Any:
        raise ViewUnavailable("no answer")

    replica = world.replica("a", view=Claiming(world, claim))
    await world.settle(replica)
    await world.begun(replica)
    await submit(world, "job-1")
    await world.submit_many(2)

    await world.beat(slots=3)
    await world.settle(replica)

    assert world.dispatched() == ["job-00", "job-01"]


async def test_two_that_want_one_slot_start_one_after_the_other(world: MemorySchedulers, leader: Replica) -> None:
    await submit(world, "job-1")
    await submit(world, "job-2")
    await world.beat(slots=2)

    await world.settle(leader)
    first = world.dispatched()
    await world.finish("job-1")
    await world.settle(leader)

    assert (first, world.dispatched()) == (["job-1"], ["job-1", "job-2"])
