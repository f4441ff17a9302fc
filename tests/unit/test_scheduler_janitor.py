"""Workspaces and inputs after the end of their jobs: deleted when nobody can need them, and not a day before."""

from __future__ import annotations

import asyncio

import pytest

from headgate_contracts import Status
from libs.eventlog.buckets import MemoryBucket
from libs.policy import Policy, Retention
from libs.runtime.eventually import eventually
from services.scheduler.janitor import Janitor, Remains, kept_inputs, kept_workspaces
from services.scheduler.replica import Replica
from tests.fixtures.schedulers import MemorySchedulers, a_world

HOUR, DAY = 3_600_000, 86_400_000


@pytest.fixture
def workspaces() -> MemoryBucket:
    return MemoryBucket()


@pytest.fixture
def janitor(world: MemorySchedulers, leader: Replica, workspaces: MemoryBucket) -> Janitor:
    return janitor_of(world, leader, kept_workspaces(workspaces, leader.ledger.policy.retention))


def janitor_of(world: MemorySchedulers, replica: Replica, remains: Remains) -> Janitor:
    return Janitor(remains, world.log, ledger=replica.ledger, leader=replica.leader, clock=world.clock)


async def failed(world: MemorySchedulers, name: str) -> None:
    """A job that ended with a workspace."""
    await world.submit(name)
    await world.beat(slots=4)
    await world.settle(*world.replicas)
    await world.write(name, "started", "scaffold", "failed")
    await world.beat(slots=0)  # nobody starts what comes after it


async def sweep(world: MemorySchedulers, janitor: Janitor, workspaces: MemoryBucket, *, after_ms: int = 0) -> list[str]:
    """What is left, when so much time has passed."""
    await world.pass_ms(after_ms, *world.replicas, every_ms=HOUR)
    sweeping = asyncio.create_task(janitor.sweep())
    while not sweeping.done():
        await world.clock.advance_ms(10)
    await sweeping
    return await workspaces.names()


async def test_a_workspace_goes_a_day_after_the_end_of_its_job(
    world: MemorySchedulers, janitor: Janitor, workspaces: MemoryBucket
) -> None:
    await failed(world, "job-1")
    await workspaces.put("job-1-1-2", b"work")

    before = await sweep(world, janitor, workspaces, after_ms=DAY - HOUR)
    after = await sweep(world, janitor, workspaces, after_ms=2 * HOUR)

    assert (before, after) == (["job-1-1-2"], [])


async def test_an_unfinished_job_keeps_its_own_however_long_it_takes(
    world: MemorySchedulers, janitor: Janitor, workspaces: MemoryBucket
) -> None:
    await world.submit("job-1")
    await workspaces.put("job-1-1-2", b"work")

    assert await sweep(world, janitor, workspaces, after_ms=5 * DAY) == ["job-1-1-2"]


async def test_a_job_that_goes_on_from_it_keeps_anothers(
    world: MemorySchedulers, janitor: Janitor, workspaces: MemoryBucket
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
    world: MemorySchedulers, janitor: Janitor, workspaces: MemoryBucket
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
    policy = Policy.model_validate({"retention": {"workspaces_days": 5}})
    async with a_world(policy=policy) as world:
        replica = await world.leading()
        janitor = janitor_of(world, replica, kept_workspaces(workspaces, policy.retention))
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
    world: MemorySchedulers, janitor: Janitor, workspaces: MemoryBucket
) -> None:
    for name in ("nobody-1-1", "notes", "nobody-1"):
        await workspaces.put(name, b"work")

    assert await sweep(world, janitor, workspaces) == ["nobody-1", "notes"]


async def test_a_job_that_goes_on_is_never_taken_for_another_with_a_longer_name(
    world: MemorySchedulers, janitor: Janitor, workspaces: MemoryBucket
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
    assert kept_workspaces(MemoryBucket(), Retention()).job_of(name) == job


# ── inputs ────────────────────────────────────────────────────────────────────

DIGEST = "0123456789abcdef012345"


def input_of(job: str) -> str:
    return f"{job}-{DIGEST}"


@pytest.fixture
def of_inputs(world: MemorySchedulers, leader: Replica, workspaces: MemoryBucket) -> Janitor:
    """Of the same bucket, as inputs."""
    return janitor_of(world, leader, kept_inputs(workspaces, leader.ledger.policy.retention))


async def test_an_input_goes_a_day_after_the_end_of_its_job_and_no_earlier(
    world: MemorySchedulers, of_inputs: Janitor, workspaces: MemoryBucket
) -> None:
    await failed(world, "job-1")
    await world.submit("waits")
    for job in ("job-1", "waits"):
        await workspaces.put(input_of(job), b"{}")

    before = await sweep(world, of_inputs, workspaces, after_ms=DAY - HOUR)
    after = await sweep(world, of_inputs, workspaces, after_ms=2 * HOUR)

    assert (before, after) == ([input_of("job-1"), input_of("waits")], [input_of("waits")])


async def test_a_retry_keeps_its_own_input_when_the_first_ones_goes(
    world: MemorySchedulers, of_inputs: Janitor, workspaces: MemoryBucket
) -> None:
    await failed(world, "job-1")
    await workspaces.put(input_of("job-1"), b"{}")
    await world.submit("again", retry_of="job-1")
    await workspaces.put(input_of("again"), b"{}")

    assert await sweep(world, of_inputs, workspaces, after_ms=DAY + HOUR) == [input_of("again")]


async def test_an_input_whose_job_never_began_goes_after_an_hour(
    world: MemorySchedulers, of_inputs: Janitor, workspaces: MemoryBucket
) -> None:
    await workspaces.put(input_of("never"), b"{}")
    await workspaces.put("notes", b"of somebody else")

    seen = await sweep(world, of_inputs, workspaces)
    waits = await sweep(world, of_inputs, workspaces, after_ms=HOUR - 60_000)
    gone = await sweep(world, of_inputs, workspaces, after_ms=2 * 60_000)

    assert (seen, waits, gone) == ([input_of("never"), "notes"], [input_of("never"), "notes"], ["notes"])


@pytest.mark.parametrize("its_job_begins", [True, False])
async def test_an_input_that_is_put_anew_while_others_are_deleted_stays(
    world: MemorySchedulers, of_inputs: Janitor, workspaces: MemoryBucket, *, its_job_begins: bool
) -> None:
    """A submission whose append failed leaves its input; its client repeats the key when the janitor has decided."""
    for job in ("a-first", "job-1"):
        await workspaces.put(input_of(job), b"{}")
    await sweep(world, of_inputs, workspaces)
    await world.pass_ms(2 * HOUR, *world.replicas, every_ms=HOUR)

    sweeping = asyncio.create_task(of_inputs.sweep())
    await eventually(lambda: world.clock.sleeping > 0)
    await workspaces.put(input_of("job-1"), b"{}")
    if its_job_begins:
        await world.submit("job-1")
    while not sweeping.done():
        await world.clock.advance_ms(10)

    assert await workspaces.names() == [input_of("job-1")]
    assert await sweep(world, of_inputs, workspaces) == [input_of("job-1")]  # an hour begins anew


async def test_an_input_that_is_there_before_its_job_is_stays(
    world: MemorySchedulers, of_inputs: Janitor, workspaces: MemoryBucket
) -> None:
    await workspaces.put(input_of("job-1"), b"{}")
    await sweep(world, of_inputs, workspaces)
    await world.submit("job-1")

    assert await sweep(world, of_inputs, workspaces, after_ms=2 * HOUR) == [input_of("job-1")]


@pytest.mark.parametrize("stops_after", range(8))
async def test_whoever_is_killed_in_the_middle_is_followed_by_one_who_ends_it(
    world: MemorySchedulers, leader: Replica, workspaces: MemoryBucket, stops_after: int
) -> None:
    kept = kept_inputs(workspaces, leader.ledger.policy.retention)
    await failed(world, "job-1")
    await world.submit("waits")
    for name in (input_of("job-1"), f"job-1-{DIGEST[::-1]}", input_of("waits")):
        await workspaces.put(name, b"{}")
    await world.pass_ms(DAY + HOUR, *world.replicas, every_ms=HOUR)

    killed = asyncio.create_task(janitor_of(world, leader, kept).sweep())
    for _ in range(stops_after):
        await asyncio.sleep(0)
    killed.cancel()
    await asyncio.gather(killed, return_exceptions=True)

    assert await sweep(world, janitor_of(world, leader, kept), workspaces) == [input_of("waits")]


async def test_a_lost_view_keeps_no_input_longer_and_takes_none_earlier(
    world: MemorySchedulers, leader: Replica, workspaces: MemoryBucket
) -> None:
    await failed(world, "job-1")
    await workspaces.put(input_of("job-1"), b"{}")
    world.store.lose()
    await world.settle(*world.replicas)
    of_inputs = janitor_of(world, leader, kept_inputs(workspaces, leader.ledger.policy.retention))

    before = await sweep(world, of_inputs, workspaces, after_ms=DAY - HOUR)
    after = await sweep(world, of_inputs, workspaces, after_ms=2 * HOUR)

    assert (before, after) == ([input_of("job-1")], [])


async def test_bytes_are_given_back_when_the_input_goes(
    world: MemorySchedulers, of_inputs: Janitor, workspaces: MemoryBucket
) -> None:
    await failed(world, "job-1")
    await workspaces.put(input_of("job-1"), b"{}")
    counted = await world.view.stored()

    left = await sweep(world, of_inputs, workspaces, after_ms=DAY - HOUR)
    still = await world.view.stored()
    gone = await sweep(world, of_inputs, workspaces, after_ms=2 * HOUR)

    assert (left, gone) == ([input_of("job-1")], [])
    assert (counted > 0, still, await world.view.stored()) == (True, counted, 0)
