"""One replica's end of the fold: when it goes on, when it waits, and when it opens a new generation."""

from __future__ import annotations

import asyncio
import copy
from itertools import count

from libs.capacity.answers import ViewMark
from libs.capacity.folder import Folder
from libs.capacity.ledger import Ledger
from libs.capacity.memory import MemoryStore, MemoryView
from libs.policy import Policy
from tests.fixtures.lives import life_of
from tests.fixtures.observing import observe
from tests.unit.test_ledger import logged

POLICY = Policy()
NOW_MS = 1_800_000_000_000
RECORDS = logged([event for n in range(6) for event in life_of(f"job-{n}", "queued dispatched started")])


class CountedView(MemoryView):
    """It counts how often it was asked where it stands."""

    marks = 0

    async def mark(self) -> ViewMark | None:
        self.marks += 1
        return await super().mark()


class Replica:
    """A folder over a store that others may share."""

    def __init__(self, store: MemoryStore, *, name: str = "a", epoch: str = "E", tail_max: int = 100) -> None:
        self.store = store
        self.view = CountedView(epoch, clock=lambda: NOW_MS, store=store)
        numbers = count(1)
        self.folder = Folder(
            self.view,
            Ledger(POLICY),
            epoch=epoch,
            lease_ms=30_000,
            new_generation=lambda: f"{name}{next(numbers)}",
            tail_max=tail_max,
        )

    async def fold_to(self, through: int) -> tuple[str, int]:
        self.folder.take(RECORDS[:through])
        await self.folder.update_view()
        return await self.mark()

    async def mark(self) -> tuple[str, int]:
        mark = await self.view.mark()
        assert mark is not None
        return mark.generation, mark.applied


async def test_the_first_to_lead_opens_a_generation_and_goes_on_in_it() -> None:
    replica = Replica(MemoryStore())

    assert await replica.fold_to(5) == ("a1", 5)
    assert await replica.fold_to(12) == ("a1", 12)


async def test_where_the_view_stands_is_asked_again_only_where_it_stands_elsewhere() -> None:
    leader = Replica(MemoryStore())
    await leader.fold_to(5)
    older, asked = copy.deepcopy(leader.store.state), leader.view.marks

    leader.folder.take(RECORDS[:9])
    await leader.folder.update_view()
    in_peace, leader.store.state = leader.view.marks - asked, older
    leader.folder.take(RECORDS)
    await leader.folder.update_view()

    assert (in_peace, leader.view.marks - asked) == (0, 1)
    assert await leader.mark() == ("a2", len(RECORDS))


async def test_who_stood_by_goes_on_where_the_leader_stopped() -> None:
    store = MemoryStore()
    leader, standby = Replica(store, name="a"), Replica(store, name="b")
    standby.folder.take(RECORDS[:4])
    await leader.fold_to(9)

    await standby.folder.stand_by()

    assert await standby.fold_to(18) == ("a1", 18)


async def test_who_is_behind_the_view_waits_for_its_own_ledger() -> None:
    store = MemoryStore()
    ahead, behind = Replica(store, name="a"), Replica(store, name="b")
    behind.folder.take(RECORDS[:3])
    await ahead.fold_to(10)

    assert await behind.fold_to(6) == ("a1", 10)
    assert await behind.fold_to(14) == ("a1", 14)


async def test_a_lost_view_is_opened_again_as_it_was() -> None:
    replica = Replica(MemoryStore())
    await replica.fold_to(12)
    before = await observe(replica.view)
    replica.store.lose()

    await replica.folder.update_view()

    after = await observe(replica.view)
    assert (after.mark.generation, after.mark.applied) == ("a2", 12)
    assert (after.queue, after.groups, after.quotas) == (before.queue, before.groups, before.quotas)


async def test_others_have_their_turn_while_a_view_is_made_of_many_jobs() -> None:
    replica = Replica(MemoryStore())
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    replica.folder.take(logged([event for n in range(1200) for event in life_of(f"job-{n}", "queued")]))
    other = asyncio.create_task(take_turns())
    await replica.folder.rebuild()
    other.cancel()

    assert turns >= 3
    assert await replica.mark() == ("a1", 1200)


async def test_a_view_of_another_log_is_opened_again() -> None:
    store = MemoryStore()
    await Replica(store, name="a", epoch="OLD").fold_to(18)

    assert await Replica(store, name="b", epoch="E").fold_to(5) == ("b1", 5)


async def test_a_view_that_went_back_is_opened_again_even_where_it_could_be_continued() -> None:
    store = MemoryStore()
    leader, standby = Replica(store, name="a"), Replica(store, name="b")
    await leader.fold_to(3)
    older = copy.deepcopy(store.state)
    await leader.fold_to(9)
    standby.folder.take(RECORDS[:2])
    await standby.folder.stand_by()  # it has seen 9, and remembers from 2 on
    store.state = older

    assert await standby.fold_to(12) == ("b1", 12)


async def test_a_tail_that_grew_too_long_is_dropped_for_a_rebuild() -> None:
    store = MemoryStore()
    leader, standby = Replica(store, name="a"), Replica(store, name="b", tail_max=10)
    await leader.fold_to(1)

    assert await standby.fold_to(18) == ("b1", 18)


async def test_two_who_both_believe_to_lead_do_no_harm() -> None:
    store = MemoryStore()
    one, other = Replica(store, name="a"), Replica(store, name="b")

    for through in range(1, 19):
        await (one if through % 2 else other).fold_to(through)

    assert await one.fold_to(18) == ("a1", 18)
    assert (await observe(one.view)).statuses == {f"job-{n}": "starting" for n in range(6)}
