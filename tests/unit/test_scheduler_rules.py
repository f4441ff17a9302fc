"""What the scheduler does with what follows from the log: phases, forced attempts, days put right, providers."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from headgate_contracts import Event, Job, Priority, Status, Tier
from headgate_contracts.commands import LeaseReply
from headgate_contracts.envelope import utc
from headgate_contracts.events import JobScheduled
from libs.capacity.answers import Deferred
from libs.policy import Policy
from libs.policy.daily_cap import EPOCH_DAY
from services.scheduler.replica import Replica
from tests.fixtures.callers import today
from tests.fixtures.lives import step, submission
from tests.fixtures.schedulers import MemorySchedulers, a_world

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
POLICY = Policy.model_validate(
    {
        "queue": {"cap": 6, "user_share": 6},
        "order": {"ageing_after_s": 1e6},
        "tiers": {"bootstrapper": {"jobs_per_day": 2, "jobs_per_user": 50, "jobs_per_project": 50}},
    }
)


@pytest.fixture
def policy() -> Policy:
    return POLICY


async def statuses(world: MemorySchedulers, *names: str) -> list[str]:
    return [(await world.job(name)).status.value for name in names]


# ── phases ────────────────────────────────────────────────────────────────────


async def test_a_phase_enters_the_queue_when_the_one_before_is_ready(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit_flow("flow", phases=3)
    await world.beat(slots=1)
    await world.settle(leader)
    await world.finish("flow-1")

    await world.settle(leader)

    assert world.dispatched() == ["flow-1", "flow-2"]
    assert (await world.job("flow-2")).quota_day is None
    assert await statuses(world, "flow-1", "flow-2", "flow-3") == ["ready", "starting", "waiting"]


@pytest.mark.parametrize(("end", "why"), [("failed", "failed"), ("cancelled", "was cancelled")])
async def test_all_later_phases_are_cancelled_when_one_ends_otherwise(
    world: MemorySchedulers, leader: Replica, end: str, why: str
) -> None:
    await world.submit_flow("flow", phases=3)
    await world.beat(slots=1)
    await world.settle(leader)
    await world.write("flow-1", "started", end)

    await world.settle(leader)

    assert await statuses(world, "flow-2", "flow-3") == ["cancelled", "cancelled"]
    last = world.records()[-1].event
    assert isinstance(last, Event)
    assert last.data.reason == f"phase 1 of the workflow {why}"  # type: ignore[union-attr]


async def test_a_phase_waits_for_room_and_has_the_next_free_place(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit_flow("flow", phases=2)
    await world.beat(slots=1)
    await world.settle(leader)
    for number in range(6):
        await world.submit(f"other-{number}", user=f"u{number}", project=f"p{number}", priority=Priority.LOW)
    await world.write("flow-1", "started", "scaffold", "code", "deps", "checks", "ready")
    await world.beat(slots=0)
    await world.settle(leader)
    waits = (await world.job("flow-2")).status
    refused = await world.view.reserve(world.request("late"))
    await world.write("other-5", "cancelled")

    await world.pass_ms(2 * SECOND, leader)

    assert (waits, type(refused).__name__) == (Status.WAITING, "Busy")
    assert (await world.job("flow-2")).status is Status.QUEUED


async def test_who_was_told_longest_ago_that_there_is_no_room_is_asked_first(
    world: MemorySchedulers, leader: Replica
) -> None:
    """More wait than are asked in one turn, and the one whom the view lets in next is not among the first."""
    await world.submit_flow("flow", phases=2, priority=Priority.URGENT)
    await world.beat(slots=1)
    await world.settle(leader)
    for number in range(6):
        await world.submit(f"other-{number}", user=f"u{number}", project=f"p{number}")
    await world.write("flow-1", "started", "scaffold", "code", "deps", "checks", "ready")
    await world.beat(slots=0)
    await world.settle(leader)
    for number in range(70):
        await world.schedule(f"late-{number:02}", in_ms=1000)
    await world.pass_ms(3 * SECOND, leader)

    for number in range(2):
        await world.write(f"other-{number}", "cancelled")
    await world.pass_ms(4 * SECOND, leader)

    assert await statuses(world, "flow-2", "late-00") == ["queued", "queued"]


async def test_the_first_in_line_is_asked_although_more_came_due_before_it_than_are_asked_in_one_turn(
    world: MemorySchedulers, leader: Replica
) -> None:
    await world.beat(slots=0)
    for number in range(6):
        await world.submit(f"other-{number}", user=f"u{number}", project=f"p{number}")
    await world.schedule("first", in_ms=0)
    await world.pass_ms(2 * SECOND, leader)
    for number in range(60):
        await world.schedule(f"late-{number:02}", in_ms=-10 * SECOND)
    await world.pass_ms(2 * SECOND, leader)

    await world.write("other-0", "cancelled")
    await world.pass_ms(3 * SECOND, leader)

    assert (await world.job("first")).status is Status.QUEUED


async def test_a_new_leader_finds_the_same_to_do(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit_flow("flow", phases=2)
    await world.beat(slots=1)
    await world.settle(leader)
    await world.finish("flow-1")
    world.lead.lose()

    second = await world.restarted("b")
    await world.settle(second)

    assert (await world.job("flow-2")).status is Status.STARTING


# ── forced ────────────────────────────────────────────────────────────────────


async def test_a_forced_attempt_is_given_back_and_another_has_its_slot_only_then(
    world: MemorySchedulers, leader: Replica
) -> None:
    await world.submit("first", user="u1", project="p1", tier=Tier.PARTNER)
    await world.submit("second", user="u2", project="p2", tier=Tier.PARTNER)
    await world.beat(slots=1)
    await world.settle(leader)
    await world.write("first", "started", "scaffold", "code")
    await world.set_limit("user:u1", 1)

    await world.force("user:u1", "first:1")
    await world.settle(leader)
    runs = await world.job("first")
    await world.beat(slots=1, stopped=("first:1",))
    await world.settle(leader)

    job = await world.job("first")
    assert (runs.status, runs.attempt) == (Status.CODE, 1)  # until its worker has ended it
    assert job.finished_stages == ("scaffold",)
    assert (job.attempt, job.lost) == (2, 0)  # it stood before the other, and runs again
    assert world.dispatched() == ["first", "first"]


@pytest.mark.parametrize("lease", ["job-1:1", "job-1-1-1"])
async def test_a_worker_is_told_at_once_that_its_attempt_was_forced_and_again_each_second(
    world: MemorySchedulers, leader: Replica, lease: str
) -> None:
    await running(world, leader)

    await world.force("pool:default", lease)
    await world.settle(leader)
    told = [*world.told.replies]
    await world.pass_ms(2 * SECOND, leader)

    forced = ("headgate.cmd.v1.main.granted.job-1-1", LeaseReply(lease="job-1-1", state="not_yours"))
    assert told == [forced]
    assert world.told.replies == [forced] * 3


async def test_a_forced_attempt_that_nobody_has_claimed_is_given_back_at_once(
    world: MemorySchedulers, leader: Replica
) -> None:
    await world.submit("job-1")
    await world.beat(slots=1)
    await world.settle(leader)

    await world.force("pool:default", "job-1:1")
    await world.settle(leader)

    assert (await world.job("job-1")).attempt == 2
    assert not world.told.replies


async def test_a_forced_attempt_whose_worker_is_gone_is_given_back_with_its_lease_and_not_as_lost(
    world: MemorySchedulers, leader: Replica
) -> None:
    await running(world, leader)

    await world.force("pool:default", "job-1:1")
    await world.pass_ms(40 * SECOND, leader)

    job = await world.job("job-1")
    assert (job.status, job.lost) == (Status.QUEUED, 0)


async def test_a_forced_attempt_whose_end_was_asked_for_is_cancelled(world: MemorySchedulers, leader: Replica) -> None:
    await running(world, leader)
    await world.write("job-1", "cancel_requested")

    await world.force("pool:default", "job-1:1")
    await world.pass_ms(40 * SECOND, leader)

    assert (await world.job("job-1")).status is Status.CANCELLED


async def running(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit("job-1")
    await world.beat(slots=1)
    await world.settle(leader)
    await world.write("job-1", "started")


async def test_a_lease_inside_a_job_or_of_another_attempt_forces_nobody_back(
    world: MemorySchedulers, leader: Replica
) -> None:
    await world.submit("job-1")
    await world.beat(slots=1)
    await world.settle(leader)

    await world.force("user:user-1", "job-1:2")
    await world.force("llm:ollama", "lease-1")
    await world.settle(leader)

    assert (await world.job("job-1")).status is Status.STARTING


# ── days ──────────────────────────────────────────────────────────────────────


async def slip(world: MemorySchedulers, name: str, *, days_ago: int = 0) -> Job:
    """A job whose reservation had lapsed when its event was written."""
    wanted = submission(tier=Tier.BOOTSTRAPPER)
    day = today(world.clock) - timedelta(days=days_ago)
    arrival = 1000 + len(world.records())
    first = step(name, "queued", arrival=arrival, place=arrival << 16, quota_day=day, submission=wanted)
    return await world.append(None, first)


async def test_a_job_over_the_daily_cap_waits_for_the_first_free_day(world: MemorySchedulers, leader: Replica) -> None:
    names = [f"job-{number}" for number in range(5)]
    for name in names:
        await slip(world, name)
    await world.beat(slots=0)

    await world.settle(leader)

    days = [((await world.job(name)).quota_day or EPOCH_DAY) - today(world.clock) for name in names]
    assert await statuses(world, *names) == ["queued"] * 2 + ["scheduled"] * 3
    assert [day.days for day in days] == [0, 0, 1, 1, 2]
    for data in world.written(JobScheduled):
        assert data.quota_cap == 2
        assert data.scheduled_for - utc(world.clock.now_ms()) > timedelta(hours=1)
    assert await world.view_is_the_log()


async def test_what_is_put_right_never_starts_today(world: MemorySchedulers, leader: Replica) -> None:
    """Its day was yesterday, just before midnight: today has places, and they are for those who ask today."""
    for number in range(3):
        await slip(world, f"job-{number}", days_ago=1)

    await world.settle(leader)

    assert (await world.job("job-2")).quota_day == today(world.clock) + timedelta(days=1)


async def test_what_slipped_is_put_right_before_anything_starts(world: MemorySchedulers, leader: Replica) -> None:
    for number in range(3):
        await slip(world, f"job-{number}")
    await world.beat(slots=8)

    await world.settle(leader)

    assert world.dispatched() == ["job-0", "job-1"]
    assert (await world.job("job-2")).status is Status.SCHEDULED


async def test_a_day_that_admission_has_given_meanwhile_is_not_given_again(
    world: MemorySchedulers, leader: Replica
) -> None:
    for number in range(2):
        await slip(world, f"job-{number}")
    await world.settle(leader)
    taken = [f"other-{number}" for number in range(2)]
    for name in taken:
        await world.submit(name, takes_day=True, tier=Tier.BOOTSTRAPPER)
    await slip(world, "job-2")

    await world.settle(leader)

    assert (await world.job("job-2")).quota_day == today(world.clock) + timedelta(days=2)


async def test_where_no_day_is_left_what_was_accepted_stays(world: MemorySchedulers, leader: Replica) -> None:
    for number in range(2):
        await slip(world, f"job-{number}")
    await world.settle(leader)
    for number in range(2 * POLICY.queue.horizon_days):
        wanted = world.request(f"far-{number}", wanted=submission(tier=Tier.BOOTSTRAPPER), takes_day=True)
        assert isinstance(await world.view.reserve(wanted), Deferred)
    job = await slip(world, "job-2")
    await world.settle(leader)
    accepted = (await world.job("job-2")).status

    await world.write("job-0", "cancelled")  # or the log would not be sound

    assert (job.status, accepted) == (Status.QUEUED, Status.QUEUED)


async def test_those_who_can_not_be_put_right_hold_nothing_else_up() -> None:
    """More of them than are asked about in one turn. The log is not audited: it is over the cap, and stays so."""
    async with a_world(policy=POLICY) as world:
        leader = await world.leading()
        await world.submit("running", user="u-1", project="p-1")
        await world.beat(slots=1)
        await world.settle(leader)
        await world.write("running", "started")
        await world.schedule("later", in_ms=20 * SECOND)
        for number in range(2 + 2 * POLICY.queue.horizon_days):
            wanted = world.request(f"far-{number}", wanted=submission(tier=Tier.BOOTSTRAPPER), takes_day=True)
            await world.view.reserve(replace(wanted, lapse_ms=DAY, cap=1000, user_share=1000))
        for number in range(62):
            await slip(world, f"job-{number}")

        await world.pass_ms(60 * SECOND, leader)

        assert (await world.job("running")).status is Status.QUEUED  # its worker fell silent: it was given back
        for number in range(60):
            await world.write(f"job-{number}", "cancelled")
        await world.pass_ms(5 * SECOND, leader)
        assert (await world.job("later")).status is Status.QUEUED


async def test_put_right_also_when_the_view_is_lost_in_between(world: MemorySchedulers, leader: Replica) -> None:
    for number in range(3):
        await slip(world, f"job-{number}")
    await world.settle(leader)
    world.store.lose()

    await world.pass_ms(2 * SECOND, leader)
    await world.pass_ms(DAY + HOUR, leader, every_ms=HOUR)

    assert (await world.job("job-2")).status is Status.QUEUED
    assert await world.view.day_used("user-1", (today(world.clock) - EPOCH_DAY).days) == 1


# ── providers ─────────────────────────────────────────────────────────────────


async def test_a_job_given_back_for_a_provider_starts_when_that_opens(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit("job-1")
    await world.beat(slots=1)
    await world.settle(leader)
    await world.view.shut("llm:ollama", world.clock.now_ms() + 5 * MINUTE)
    await world.write("job-1", "started", "scaffold")
    await world.write("job-1", "given_back:provider", provider="ollama")
    await world.beat(slots=1)
    await world.settle(leader)
    shut = world.dispatched()

    await world.pass_ms(5 * MINUTE, leader, every_ms=10 * SECOND)
    await world.beat(slots=1)
    await world.settle(leader)

    assert (shut, world.dispatched()) == (["job-1"], ["job-1", "job-1"])
