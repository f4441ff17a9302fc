"""Where waiting jobs stand: told of those that are watched, when it changes, and now and then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import cast

import pytest
import pytest_asyncio

from headgate_contracts import Priority
from headgate_contracts.commands import PositionChanged, Watching
from libs.capacity.answers import Outlook
from libs.capacity.memory.view import MemoryView
from libs.capacity.ports import ViewReadings
from libs.forecast.table import NAME, Forecast
from libs.runtime.lifecycle import Loop
from services.scheduler.positions import Announcer, position_of
from services.scheduler.replica import Replica
from tests.fixtures.schedulers import EPOCH, MemorySchedulers, breathe

QUARTER_S = 250
WATCHED = Watching(jobs=("job-3",), users=("u-job-1", "u-job-2", "vip", "w"))


class Counting(MemoryView):
    """The view, and how often it was asked about whom."""

    def __init__(self, world: MemorySchedulers) -> None:
        super().__init__(EPOCH, clock=world.clock.now_ms, store=world.store)
        self.world = world
        self.asked: list[int] = []

    async def outlooks(self, jobs: Sequence[str], *, now_ms: int | None = None) -> tuple[Outlook | None, ...]:
        self.asked.append(len(jobs))
        return await super().outlooks(jobs, now_ms=now_ms)


class Slow(Counting):
    """It takes a second to answer."""

    async def outlooks(self, jobs: Sequence[str], *, now_ms: int | None = None) -> tuple[Outlook | None, ...]:
        await self.world.clock.sleep_ms(1000)
        return await super().outlooks(jobs, now_ms=now_ms)


class Behind(Counting):
    """It has not come as far as the ledger: these are not in its queue yet."""

    missing: frozenset[str] = frozenset()

    async def outlooks(self, jobs: Sequence[str], *, now_ms: int | None = None) -> tuple[Outlook | None, ...]:
        outlooks = await super().outlooks(jobs, now_ms=now_ms)
        return tuple(None if job in self.missing else each for job, each in zip(jobs, outlooks, strict=True))


class Broken:
    """What cannot be told, whatever the reason."""

    async def __call__(self, user: str, moved: PositionChanged) -> None:
        raise RuntimeError(moved.job_id)


class Hearing:
    """A listener."""

    def __init__(self) -> None:
        self.told: list[tuple[str, PositionChanged]] = []

    async def __call__(self, user: str, moved: PositionChanged) -> None:
        self.told.append((user, moved))

    def heard(self) -> list[tuple[str, int | None]]:
        """Jobs and positions since the last time."""
        told, self.told = self.told, []
        return [(moved.job_id, moved.queue and moved.queue.position) for _, moved in told]


@pytest_asyncio.fixture
async def leader(world: MemorySchedulers) -> Replica:
    replica = await world.leading()
    for name in ("job-1", "job-2"):
        await world.submit(name, user=f"u-{name}", project=f"p-{name}")
    await world.settle(replica)
    return replica


@pytest.fixture
def hearing() -> Hearing:
    return Hearing()


@pytest.fixture
def view(world: MemorySchedulers) -> Counting:
    return Counting(world)


@pytest.fixture
def announcer(world: MemorySchedulers, leader: Replica, hearing: Hearing, view: Counting) -> Announcer:
    announcer = Announcer(leader.ledger, view, world.policy, world.clock, leader.leader, hearing)
    announcer.watch(WATCHED)
    return announcer


async def test_everybody_who_is_watched_is_told(announcer: Announcer, hearing: Hearing) -> None:
    await announcer.round()

    assert [(user, moved.job_id) for user, moved in hearing.told] == [("u-job-1", "job-1"), ("u-job-2", "job-2")]
    assert hearing.heard() == [("job-1", 1), ("job-2", 2)]


async def test_while_nobody_is_watched_the_view_is_asked_nothing(world: MemorySchedulers, leader: Replica) -> None:
    no_view = cast("ViewReadings", None)
    announcer = Announcer(leader.ledger, no_view, world.policy, world.clock, leader.leader, Hearing())

    await announcer.round()


async def test_only_whom_a_change_concerns_is_told(
    world: MemorySchedulers, leader: Replica, announcer: Announcer, hearing: Hearing
) -> None:
    await announcer.round()
    hearing.heard()
    await world.submit("first", user="vip", project="vip", priority=Priority.URGENT)
    await world.submit("last", user="w", project="w", priority=Priority.LOW)
    await world.settle(leader)

    await announcer.round()

    assert hearing.heard() == [("job-1", 2), ("job-2", 3), ("first", 1), ("last", 4)]
    await announcer.round()
    assert hearing.heard() == []


async def test_of_whom_nobody_watches_nobody_is_told_and_the_view_is_not_asked(
    world: MemorySchedulers, leader: Replica, announcer: Announcer, hearing: Hearing, view: Counting
) -> None:
    for number in range(90):
        await world.submit(f"other-{number}", user=f"o{number}", project=f"p{number}")
    await world.settle(leader)

    await announcer.round()

    assert hearing.heard() == [("job-1", 1), ("job-2", 2)]
    assert view.asked == [2]


async def test_who_begins_to_watch_is_told_in_the_next_round(
    world: MemorySchedulers, leader: Replica, telling: Announcer, hearing: Hearing
) -> None:
    await world.submit("other", user="new", project="new")
    await world.settle(leader)
    await live(world, leader, quarters=2)
    hearing.heard()

    telling.watch(Watching(jobs=("other",)))
    await live(world, leader, quarters=2)

    assert hearing.heard() == [("other", 3)]


async def test_who_is_not_spoken_of_any_more_is_forgotten_and_who_is_stays(
    world: MemorySchedulers, leader: Replica, telling: Announcer, hearing: Hearing
) -> None:
    for _ in range(4):
        telling.watch(Watching(users=("u-job-2",)))
        await live(world, leader, quarters=20)
    hearing.heard()

    await live(world, leader, quarters=24)

    assert hearing.heard() == [("job-2", 2)]


async def test_a_job_is_found_by_its_user_for_as_long_as_it_is_queued(world: MemorySchedulers, leader: Replica) -> None:
    await world.beat(slots=1)
    await world.settle(leader)
    roster = leader.ledger.roster

    assert [*roster.running] == ["job-1"]
    assert {user: [*jobs] for user, jobs in roster.queued_of.items()} == {"u-job-2": ["job-2"]}


async def test_an_estimate_alone_is_no_change_and_comes_with_one(
    world: MemorySchedulers, leader: Replica, announcer: Announcer, hearing: Hearing
) -> None:
    await announcer.round()
    first = hearing.told[0][1].queue
    hearing.heard()
    starts = {"job-1": 9000}
    await world.view.publish(NAME, Forecast(policy=world.policy, made_ms=1, learned=True, starts=starts).dump())

    await announcer.round()

    assert hearing.heard() == []
    assert first is not None
    assert (first.position, first.estimate_seconds) == (1, None)


async def test_a_heartbeat_that_changes_nothing_to_be_seen_is_not_told(
    world: MemorySchedulers, leader: Replica, announcer: Announcer, hearing: Hearing
) -> None:
    await world.set_limit("user:u-job-1", 1)
    await world.beat(slots=1)
    await world.settle(leader)
    await world.submit("blocked", user="u-job-1", project="p-job-1")
    await world.settle(leader)
    await announcer.round()
    hearing.heard()

    await world.pass_ms(5000)
    await world.beat(slots=1, holders=("job-1:1",))
    await announcer.round()

    assert hearing.heard() == []


async def test_one_round_is_one_question(announcer: Announcer, view: Counting) -> None:
    await announcer.round()

    assert view.asked == [2]


@pytest_asyncio.fixture
async def telling(announcer: Announcer) -> AsyncIterator[Announcer]:
    task = asyncio.create_task(announcer.run(asyncio.Event()))
    await breathe()
    yield announcer
    task.cancel()


async def live(world: MemorySchedulers, leader: Replica, *, quarters: int) -> None:
    """So many quarters of a second, in which the lead is held."""
    for _ in range(quarters):
        await leader.leader.renew()
        await world.clock.advance_ms(QUARTER_S)
        await breathe()


async def test_nobody_is_asked_while_nothing_happens_but_all_are_told_every_five_seconds(
    world: MemorySchedulers, leader: Replica, telling: Announcer, view: Counting, hearing: Hearing
) -> None:
    await live(world, leader, quarters=4)
    asked_at_first = len(view.asked)

    await live(world, leader, quarters=12)
    quiet = len(view.asked)
    await live(world, leader, quarters=10)

    assert (asked_at_first, quiet, len(view.asked)) == (1, 1, 2)
    assert hearing.heard() == [("job-1", 1), ("job-2", 2)] * 2


@pytest.mark.parametrize("what", ["folded", "heard"])
async def test_what_happens_is_looked_at_at_most_four_times_a_second(
    world: MemorySchedulers, leader: Replica, telling: Announcer, view: Counting, what: str
) -> None:
    await live(world, leader, quarters=1)
    view.asked.clear()
    for number in range(8):
        if what == "folded":
            await world.submit(f"more-{number}", user=f"u{number}", project=f"p{number}")
            await world.turn(leader)
        else:
            telling.stir()
        await world.clock.advance_ms(QUARTER_S // 2)
        await breathe()

    assert len(view.asked) == 4


async def test_who_does_not_lead_tells_nobody(
    world: MemorySchedulers, leader: Replica, telling: Announcer, hearing: Hearing
) -> None:
    await leader.leader.resign()
    for _ in range(8):
        await world.clock.advance_ms(QUARTER_S)
        await breathe()

    assert hearing.heard() == []


async def test_a_view_that_is_away_is_asked_again(
    world: MemorySchedulers, leader: Replica, announcer: Announcer, hearing: Hearing
) -> None:
    world.store.lose()
    await announcer.round()
    silent = hearing.heard()
    await world.settle(leader)

    await announcer.round()

    assert silent == []
    assert hearing.heard() == [("job-1", 1), ("job-2", 2)]


async def test_a_job_that_the_view_does_not_hold_yet_is_told_once_it_does(
    world: MemorySchedulers, leader: Replica, announcer: Announcer, hearing: Hearing
) -> None:
    announcer.view = view = Behind(world)
    telling = Loop("positions", announcer.run)
    view.missing = frozenset({"job-2"})
    await telling.start()
    await live(world, leader, quarters=2)
    at_first = hearing.heard()

    view.missing = frozenset()
    await live(world, leader, quarters=2)

    assert (at_first, hearing.heard()) == ([("job-1", 1)], [("job-2", 2)])
    await telling.stop()


async def test_one_job_that_cannot_be_shown_ends_nothing_but_the_round(
    world: MemorySchedulers, announcer: Announcer, hearing: Hearing
) -> None:
    telling = Loop("positions", announcer.run)
    await telling.start()
    announcer.tell = Broken()
    await world.pass_ms(1000, *world.replicas, every_ms=QUARTER_S)
    announcer.tell = hearing

    await world.submit("job-3", user="u-3", project="p-3")
    await world.pass_ms(1000, *world.replicas, every_ms=QUARTER_S)

    assert "job-3" in [job for job, _ in hearing.heard()]
    await telling.stop()


async def test_a_round_that_takes_long_is_followed_by_a_longer_rest(
    world: MemorySchedulers, leader: Replica, announcer: Announcer, view: Counting
) -> None:
    telling = Loop("positions", announcer.run)
    announcer.view = Slow(world)
    await telling.start()
    for _ in range(40):
        announcer.stir()
        await world.clock.advance_ms(QUARTER_S)
        await breathe()

    assert len(announcer.view.asked) == pytest.approx(10_000 / (1000 + 3 * 1000), abs=1)
    await telling.stop()


async def test_who_asks_hears_of_the_day_too(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit("job-3", user="u-job-1", takes_day=True)
    await world.settle(leader)

    moved = await position_of(await world.job("job-1"), view=world.view, policy=world.policy, clock=world.clock)

    assert (moved.used_today, moved.queue and moved.queue.position) == (1, 1)
