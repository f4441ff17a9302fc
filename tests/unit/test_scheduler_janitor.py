"""Workspaces after the end of their jobs: deleted when nobody can go on from them, and not a day before."""

from __future__ import annotations

import asyncio

import pytest

from headgate_contracts import Status
from libs.eventlog.buckets import MemoryBucket
from libs.policy import Policy
from services.scheduler.janitor import Janitor, job_of
from services.scheduler.replica import Replica
from tests.fixtures.schedulers import World, a_world

HOUR, DAY = 3_600_000, 86_400_000


@pytest.fixture
def workspaces() -> MemoryBucket:
    return MemoryBucket()


@pytest.fixture
def janitor(world: World, leader: Replica, workspaces: MemoryBucket) -> Janitor:
    return Janitor(workspaces, world.log, ledger=leader.ledger, leader=leader.leader, clock=world.clock)


async def failed(world: World, name: str) -> None:
    """A job that ended with a workspace."""
    await world.submit(name)
    await world.beat(slots=4)
    await world.settle(*world.replicas)
    await world.write(name, "started", "scaffold", "failed")
    await world.beat(slots=0)  # nobody starts what comes after it


async def sweep(world: World, janitor: Janitor, workspaces: MemoryBucket, *, after_ms: int = 0) -> list[str]:
    """What is left, when so much time has passed."""
    await world.pass_ms(after_ms, *world.replicas, every_ms=HOUR)
    sweeping = asyncio.create_task(janitor.sweep())
    while not sweeping.done():
        await world.clock.advance_ms(10)
    await sweeping
    return await workspaces.names()


async def test_a_workspace_goes_a_day_after_the_end_of_its_job(
    world: World, janitor: Janitor, workspaces: MemoryBucket
) -> None:
    await failed(world, "job-1")
    await workspaces.put("job-1-1-2", b"work")

    before = await sweep(world, janitor, workspaces, after_ms=DAY - HOUR)
    after = await sweep(world, janitor, workspaces, after_ms=2 * HOUR)

    assert (before, after) == (["job-1-1-2"], [])


async def test_an_unfinished_job_keeps_its_own_however_long_it_takes(
    world: World, janitor: Janitor, workspaces: MemoryBucket
) -> None:
    await world.submit("job-1")
    await workspaces.put("job-1-1-2", b"work")

    assert await sweep(world, janitor, workspaces, after_ms=5 * DAY) == ["job-1-1-2"]


async def test_a_job_that_goes_on_from_it_keeps_anothers(
    world: World, janitor: Janitor, workspaces: MemoryBucket
) -> None:
    await failed(world, "job-1")
    for name in ("job-1-1-1", "job-1-1-2"):
        await workspaces.put(name, b"work")
    await world.submit("again", retry_of="job-1", checkpoint="job-1-1-2", finished_stages=("scaffold",))

    waits = await sweep(world, janitor, workspaces, after_ms=3 * DAY)
    await world.write("again", "cancelled")
    await world.settle(*world.replicas)

    assert waits == ["job-1-1-2"]
    assert await sweep(world, janitor, workspaces, after_ms=DAY - HOUR) == ["job-1-1-2"]  # it may be tried once more
    assert await sweep(world, janitor, workspaces, after_ms=2 * HOUR) == []


async def test_whoever_begins_to_go_on_from_one_while_others_are_deleted_finds_it(
    world: World, janitor: Janitor, workspaces: MemoryBucket
) -> None:
    await failed(world, "job-1")
    names = [f"job-1-1-{number}" for number in range(10, 60)]
    for name in names:
        await workspaces.put(name, b"work")
    await world.pass_ms(2 * DAY, *world.replicas, every_ms=HOUR)

    sweeping = asyncio.create_task(janitor.sweep())
    await world.clock.advance_ms(10)
    await world.submit("again", retry_of="job-1", checkpoint=names[-1], finished_stages=("scaffold",))
    await world.settle(*world.replicas)
    while not sweeping.done():
        await world.clock.advance_ms(10)

    assert await workspaces.names() == [names[-1]]


async def test_what_the_fold_has_forgotten_is_asked_of_the_log(workspaces: MemoryBucket) -> None:
    policy = Policy.model_validate({"retention": {"workspaces_days": 5, "view_days": 1}})
    async with a_world(policy=policy) as world:
        replica = await world.leading()
        janitor = Janitor(workspaces, world.log, ledger=replica.ledger, leader=replica.leader, clock=world.clock)
        await failed(world, "job-1")
        await workspaces.put("job-1-1-2", b"work")
        await world.pass_ms(3 * DAY, replica, every_ms=DAY)
        await world.submit("job-2")
        await world.settle(replica)

        kept = await sweep(world, janitor, workspaces)
        gone = await sweep(world, janitor, workspaces, after_ms=3 * DAY)

        assert "job-1" not in replica.ledger.jobs
        assert (kept, gone) == (["job-1-1-2"], [])


async def test_what_is_of_no_job_goes_and_what_has_another_name_stays(
    world: World, janitor: Janitor, workspaces: MemoryBucket
) -> None:
    for name in ("nobody-1-1", "notes", "nobody-1"):
        await workspaces.put(name, b"work")

    assert await sweep(world, janitor, workspaces) == ["nobody-1", "notes"]


async def test_a_job_that_goes_on_is_never_taken_for_another_with_a_longer_name(
    world: World, janitor: Janitor, workspaces: MemoryBucket
) -> None:
    await failed(world, "job")
    await world.submit("job-1")
    await workspaces.put("job-1-1-1", b"work")

    left = await sweep(world, janitor, workspaces, after_ms=2 * DAY)

    assert left == ["job-1-1-1"]
    assert (await world.job("job-1")).status is not Status.FAILED


@pytest.mark.parametrize(
    ("name", "job"), [("job-1-2", "job"), ("a-b-1-2", "a-b"), ("a-1", None), ("a", None), ("a-1-x", None)]
)
def test_a_workspaces_name_says_whose_it_is(name: str, job: str | None) -> None:
    assert job_of(name) == job
