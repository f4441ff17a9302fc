"""While the store is away: who led last goes on with what the log alone decides, and harms nobody who leads."""

from __future__ import annotations

import asyncio

import pytest_asyncio

from headgate_contracts import Priority, Status, Tier
from headgate_contracts.commands import AcquireLease, Beat, ShutProvider
from headgate_contracts.events import Group, SchedulerCommitted
from libs.capacity.projection import defaults_of
from libs.eventlog.values import Appended, Conflicted
from services.scheduler.batches import BATCH_MAX
from services.scheduler.replica import Replica
from tests.fixtures.callers import today
from tests.fixtures.cuts import Cut, Interrupted, Once, look
from tests.fixtures.lives import step, submission
from tests.fixtures.schedulers import MemorySchedulers

SECOND = 1000
GROUP = (Group(name="group:user-1:project-1:db", limit=1),)


@pytest_asyncio.fixture
async def way(world: MemorySchedulers) -> Cut:
    return Cut(world)


@pytest_asyncio.fixture
async def leader(world: MemorySchedulers, way: Cut) -> Replica:
    """It leads, and its way to the store can be cut."""
    replica = world.replica("a", **way.adapters)
    await world.settle(replica)
    return replica


async def pass_s(world: MemorySchedulers, seconds: int, *replicas: Replica) -> None:
    for _ in range(seconds):
        await world.clock.advance_ms(SECOND)
        for replica in replicas:
            await look(replica)
            await look(replica)  # the first one reads what others have written


def overheard(replica: Replica, *, worker: str = "worker-1", slots: int = 8) -> None:
    """A heartbeat that no view hears of."""
    replica.handlers.note_heartbeat(Beat(worker=worker, pool="default", slots=slots))


def leaders(world: MemorySchedulers) -> list[str]:
    return [link.leader for link in world.written(SchedulerCommitted)]


async def test_jobs_that_are_queued_start_on_workers_that_only_the_replica_hears(
    world: MemorySchedulers, way: Cut, leader: Replica
) -> None:
    names = await world.submit_many(3)
    await world.settle(leader)

    way.is_cut = True
    overheard(leader, slots=2)
    await pass_s(world, 1, leader)
    before = world.dispatched()
    await world.finish(names[0])
    await pass_s(world, 40, leader)  # its lead has run out long ago
    overheard(leader, slots=2)
    await pass_s(world, 1, leader)

    assert before == names[:2]
    assert world.dispatched() == names


async def test_limits_hold_though_the_view_is_behind(world: MemorySchedulers, way: Cut, leader: Replica) -> None:
    for number in range(6):
        await world.submit(f"job-{number}", user="me", project=f"p-{number}")
    await world.settle(leader)

    way.is_cut = True
    for _ in range(5):
        overheard(leader, slots=8)
        await pass_s(world, 5, leader)

    assert len(world.dispatched()) == world.policy.tier_limits((await world.job("job-0")).submission.tier).jobs_per_user


async def test_a_job_that_names_a_group_waits_and_holds_nobody_up(
    world: MemorySchedulers, way: Cut, leader: Replica
) -> None:
    await world.submit("named", groups=GROUP)
    plain = await world.submit_many(2)
    await world.settle(leader)

    way.is_cut = True
    overheard(leader)
    await pass_s(world, 3, leader)
    without = world.dispatched()
    way.is_cut = False
    await world.settle(leader)
    await pass_s(world, 2, leader)

    assert without == plain
    assert world.dispatched() == [*plain, "named"]


async def test_a_batch_of_jobs_that_name_groups_holds_nobody_behind_it_up(
    world: MemorySchedulers, way: Cut, leader: Replica
) -> None:
    for number in range(BATCH_MAX):
        user, group = f"u{number}", Group(name=f"group:u{number}:p:db", limit=1)
        await world.submit(f"named-{number}", user=user, project="p", groups=(group,))
    await world.submit("plain", user="other", project="q", priority=Priority.LOW)
    await world.settle(leader)

    way.is_cut = True
    overheard(leader, slots=2 * BATCH_MAX)
    await pass_s(world, 1, leader)

    assert world.dispatched() == ["plain"]


async def test_a_job_that_waits_for_a_provider_starts_when_its_pause_is_over(
    world: MemorySchedulers, way: Cut, leader: Replica
) -> None:
    await world.submit("job-1")
    await world.beat()
    await world.settle(leader)
    leader.handlers.note_pause(ShutProvider(provider="ollama", for_ms=10 * SECOND))
    await world.write("job-1", "started")
    await world.write("job-1", "given_back:provider", provider="ollama")
    way.is_cut = True

    await pass_s(world, 5, leader)
    before = world.dispatched()
    await pass_s(world, 10, leader)

    assert before == ["job-1"]
    assert world.dispatched() == ["job-1", "job-1"]


async def test_what_was_started_meanwhile_is_kept_when_the_store_is_back(
    world: MemorySchedulers, way: Cut, leader: Replica
) -> None:
    await world.submit("job-1")
    await world.settle(leader)
    way.is_cut = True
    overheard(leader)
    await pass_s(world, 20, leader)
    await world.write("job-1", "started")
    await pass_s(world, 20, leader)

    heard = await leader.handlers.heartbeat(Beat(worker="worker-1", pool="default", slots=8, holders=("job-1:1",)))
    way.is_cut = False
    await world.pass_ms(20 * SECOND, leader)

    assert heard.kept == ("job-1:1",)
    assert (await world.job("job-1")).status is Status.STARTING
    assert await world.view_is_the_log()


async def test_a_replica_that_did_not_lead_last_starts_nothing(world: MemorySchedulers, leader: Replica) -> None:
    way = Cut(world)
    other = world.replica("b", **way.adapters)
    await world.settle(leader, other)
    await world.submit_many(2)
    way.is_cut = True
    overheard(other)

    await pass_s(world, 30, other)

    assert world.dispatched() == []


async def test_one_that_is_cut_off_alone_stops_at_the_first_link_of_who_leads(
    world: MemorySchedulers, way: Cut, leader: Replica
) -> None:
    other = world.replica("b")
    await world.settle(leader, other)
    await world.submit_many(30)
    await world.settle(leader, other)
    way.is_cut = True
    overheard(leader, slots=1)
    await pass_s(world, 8, leader)
    await pass_s(world, 8, other)
    alone = leaders(world)

    await world.beat(slots=20, by=other)
    await pass_s(world, 1, other)
    await pass_s(world, 1, leader)
    await world.finish("job-00")
    for _ in range(3):
        await pass_s(world, 1, leader)

    assert alone == ["a"]
    assert leaders(world) == ["a", "b", "b"]
    assert not leader.leader.goes_on


async def test_two_who_start_jobs_at_once_are_one_by_the_log(world: MemorySchedulers) -> None:
    """One leads by the store, the other is cut off from it: both have planned for the same slots."""

    async def the_other_one_starts_jobs() -> None:
        for _ in range(3):
            await look(other)

    way = Cut(world)
    log = Interrupted(world, Once(the_other_one_starts_jobs, after=1))
    leader, other = world.replica("a", log=log, **way.adapters), world.replica("b")
    await world.settle(leader, other)
    await world.begun(leader)
    names = await world.submit_many(6)
    await world.settle(leader, other)
    way.is_cut = True
    await pass_s(world, 8, leader, other)
    assert (leader.leader.goes_on, other.leader.leads) == (True, True)

    for each in (leader, other):
        overheard(each, slots=2)
    for _ in range(3):
        await look(leader)

    assert [type(outcome) for outcome in log.outcomes] == [Appended, Conflicted]
    assert leaders(world) == ["a", "b", "b"]
    assert world.dispatched() == names[:2]
    assert not leader.leader.goes_on


async def test_two_who_never_rest_start_each_job_once_and_in_order(
    world: MemorySchedulers, way: Cut, leader: Replica
) -> None:
    """Whoever wins: the audit of the log looks for a limit that was broken."""
    other = world.replica("b")
    await world.settle(leader, other)
    names = await world.submit_many(60)
    await world.settle(leader, other)
    way.is_cut = True
    await pass_s(world, 8, leader, other)

    await world.beat(slots=16, by=other)
    for number in range(60):
        await asyncio.gather(look(leader), look(other))
        if names[number] in world.dispatched():
            await world.finish(names[number])

    assert world.dispatched() == names


async def test_one_that_was_stopped_and_wakes_does_not_take_silence_for_its_lead(
    world: MemorySchedulers, way: Cut, leader: Replica
) -> None:
    """Its lead is over by its own clock, and it has not asked anybody since."""
    await world.submit("job-1")
    overheard(leader)
    await world.clock.advance_ms(20 * SECOND)
    way.is_cut = True

    goes_on = leader.leader.goes_on
    await world.clock.advance_ms(SECOND)

    assert not goes_on
    assert not leader.leader.leads


async def test_a_slot_that_a_lease_holds_is_not_started_into_when_the_store_is_back(
    world: MemorySchedulers, way: Cut, leader: Replica
) -> None:
    await leader.handlers.acquire(AcquireLease(lease="held", groups=(GROUP[0].name,)))
    await world.submit("named", groups=GROUP)
    await world.settle(leader)
    way.is_cut = True
    overheard(leader)
    await pass_s(world, 3, leader)
    way.is_cut = False

    await world.beat(by=leader)
    await world.settle(leader)

    assert world.dispatched() == []


async def test_who_took_a_place_too_many_of_a_day_is_not_started_meanwhile(
    world: MemorySchedulers, way: Cut, leader: Replica
) -> None:
    wanted = submission(tier=Tier.BOOTSTRAPPER)
    names = [f"job-{number}" for number in range(world.policy.tier_limits(wanted.tier).jobs_per_day + 1)]
    way.is_cut = True
    for place, name in enumerate(names, start=1):
        first = step(name, "queued", arrival=place, place=place << 16, quota_day=today(world.clock), submission=wanted)
        await world.append(None, first)
    for name in names:
        overheard(leader, slots=8)
        await pass_s(world, 1, leader)
        if name in world.dispatched():
            await world.finish(name)
    alone = world.dispatched()
    way.is_cut = False
    await pass_s(world, 3, leader)

    assert alone == names[:-1]
    assert (await world.job(names[-1])).status is Status.SCHEDULED


async def test_one_that_fell_behind_the_log_for_a_moment_starts_jobs_again(
    world: MemorySchedulers, way: Cut, leader: Replica
) -> None:
    names = await world.submit_many(2)
    await world.settle(leader)
    way.is_cut = True
    await pass_s(world, 1, leader)

    leader.inbox.expect(world.server.last_seq + 1)
    await world.clock.advance_ms(11 * SECOND)
    await look(leader)
    behind = leader.inbox.keeps_up
    names.append((await world.submit("later")).id)
    overheard(leader)
    await pass_s(world, 2, leader)

    assert not behind
    assert world.dispatched() == names


async def test_the_view_counts_with_todays_policy_when_it_is_back(
    world: MemorySchedulers, way: Cut, leader: Replica
) -> None:
    """Meanwhile a replica with another policy led, and let go without a word in the log."""
    limit = (await world.view.group("llm:global")).limit
    way.is_cut = True
    await pass_s(world, 1, leader)
    await world.view.configure({**defaults_of(world.policy), "llm:global": limit + 1})
    between = (await world.view.group("llm:global")).limit

    way.is_cut = False
    await pass_s(world, 1, leader)

    assert (await world.view.group("llm:global")).limit == limit != between
