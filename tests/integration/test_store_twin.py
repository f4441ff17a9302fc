"""The store beside its twin where small random lives seldom come: crowds, ties, places with no number between them."""

from collections.abc import AsyncIterator
from dataclasses import replace
from random import Random
from typing import Any, cast

import pytest
import pytest_asyncio

from libs.capacity.answers import Full, Granted, HeldLease, NoRoom, Plan, Reserved
from libs.capacity.memory import MemoryView
from libs.capacity.ports import View
from libs.capacity.rows import ARRIVAL_STEP, FreeLease, Row
from libs.capacity.store import RedisView
from libs.capacity.store_client import open_client
from tests.conformance.view_beside import Beside
from tests.conformance.view_pair import Pair
from tests.conformance.view_scenario import LEASE_MS, NOW_MS, ViewScenario, row
from tests.fixtures.observing import observe
from tests.fixtures.stores import EPOCH

GROUPS = ("group:shop:a", "group:shop:b", "group:shop:c")


class PairScenario(ViewScenario):
    """Every answer is the twin's, and was the store's too. Who may run is planned by an engine beside them."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        super().__init__(cast(View, Beside(cast(View, pair), lambda: self)))

    async def fill(self, rows: list[Row]) -> None:
        changes = [self.write(each) for each in rows]
        await self.view.fold(changes, lease_ms=LEASE_MS, now_ms=self.now_ms)

    async def alike(self) -> None:
        pair = self.pair
        seen, expected = [await observe(each, now_ms=self.now_ms) for each in (pair.store, pair.twin)]
        assert seen == expected

    async def plans(self, limit: int = 20) -> list[Plan]:
        """Until nothing more is to be seen."""
        plans = [await self.look(limit)]
        while plans[-1].more:
            plans.append(await self.look(limit))
        return plans


@pytest_asyncio.fixture
async def world(redis_url: str) -> AsyncIterator[PairScenario]:
    client = open_client(redis_url)
    store = RedisView(client, shard="main", epoch=EPOCH)
    world = PairScenario(Pair(MemoryView(EPOCH, clock=lambda: NOW_MS), store))
    await world.open()
    await world.worker(slots=100_000)
    yield world
    await world.alike()
    await store.close()
    await client.aclose()


def queued(number: int, *, place: int | None = None, tier: str = "bootstrapper", **details: Any) -> Row:
    at = (number + 1) * 2**16 if place is None else place
    return replace(row(f"j{number:05}", tier=tier, **details), place=at, arrival=number + 1)


async def test_where_neighbours_leave_no_number_fewer_are_passed(world: PairScenario) -> None:
    for number, place in enumerate((13, 17, 18)):
        await world.fold(queued(number, place=place))

    landed = [await world.submit(f"boosted{n}", tier="partner", user=f"u{n}") for n in range(4)]

    assert [answer.place for answer in landed] == [14, 15, 16, landed[3].arrival * ARRIVAL_STEP]
    assert [len(answer.passed) for answer in landed] == [2, 2, 2, 0]
    await world.alike()


async def test_many_boosted_jobs_in_a_crowded_class_land_alike(world: PairScenario) -> None:
    random = Random(7)
    for number in range(120):
        tier = random.choice(("bootstrapper", "partner", "cto_scale"))
        await world.submit(f"j{number}", tier=tier, user=f"u{number % 40}", project=f"p{number % 30}", cap=500)
        if number % 7 == 6:
            await world.finish(
                random.choice([job for job in world.rows if world.rows[job].place is not None]), "cancelled"
            )

    await world.alike()


async def test_equal_places_go_by_name_over_all_pools(world: PairScenario) -> None:
    await world.worker("w2", pool="gpu", slots=100_000)
    rows = [queued(number, place=65_536, user=f"u{number}", project=f"p{number}") for number in range(90)]
    await world.fill([replace(each, pool="gpu" if at % 3 else "default") for at, each in enumerate(rows)])

    plan = await world.look(70)

    assert [pick.job for pick in plan.picks] == [f"j{number:05}" for number in range(70)]
    for job in ("j00000", "j00044", "j00089"):
        await world.view.outlook(job, now_ms=world.now_ms)


async def test_more_parked_jobs_than_one_call_may_look_at_are_looked_at_by_the_next(world: PairScenario) -> None:
    await world.set_limit(GROUPS[0], 0)
    await world.fill(
        [queued(n, user=f"u{n}", project=f"p{n}", groups=(GROUPS[0],)) for n in range(2_100)],
    )
    await world.set_limit(GROUPS[0], 2_100)

    plans = await world.plans()

    assert [plan.more for plan in plans] == [True, True, False]
    assert [pick.job for pick in plans[-1].picks] == [f"j{n:05}" for n in range(20)]


async def test_more_eligible_jobs_than_one_call_may_look_at_are_looked_at_by_the_next(world: PairScenario) -> None:
    rows = [queued(n, user="ann") for n in range(1_500)]
    await world.fill([*rows, queued(1_500, user="bob", project="blog")])

    plans = await world.plans()

    assert [[pick.job for pick in plan.picks] for plan in plans] == [
        ["j00000", "j00001"],
        ["j00000", "j00001", "j01500"],
    ]


async def test_what_a_parked_job_stood_for_is_found_in_the_same_walk(world: PairScenario) -> None:
    await world.set_limit(GROUPS[0], 1)
    await world.set_limit(GROUPS[1], 1)
    await world.fill([queued(0, user="u0", project="p0", groups=(GROUPS[0],))])
    await world.dispatch("j00000")
    await world.fill(
        [
            *(queued(n, user="ann", groups=(GROUPS[0],)) for n in range(1, 41)),
            *(queued(n, user=f"u{n}", project=f"p{n}", groups=(GROUPS[1],)) for n in range(41, 81)),
        ]
    )

    for _ in range(3):
        await world.look()
        await world.alike()
    await world.finish("j00000")
    plans = await world.plans()

    assert [pick.job for pick in plans[-1].picks] == ["j00001", "j00041"]


async def test_waiters_of_several_groups_are_woken_in_the_order_of_names(world: PairScenario) -> None:
    await world.fill([queued(0, groups=GROUPS[::-1])])
    await world.dispatch("j00000")
    for number, groups in enumerate((GROUPS[1:], GROUPS[:2], GROUPS[:1], GROUPS[2:])):
        await world.acquire(f"l{number}", *groups)

    granted = await world.finish("j00000")

    assert [grant.lease for grant in granted] == ["l1", "l3"]
    await world.alike()


async def test_a_lease_that_ends_lets_a_parked_job_go(world: PairScenario) -> None:
    await world.hold("outside", GROUPS[0], ttl_ms=5_000)
    await world.submit("a", groups=(GROUPS[0],))
    assert await world.plan() == []

    world.later(5_000)

    assert await world.plan() == ["a"]


async def test_what_ends_now_has_ended(world: PairScenario) -> None:
    await world.hold("outside", GROUPS[0], ttl_ms=5_000)
    await world.submit("a")
    await world.dispatch("a")
    before = await world.view.group(GROUPS[0], now_ms=world.now_ms + 4_999)
    after = await world.view.group(GROUPS[0], now_ms=world.now_ms + 5_000)
    await world.open(seeds=world.seeds(), generation="g1", quarantine_ms=5_000)

    world.later(4_999)
    shut = await world.acquire("l1", GROUPS[0], wait_ms=0)
    world.later(1)
    opened = await world.acquire("l2", GROUPS[0], wait_ms=0)

    assert (before.active, after.active) == (1, 0)
    assert isinstance(shut, Full)
    assert isinstance(opened, Granted)


async def test_a_limit_that_a_submission_brings_wakes_who_waited(world: PairScenario) -> None:
    await world.hold("l1", GROUPS[0])
    await world.acquire("l2", GROUPS[0])
    await world.submit("b", groups=(GROUPS[0],))

    granted = await world.fold(replace(queued(0), limits={GROUPS[0]: 3}))

    assert [grant.lease for grant in granted] == ["l2"]
    assert "b" in await world.plan()


async def test_a_raised_limit_wakes_who_waited(world: PairScenario) -> None:
    await world.hold("l1", GROUPS[0])
    await world.acquire("l2", GROUPS[0])

    granted = await world.set_limit(GROUPS[0], 2)

    assert [grant.lease for grant in granted] == ["l2"]


async def test_a_grant_that_was_kept_is_told_once(world: PairScenario) -> None:
    await world.hold("l1", "llm:x")
    for lease in ("l2", "l3"):
        await world.acquire(lease, "llm:x")

    await world.configure({**world.orders.defaults, "llm:x": 2})
    first = await world.fold()
    await world.configure({**world.orders.defaults, "llm:x": 3})
    second = await world.fold()

    assert [[grant.lease for grant in told] for told in (first, second, await world.fold())] == [["l2"], ["l3"], []]


async def test_who_asked_for_room_first_has_it_first_however_often_others_ask(world: PairScenario) -> None:
    for job in ("a", "b"):
        await world.schedule(job)
    await world.submit("c", user="bob")
    for job in ("a", "b", "a"):
        world.later(1_000)
        assert await world.release(job, cap=1) == NoRoom()

    await world.finish("c", "cancelled")

    assert await world.release("b", cap=1) == NoRoom()
    assert isinstance(await world.release("a", cap=1), Reserved)


async def test_a_lease_freed_by_force_is_lost_to_the_attempt_that_held_it_alone(world: PairScenario) -> None:
    await world.submit("a")
    await world.dispatch("a")
    await world.hold("l", GROUPS[0], owner="a:1")
    await world.fold(order=FreeLease(GROUPS[0], "l"))
    first = await world.worker(holders=("a:1",), leases=(HeldLease("l", "a:1", GROUPS[:1]),))

    await world.give_back("a")
    await world.dispatch("a")
    second = await world.worker(holders=("a:2",), leases=(HeldLease("l", "a:2", GROUPS[:1]),))

    assert (first.lost_leases, second.lost_leases) == (("l",), ())


async def test_a_running_job_keeps_its_lease_whatever_else_changes(world: PairScenario) -> None:
    await world.submit("a")
    await world.dispatch("a")
    ends_ms = world.now_ms + LEASE_MS

    world.later(10_000)
    await world.fold(replace(world.rows["a"], timers={"deadline": world.now_ms + 1}, quota_day=None))

    assert (await observe(world.view, now_ms=world.now_ms)).leases == {"a:1": ends_ms}


@pytest.mark.lives
async def test_a_crowd_of_random_jobs_is_planned_alike_to_the_end(world: PairScenario) -> None:
    random = Random(11)
    rows: list[Row] = []
    for number in range(400):
        groups = tuple(random.sample(GROUPS, random.choice((0, 0, 1, 2))))
        tier = random.choice(("bootstrapper", "partner"))
        each = queued(
            number, tier=tier, user=f"u{random.randrange(40)}", project=f"p{random.randrange(20)}", groups=groups
        )
        rows.append(replace(each, class_number=random.choice((50, 50, 20, 70))))
    await world.fill(rows)

    ended = 0
    while ended < 400:
        plan = (await world.plans(50))[-1]
        await world.dispatch(*(pick.job for pick in plan.picks))
        running = sorted(job for job, each in world.rows.items() if each.holder)
        assert running, "nothing runs and nothing was planned"
        for job in random.sample(running, max(1, len(running) // 2)):
            await world.finish(job)
            ended += 1
        await world.alike()


@pytest.mark.lives
async def test_a_crowd_of_all_classes_behind_gates_and_groups_that_shut_is_planned_alike_to_the_end(
    world: PairScenario,
) -> None:
    random = Random(13)
    await world.worker("w2", pool="gpu", slots=40)
    rows: list[Row] = []
    for number in range(300):
        details = {
            "groups": tuple(random.sample(GROUPS, random.choice((0, 0, 1, 2)))),
            "gates": random.choice(((), (), GROUPS[:1], GROUPS[1:])),
            "pool": random.choice(("default", "default", "gpu")),
        }
        each = queued(number, user=f"u{random.randrange(30)}", project=f"p{random.randrange(20)}", **details)
        rows.append(replace(each, class_number=random.choice((20, 50, 50, 90))))
    await world.fill(rows)

    ended = 0
    while ended < 300:
        if random.random() < 0.3:
            await world.shut(random.choice((*GROUPS, "pool:gpu")), random.choice((500, 1_500)))
        only_class = random.choice((None, 20, 50, 90))
        plan = await world.look(50, only_class=only_class)
        await world.dispatch(*(pick.job for pick in plan.picks))
        await world.view.outlooks([*world.rows][::17], now_ms=world.now_ms)
        running = sorted(job for job, each in world.rows.items() if each.holder)
        for job in random.sample(running, (len(running) + 1) // 2):
            await world.finish(job)
            ended += 1
        world.later(400)
        await world.alike()
