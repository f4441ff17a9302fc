"""A start that is one message: when a leader writes one, and whatever happens to it, nothing is counted twice.

The `world` ends each test with an audit of its log: one place too many, or a start that stands elsewhere than right
behind what it was planned over, fails the test.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from headgate_contracts.events import Group, JobDispatched, LoneStart, SchedulerCommitted
from headgate_contracts.shown import shown_event
from libs.capacity.answers import ClaimAnswer
from libs.capacity.memory.view import MemoryView
from libs.eventlog.errors import OutcomeUnknown
from libs.eventlog.expectation import Message
from libs.eventlog.memory import ChooseFate, Fate
from libs.eventlog.values import Appended, Conflicted
from services.scheduler.replica import Replica
from tests.fixtures.cuts import Interrupted
from tests.fixtures.schedulers import EPOCH, MemorySchedulers, breathe

SECOND = 1000


def links(world: MemorySchedulers) -> list[tuple[str, int]]:
    """Whose each is, and how many jobs it names."""
    return [(link.leader, len(link.jobs)) for link in world.written(SchedulerCommitted)]


def starts(world: MemorySchedulers) -> list[tuple[str, bool]]:
    """Each with whether it was written alone."""
    return [(data.job_id, data.alone is not None) for data in world.written(JobDispatched)]


# ── when it is one message ────────────────────────────────────────────────────


async def test_a_job_that_starts_by_itself_is_one_message_that_says_what_a_link_would(
    world: MemorySchedulers, leader: Replica
) -> None:
    await world.submit("first")
    await world.beat(slots=4)
    await world.settle(leader)
    group = Group(name="group:shop:db", limit=7)
    await world.submit("second", user="me", project="shop", groups=(group,))

    await world.settle(leader)

    _, second = world.written(JobDispatched)
    assert links(world) == [("a", 0)]
    assert second.groups == ("user:me", "project:shop", "group:shop:db")
    [link] = [record.seq for record in world.records() if record.event.data in world.written(SchedulerCommitted)]  # type: ignore[union-attr]
    assert second.alone == LoneStart(leader="a", link=link, over=world.server.last_seq - 1, limits=(3, 3, 7), slots=4)


async def test_nobody_is_shown_how_a_start_was_counted(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit("job-1")
    await world.beat()
    await world.settle(leader)

    [start] = world.written(JobDispatched)

    assert start.alone is not None
    assert "alone" not in shown_event(start)
    assert shown_event(start)["groups"] == list(start.groups)


async def test_several_that_start_at_once_are_a_batch(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit_many(3)
    await world.beat()

    await world.settle(leader)

    assert starts(world) == [("job-00", False), ("job-01", False), ("job-02", False)]
    assert links(world) == [("a", 0), ("a", 3)]


async def test_one_that_starts_beside_another_decision_is_in_its_batch(
    world: MemorySchedulers, leader: Replica
) -> None:
    await world.submit("now")
    await world.schedule("later", in_ms=10 * SECOND, user="other")
    await world.clock.advance_ms(10 * SECOND)
    await world.beat(slots=1)

    await world.settle(leader)

    assert starts(world) == [("now", False)]
    assert links(world) == [("a", 0), ("a", 2)]


async def test_whatever_came_since_makes_it_a_batch_at_once(world: MemorySchedulers) -> None:
    async def somebody_submits() -> None:
        if links(world) and "stranger" not in world.jobs():
            await world.submit("stranger", user="other", project="other")

    log = Interrupted(world, somebody_submits)
    a = world.replica("a", log=log)
    await world.settle(a)
    await world.submit("job-1")
    await world.beat(slots=1)

    await world.settle(a)

    assert [type(outcome) for outcome in log.outcomes] == [Appended, Conflicted, Appended]
    assert starts(world) == [("job-1", False)]
    assert links(world) == [("a", 0), ("a", 1)]
    assert "headgate_scheduler_conflicts_total" not in world.metrics(a)


async def test_it_is_not_tried_where_more_is_known_to_be_there(world: MemorySchedulers) -> None:
    """A page waits to be taken: the log would refuse it."""

    async def somebody_submits() -> None:
        if links(world) and "stranger" not in world.jobs():
            await world.submit("stranger", user="other", project="other")
            await breathe()

    border = _Asked(world, before=somebody_submits)
    log = Interrupted(world, _nothing)
    a = world.replica("a", log=log, view=border)
    await world.settle(a)
    await world.submit("job-1", groups=(Group(name="group:user-1:project-1:db", limit=1),))
    await world.beat(slots=1)

    await world.settle(a)

    assert [type(outcome) for outcome in log.outcomes] == [Appended, Appended]
    assert starts(world) == [("job-1", False)]


async def _nothing() -> None:
    pass


class _Asked(MemoryView):
    """A view on whose claims something happens first."""

    def __init__(self, world: MemorySchedulers, *, before: Callable[[], Awaitable[None]]) -> None:
        super().__init__(EPOCH, clock=world.clock.now_ms, store=world.store)
        self._before = before

    async def claim(self, *args: Any, **more: Any) -> ClaimAnswer:
        await self._before()
        return await super().claim(*args, **more)


# ── who begins, begins with a link ────────────────────────────────────────────


async def test_each_leader_begins_with_a_link_and_plans_once_it_has_folded_it(world: MemorySchedulers) -> None:
    a, b = world.replica("a"), world.replica("b")
    await world.settle(a, b)
    for number, leader in enumerate((a, b, a)):
        await (b if leader is a else a).leader.resign()
        await world.submit(f"job-{number}")
        await world.beat()
        await world.settle(leader, b if leader is a else a)

    assert starts(world) == [("job-0", True), ("job-1", True), ("job-2", True)]
    assert links(world) == [("a", 0), ("b", 0), ("a", 0)]


async def test_a_process_of_the_same_name_begins_anew(world: MemorySchedulers) -> None:
    a = await world.leading()
    await world.submit("job-1")
    await world.beat()
    await world.settle(a)

    again = await world.restarted("a")
    await world.submit("job-2")
    await world.beat(by=again)
    await world.settle(again)

    assert starts(world) == [("job-1", True), ("job-2", True)]
    assert links(world) == [("a", 0), ("a", 0)]


@pytest.mark.parametrize("lands_before", range(4))
async def test_the_next_leader_misses_no_start_that_lies_about(world: MemorySchedulers, lands_before: int) -> None:
    """The one before has ended in the midst of it. It lands before one of the other's first writes, or after them."""

    def late(messages: Sequence[Message]) -> Fate:
        return Fate.LATE if messages[0].entry.over is not None else Fate.ARRIVES

    a, b = world.replica("a", fate=late), world.replica("b", fate=landing(world, before=lands_before))
    await world.settle(a)
    await of_two_pools_the_first(world, a)
    await a.leader.resign()

    await the_second_has_slots(world)
    await world.settle(b)
    world.server.land()
    await world.settle(b)

    assert world.dispatched() == (["first"] if lands_before == 0 else ["second"])


async def of_two_pools_the_first(world: MemorySchedulers, leader: Replica) -> None:
    """Two jobs of which one may run, and the start of the first lies about. The log goes no further."""
    await world.set_limit("user:me", 1)
    await world.submit("first", user="me", pool="default")
    await world.submit("second", user="me", pool="gpu")
    await world.beat(pool="default")
    with pytest.raises(OutcomeUnknown):
        await world.settle(leader)


async def the_second_has_slots(world: MemorySchedulers) -> None:
    """And the first has none any more: who plans now without the start that lies about starts the second."""
    await world.clock.advance_ms(60 * SECOND)
    await world.beat("worker-2", pool="gpu")


def landing(world: MemorySchedulers, *, before: int) -> ChooseFate:
    """All arrives, and right before the write of this number whatever lies about lands."""
    left = before

    def fate(messages: Sequence[Message]) -> Fate:
        nonlocal left
        if left == 0:
            world.server.land()
        left -= 1
        return Fate.ARRIVES

    return fate


# ── what is not known ─────────────────────────────────────────────────────────


@pytest.mark.parametrize("lands_before", range(4))
@pytest.mark.parametrize("beside", [0, 1], ids=["a lone start", "a batch"])
async def test_after_silence_a_leader_begins_anew_so_that_nothing_of_its_own_comes_in_between(
    world: MemorySchedulers, lands_before: int, beside: int
) -> None:
    """What is under way lands right before one of its next writes, or after all of them."""
    silent, afterwards = True, landing(world, before=lands_before)

    def fate(messages: Sequence[Message]) -> Fate:
        if not silent:
            return afterwards(messages)
        return Fate.LATE if isinstance(messages[-1].entry.event.data, JobDispatched) else Fate.ARRIVES

    a = world.replica("a", fate=fate)
    await world.settle(a)
    for _ in range(beside):
        await world.submit("beside", user="other", pool="default")
    await of_two_pools_the_first(world, a)

    silent = False
    await the_second_has_slots(world)
    await world.settle(a)
    world.server.land()
    await world.settle(a)

    assert len({"first", "second"}.intersection(world.dispatched())) == 1
    assert links(world).count(("a", 0)) == (1 if lands_before == 0 and beside else 2)  # its own link was there first
