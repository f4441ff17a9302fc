"""Who goes first where the plain order is not all: classes that starve, and neighbours without room between them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from headgate_contracts import Job, Priority, Tier
from headgate_contracts.events import JobDispatched, JobMoved
from libs.capacity.answers import Reserved
from libs.eventlog.errors import LogError
from libs.eventlog.memory import Fate
from libs.policy import Policy
from services.scheduler import planning
from services.scheduler.domain import Decision
from services.scheduler.replica import Replica
from tests.fixtures.lives import step, submission
from tests.fixtures.schedulers import MemorySchedulers

SECOND = 1000
POLICY = Policy.model_validate(
    {
        "queue": {"cap": 6, "user_share": 6},
        "order": {"starved_after_s": 600, "starved_every": 4, "ageing_after_s": 1e6},
    }
)


@pytest.fixture
def policy() -> Policy:
    return POLICY


# ── turns ─────────────────────────────────────────────────────────────────────


async def starts_one_by_one(world: MemorySchedulers, leader: Replica, count: int) -> list[tuple[str, bool]]:
    """With one slot: who is started, and whether it was owed."""
    for number in range(count):
        await world.beat(slots=1)
        await world.settle(leader)
        running = [job for job in leader.ledger.jobs.values() if job.status.is_running]
        for job in running:
            await world.write(job.id, "started", "failed")
        await world.submit(f"high-{number + 10}", user="v", project="v", priority=Priority.HIGH)
        await world.settle(leader)
    return [(data.job_id, data.starved) for data in world.written(JobDispatched)]


async def test_a_starving_class_gets_every_fourth_start(world: MemorySchedulers, leader: Replica) -> None:
    for number in range(3):
        await world.submit(f"low-{number}", user="w", project="w", priority=Priority.LOW)
    await world.submit("high-00", user="v", project="v", priority=Priority.HIGH)
    await world.pass_ms(700 * SECOND, leader, every_ms=100 * SECOND)

    starts = await starts_one_by_one(world, leader, 12)

    assert [name.split("-")[0] for name, _ in starts[:12]] == ["high", "high", "high", "low"] * 3
    assert {name: starved for name, starved in starts if starved} == {f"low-{number}": True for number in range(3)}


async def test_a_class_whose_jobs_cannot_run_gives_its_turn_away_and_keeps_its_claim(
    world: MemorySchedulers, leader: Replica
) -> None:
    await world.submit("low-0", user="w", project="w", priority=Priority.LOW, pool="gpu")
    await world.submit("high-00", user="v", project="v", priority=Priority.HIGH)
    await world.pass_ms(700 * SECOND, leader, every_ms=100 * SECOND)
    starts = await starts_one_by_one(world, leader, 6)

    await world.submit("high-99", user="v", project="v", priority=Priority.HIGH)
    await world.write(starts[-1][0], "started", "failed")
    await world.beat("worker-2", pool="gpu", slots=1)
    await world.settle(leader)

    assert [name for name, _ in starts] == ["high-00", *(f"high-{number}" for number in range(10, 16))]
    last = [(data.job_id, data.starved) for data in world.written(JobDispatched)[-2:]]
    assert last == [("low-0", True), ("high-99", False)]


async def test_a_batch_is_cut_so_that_each_owed_start_is_exactly_the_fourth(
    world: MemorySchedulers, leader: Replica
) -> None:
    names = [f"high-{number}" for number in range(5)]
    await world.submit("low-0", user="w", project="w", priority=Priority.LOW)
    await world.pass_ms(700 * SECOND, leader, every_ms=100 * SECOND)
    for name in names:
        await world.submit(name, user="v", project="v", priority=Priority.HIGH, tier=Tier.CTO_SCALE)
    await world.beat(slots=20)

    await world.settle(leader)

    assert world.dispatched() == [*names[:3], "low-0", *names[3:]]


async def test_a_batch_is_cut_as_exactly_while_a_job_is_set_aside(
    world: MemorySchedulers, leader: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = planning.start

    def refusing(job: Job, **given: Any) -> Decision:
        if job.id == "broken":
            raise ValueError("no such event")
        return make(job, **given)

    monkeypatch.setattr(planning, "start", refusing)
    await world.submit("broken", user="b", project="b")
    await world.beat(slots=1)
    await world.settle(leader)
    await world.pause("user:b")
    await world.beat(slots=0)
    await world.submit("low-0", user="w", project="w", priority=Priority.LOW)
    await world.pass_ms(700 * SECOND, leader, every_ms=100 * SECOND)
    names = [f"high-{number}" for number in range(4)]
    for name in names:
        await world.submit(name, user="v", project="v", priority=Priority.HIGH, tier=Tier.CTO_SCALE)
    await world.beat(slots=20)

    await world.settle(leader)

    assert world.dispatched() == [*names[:3], "low-0", *names[3:]]


async def test_what_comes_free_is_for_the_class_that_is_owed_the_start(
    world: MemorySchedulers, leader: Replica
) -> None:
    """The low job's user is full until the very commit that gives an attempt of theirs back."""
    await world.set_limit("user:w", 1)
    await world.submit("first", user="w", project="w", priority=Priority.HIGH)
    await world.beat(slots=1)
    await world.settle(leader)
    await world.submit("low-0", user="w", project="w", priority=Priority.LOW)
    for _ in range(35):
        await world.beat(slots=1, holders=("first:1",))
        await world.pass_ms(20 * SECOND, leader)
    for number in range(3):
        await world.submit(f"high-{number}", user="v", project="v", priority=Priority.HIGH)
    await world.beat(slots=4, holders=("first:1",))
    await world.settle(leader)
    await world.submit("high-3", user="x", project="x", priority=Priority.HIGH)
    await world.force("user:w", "first:1")
    await world.beat(slots=6, holders=("first:1",))

    await world.settle(leader)

    starts = [(data.job_id, data.starved) for data in world.written(JobDispatched)]
    assert starts[-2:] == [("low-0", True), ("high-3", False)]


async def test_a_start_in_its_turn_is_not_marked(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit("low-0", user="w", project="w", priority=Priority.LOW)
    await world.pass_ms(700 * SECOND, leader, every_ms=100 * SECOND)
    await world.beat(slots=20)

    await world.settle(leader)

    assert [(data.job_id, data.starved) for data in world.written(JobDispatched)] == [("low-0", False)]


# ── spacing ───────────────────────────────────────────────────────────────────


async def fill_places(world: MemorySchedulers, leader: Replica) -> list[str]:
    """Jobs moved right behind the same one, until no number is left."""
    names = [f"job-{number}" for number in range(6)]
    for name in names:
        await world.submit(name, user=f"u-{name}", project=f"p-{name}", tier=Tier.PARTNER)
    await world.settle(leader)
    order = list(names)
    for name in reversed(names[2:]):
        if not await world.move(name, after="job-0"):
            break
        order.remove(name)
        order.insert(1, name)
        await leader.cycle.turn()  # it folds, and does not come to more
    return order


async def queue_of(world: MemorySchedulers) -> list[str]:
    return [entry.job for entry in await world.view.queue()]


async def test_neighbours_without_room_are_spread_and_nobody_changes_place(
    world: MemorySchedulers, leader: Replica
) -> None:
    expected = await fill_places(world, leader)

    await world.settle(leader)

    places = [entry.score for entry in await world.view.queue()]
    assert world.written(JobMoved)[-1].reason.value == "spaced"
    assert await queue_of(world) == expected
    assert min(right - left for left, right in pairwise(places)) >= 2
    assert await world.view_is_the_log()
    assert not leader.ledger.places.narrow


async def test_a_move_that_found_no_room_finds_it_after(world: MemorySchedulers, leader: Replica) -> None:
    await fill_places(world, leader)

    await world.settle(leader)

    assert await world.move("job-1", after="job-0")


async def test_a_place_that_is_only_held_is_not_crossed(world: MemorySchedulers) -> None:
    lost: list[Fate] = []
    leader = world.replica("a", fate=lambda _: lost.pop() if lost else Fate.ARRIVES)
    await world.settle(leader)
    for name in ("job-0", "job-1", "job-2"):
        await world.submit(name, user=f"u-{name}", project=f"p-{name}", tier=Tier.BOOTSTRAPPER)
    first, second = await world.job("job-0"), await world.job("job-1")
    assert first.standing is not None
    await world.append(second, step(second, "moved:operator", place=first.standing.place + 1, salt="m"))
    lost += [Fate.LOST] * 100
    with pytest.raises(LogError):  # it has folded that, and could write nothing
        await world.turn(leader)
    lost.clear()
    held = await world.view.reserve(world.request("held", wanted=submission(tier=Tier.PARTNER)))
    before = await queue_of(world)

    await world.settle(leader)

    assert isinstance(held, Reserved)
    assert held.passed == ("job-2",)
    assert not leader.ledger.places.narrow
    assert await queue_of(world) == before == ["job-0", "job-1", "held", "job-2"]


async def test_who_runs_is_not_moved_and_returns_to_its_place(world: MemorySchedulers, leader: Replica) -> None:
    names = ["job-0", "job-1"]
    for name in names:
        await world.submit(name, user=f"u-{name}", project=f"p-{name}", tier=Tier.PARTNER)
    await world.beat(slots=1)
    await world.settle(leader)
    running = await world.job("job-0")
    assert running.standing is not None
    moved = step(await world.job("job-1"), "moved:operator", place=running.standing.place + 1, salt="m")
    await world.append(await world.job("job-1"), moved)

    await world.settle(leader)
    await world.write("job-0", "given_back:drained")
    await world.beat(slots=0)
    await world.settle(leader)

    assert (await world.job("job-0")).standing == running.standing
    assert await queue_of(world) == names
