"""The scheduler's turns on log and view in memory: order, limits, timers, and what operators do meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from headgate_contracts import Event, Job, Priority, Status, Tier
from headgate_contracts.events import (
    Group,
    JobDispatched,
    JobFailed,
    JobGivenBack,
    JobReprioritized,
    SchedulerCommitted,
)
from libs.capacity.answers import DueTimer
from libs.policy import Policy
from libs.runtime.lifecycle import Health
from services.scheduler import planning
from services.scheduler.domain import Decision
from services.scheduler.replica import Replica
from tests.fixtures.observing import observe
from tests.fixtures.schedulers import MemorySchedulers, a_world

SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000


# ── order and limits ──────────────────────────────────────────────────────────


async def test_a_queued_job_is_started_where_a_worker_has_a_slot(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit("job-1")
    await world.beat(slots=1)

    await world.settle(leader)

    assert (await world.job("job-1")).status is Status.STARTING
    assert await world.view_is_the_log()


async def test_nothing_starts_without_a_worker_of_its_pool(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit("job-1", pool="gpu")
    await world.beat(slots=4, pool="default")

    await world.settle(leader)

    assert world.dispatched() == []


async def test_jobs_start_in_the_order_of_the_queue_no_more_than_fit(world: MemorySchedulers, leader: Replica) -> None:
    names = await world.submit_many(6, tier=Tier.BOOTSTRAPPER)
    await world.submit("urgent", user="vip", project="vip", tier=Tier.CTO_SCALE, priority=Priority.URGENT)
    await world.beat(slots=4)

    await world.settle(leader)

    assert world.dispatched() == ["urgent", *names[:3]]


async def test_a_full_user_holds_nobody_else_up(world: MemorySchedulers, leader: Replica) -> None:
    for number in range(4):
        await world.submit(f"mine-{number}", user="me", project=f"p-{number}", tier=Tier.BOOTSTRAPPER)
    await world.submit("yours", user="you", project="other", tier=Tier.BOOTSTRAPPER)
    await world.beat(slots=8)

    await world.settle(leader)

    assert world.dispatched() == ["mine-0", "mine-1", "yours"]


async def test_a_slot_that_comes_free_is_taken_by_the_next(world: MemorySchedulers, leader: Replica) -> None:
    first, second = await world.submit_many(2)
    await world.beat(slots=1)
    await world.settle(leader)

    await world.finish(first)
    await world.settle(leader)

    assert world.dispatched() == [first, second]


async def test_twenty_jobs_at_most_stand_in_a_batch_and_their_order_is_kept(
    world: MemorySchedulers, leader: Replica
) -> None:
    names = await world.submit_many(50, tier=Tier.BOOTSTRAPPER)
    await world.beat(slots=64)

    await world.settle(leader)

    assert world.dispatched() == names
    assert [len(link.jobs) for link in world.written(SchedulerCommitted)] == [0, 20, 20, 10]


async def test_each_link_names_the_limits_and_slots_it_counted_with(world: MemorySchedulers, leader: Replica) -> None:
    group = Group(name="group:shop:db", limit=7)
    for name in ("job-1", "job-2"):
        await world.submit(name, user="me", project="shop", tier=Tier.PARTNER, groups=(group,))
    await world.beat(slots=4)

    await world.settle(leader)

    _, link = world.written(SchedulerCommitted)
    assert link.limits == {"user:me": 3, "project:shop": 3, "group:shop:db": 7}
    assert link.slots == {"default": 4}
    assert link.leader == "a"


async def test_a_raised_limit_starts_who_waited_for_it(world: MemorySchedulers, leader: Replica) -> None:
    for number in range(4):
        await world.submit(f"job-{number}", user="me", project=f"p-{number}", tier=Tier.BOOTSTRAPPER)
    await world.beat(slots=8)
    await world.settle(leader)

    await world.set_limit("user:me", 3)
    await world.settle(leader)

    assert world.dispatched() == ["job-0", "job-1", "job-2"]


async def test_a_limit_below_what_runs_stops_nobody_and_starts_nobody(world: MemorySchedulers, leader: Replica) -> None:
    for number in range(4):
        await world.submit(f"job-{number}", user="me", project=f"p-{number}", tier=Tier.BOOTSTRAPPER)
    await world.beat(slots=8)
    await world.settle(leader)

    await world.set_limit("user:me", 1)
    await world.finish("job-0")
    await world.settle(leader)

    assert world.dispatched() == ["job-0", "job-1"]


async def test_a_paused_scope_starts_nothing_until_it_is_resumed(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit("job-1", user="me")
    await world.submit("job-2", user="you", project="yours")
    await world.pause("user:me")
    await world.beat(slots=8)
    await world.settle(leader)
    assert world.dispatched() == ["job-2"]

    await world.resume("user:me")
    await world.settle(leader)

    assert world.dispatched() == ["job-2", "job-1"]


async def test_a_job_about_which_nothing_can_be_written_holds_nobody_up(
    world: MemorySchedulers, leader: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = await world.submit_many(30)
    broken, start = set(names[:25]), planning.start

    def refusing(job: Job, **given: Any) -> Decision:
        if job.id in broken:
            raise ValueError("no such event")
        return start(job, **given)

    monkeypatch.setattr(planning, "start", refusing)
    await world.beat(slots=64)

    await world.pass_ms(3 * SECOND, leader)

    assert world.dispatched() == names[25:]


# ── workers that fall silent ──────────────────────────────────────────────────


async def test_a_lost_job_returns_to_its_old_place_and_starts_again(world: MemorySchedulers, leader: Replica) -> None:
    await world.pass_ms(60 * SECOND, leader)  # an old process knows that it was there all the time
    names = await world.submit_many(3)
    await world.beat("doomed", slots=1)
    await world.settle(leader)
    await world.write(names[0], "started", "scaffold", "code")

    await world.pass_ms(31 * SECOND, leader)
    await world.beat("other", slots=1)
    await world.settle(leader)

    job = await world.job(names[0])
    assert (job.status, job.attempt, job.lost) == (Status.STARTING, 2, 1)
    assert job.finished_stages == ("scaffold",)
    assert world.dispatched() == [names[0], names[0]]


async def test_who_is_heard_keeps_the_job(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit("job-1")
    await world.beat(slots=1)
    await world.settle(leader)
    await world.write("job-1", "started")

    for _ in range(12):
        await world.pass_ms(10 * SECOND, leader)
        reply = await world.beat(slots=1, holders=("job-1:1",))
        assert reply.kept == ("job-1:1",)

    assert (await world.job("job-1")).attempt == 1


async def test_a_job_whose_end_was_asked_for_ends_when_its_worker_is_gone(
    world: MemorySchedulers, leader: Replica
) -> None:
    await world.pass_ms(60 * SECOND, leader)
    await world.submit("job-1")
    await world.beat(slots=1)
    await world.settle(leader)
    await world.write("job-1", "started", "cancel_requested")

    reply = await world.beat(slots=1, holders=("job-1:1",))
    await world.pass_ms(32 * SECOND, leader)

    assert reply.kept == ("job-1:1",)  # the view has not folded the request yet

    assert (await world.job("job-1")).status is Status.CANCELLED


async def test_a_job_that_loses_its_worker_too_often_fails_by_the_systems_fault(
    world: MemorySchedulers, leader: Replica
) -> None:
    await world.pass_ms(60 * SECOND, leader)
    await world.submit("job-1")

    for _ in range(4):
        await world.beat(slots=1)
        await world.settle(leader)
        await world.write("job-1", "started")
        await world.pass_ms(32 * SECOND, leader)

    job = await world.job("job-1")
    assert job.status is Status.FAILED
    [failed] = world.written(JobFailed)
    assert failed.fault == "system"
    assert job.failure is not None
    assert job.failure.debug_id == failed.debug_id
    assert len(failed.debug_id) == 32


async def test_an_attempt_that_nobody_claims_is_given_back_and_does_not_count(
    world: MemorySchedulers, leader: Replica
) -> None:
    await world.pass_ms(60 * SECOND, leader)
    await world.submit("job-1")
    await world.beat(slots=1)
    await world.settle(leader)

    await world.pass_ms(32 * SECOND, leader)

    job = await world.job("job-1")
    assert (job.status, job.lost) == (Status.QUEUED, 0)


async def test_a_new_process_judges_no_lease_before_it_could_hear_the_workers(world: MemorySchedulers) -> None:
    first = await world.leading()
    await world.submit("job-1")
    await world.beat(slots=1)
    await world.settle(first)
    await world.write("job-1", "started")
    await world.clock.advance_ms(10 * MINUTE)  # no scheduler ran: nobody could hear anybody

    second = world.replica("b")
    await world.settle(second)
    await world.pass_ms(4 * SECOND, second)
    reply = await world.beat(slots=1, holders=("job-1:1",), by=second)
    await world.pass_ms(25 * SECOND, second)

    assert reply.kept == ("job-1:1",)
    assert (await world.job("job-1")).status is Status.STARTING


# ── other timers ──────────────────────────────────────────────────────────────


async def test_a_run_that_takes_too_long_fails(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit("job-1", run_timeout_s=20)
    await world.beat(slots=1)
    await world.settle(leader)
    await world.write("job-1", "started")

    await world.pass_ms(15 * SECOND, leader)
    await world.beat(slots=1, holders=("job-1:1",))
    assert (await world.job("job-1")).status is Status.STARTING
    await world.pass_ms(7 * SECOND, leader)
    assert (await world.job("job-1")).status is Status.STARTING  # its worker is to end it
    await world.pass_ms(5 * SECOND, leader)

    assert (await world.job("job-1")).status is Status.FAILED
    assert [failed.fault for failed in world.written(JobFailed)] == ["timeout"]
    reply = await world.beat(slots=1, holders=("job-1:1",))
    assert reply.not_yours == ("job-1:1",)


async def test_a_job_that_waits_longer_than_it_wants_to_fails(world: MemorySchedulers, leader: Replica) -> None:
    await waiting(world, leader, 2 * SECOND)
    await world.submit("job-1", queue_ttl_s=60)

    await waiting(world, leader, 59 * SECOND)
    assert (await world.job("job-1")).status is Status.QUEUED
    await waiting(world, leader, 3 * SECOND)

    assert (await world.job("job-1")).status is Status.FAILED
    assert [failed.fault for failed in world.written(JobFailed)] == ["timeout"]


async def waiting(world: MemorySchedulers, leader: Replica, duration_ms: int) -> None:
    """The pool has a worker that takes nothing, and is heard."""
    for _ in range(duration_ms // SECOND):
        await world.beat("idle", slots=0)
        await world.pass_ms(SECOND, leader)


@pytest.mark.parametrize("away", ["paused", "no worker", "all"])
async def test_time_in_which_nobody_could_serve_a_job_does_not_count(
    world: MemorySchedulers, leader: Replica, away: str
) -> None:
    await waiting(world, leader, 2 * SECOND)
    await world.submit("job-1", queue_ttl_s=60)
    await waiting(world, leader, 30 * SECOND)

    if away == "paused":
        await world.pause("user:user-1")
        await waiting(world, leader, 100 * SECOND)
        await world.resume("user:user-1")
    elif away == "no worker":
        await world.pass_ms(100 * SECOND, leader)
    else:
        await world.clock.advance_ms(100 * SECOND)  # no turn came to an end
    await waiting(world, leader, 25 * SECOND)
    assert (await world.job("job-1")).status is Status.QUEUED
    await waiting(world, leader, 45 * SECOND)

    assert (await world.job("job-1")).status is Status.FAILED


async def test_a_new_leader_gives_each_job_its_whole_time_again(world: MemorySchedulers, leader: Replica) -> None:
    await waiting(world, leader, 2 * SECOND)
    await world.submit("job-1", queue_ttl_s=60)
    await waiting(world, leader, 50 * SECOND)

    await leader.leader.resign()
    other = await world.leading("b")
    await waiting(world, other, 58 * SECOND)
    assert (await world.job("job-1")).status is Status.QUEUED
    await waiting(world, other, 10 * SECOND)

    assert (await world.job("job-1")).status is Status.FAILED


async def test_a_question_is_repeated_twice_and_then_given_up(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit("job-1")
    await world.beat(slots=1)
    await world.settle(leader)
    now = world.clock.now_ms()
    await world.write("job-1", "started", "scaffold", "code", "deps", "checks")
    expires_at = (now + 24 * HOUR) / 1000
    await world.write("job-1", "awaiting_confirmation", expires_at=expires_at)
    await world.settle(leader)

    seen: list[tuple[int, str]] = []
    for _ in range(25):
        await world.pass_ms(HOUR, leader, every_ms=HOUR)
        job = await world.job("job-1")
        seen.append((job.reminders, job.status.value))

    assert [reminders for reminders, _ in seen] == [0] * 11 + [1] * 11 + [2] * 3
    assert [status for _, status in seen[-3:]] == ["awaiting_confirmation", "failed", "failed"]


async def test_waiting_lifts_a_job_class_by_class(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit("job-1", priority=Priority.BACKGROUND, tier=Tier.BOOTSTRAPPER)
    place = (await world.job("job-1")).standing

    classes: list[str] = []
    for _ in range(5):
        await world.pass_ms(HOUR + SECOND, leader, every_ms=HOUR + SECOND)
        classes.append((await world.job("job-1")).priority.value)

    standing = (await world.job("job-1")).standing
    assert classes == ["low", "normal", "high", "high", "high"]
    assert standing
    assert place
    assert standing.place == place.place
    datas = [record.event.data for record in world.records() if isinstance(record.event, Event)]
    assert {data.reason.value for data in datas if isinstance(data, JobReprioritized)} == {"aged"}


async def test_a_scheduled_job_enters_the_queue_at_its_time(world: MemorySchedulers, leader: Replica) -> None:
    await world.schedule("job-1", in_ms=10 * SECOND)
    await world.settle(leader)

    await world.pass_ms(9 * SECOND, leader)
    assert (await world.job("job-1")).status is Status.SCHEDULED
    await world.pass_ms(2 * SECOND, leader)

    job = await world.job("job-1")
    assert job.status is Status.QUEUED
    assert job.standing is not None
    assert job.standing.position_original == 1


async def test_what_ended_long_ago_leaves_with_the_next_record(world: MemorySchedulers, leader: Replica) -> None:
    """Also where the leader turns rarely: it is the log's clock that counts, so that every fold knows the same jobs."""
    await world.submit("job-1")
    await world.write("job-1", "cancelled")
    await world.settle(leader)
    await world.pass_ms(24 * HOUR + MINUTE, leader, every_ms=12 * HOUR + MINUTE)
    assert await world.view.job("job-1")

    await world.submit("job-2")
    await world.settle(leader)

    assert await world.view.job("job-1") is None
    assert [*leader.ledger.jobs] == ["job-2"]
    assert await world.view_is_the_log()


async def test_a_reservation_that_nothing_became_of_lapses(world: MemorySchedulers, leader: Replica) -> None:
    await world.view.reserve(world.request("job-1"))
    assert len(await world.view.queue()) == 1

    await world.pass_ms(62 * SECOND, leader)

    assert await world.view.queue() == ()


async def test_a_crowd_of_timers_is_worked_off_at_once(world: MemorySchedulers, leader: Replica) -> None:
    await world.pass_ms(20 * SECOND, leader)
    names = await world.submit_many(90, queue_ttl_s=30)
    await world.beat(slots=30)
    await world.beat("idle", slots=0)
    await world.settle(leader)
    for name in names[:30]:
        await world.write(name, "started")
    await world.settle(leader)

    for _ in range(8):
        await world.pass_ms(4 * SECOND, leader, every_ms=4 * SECOND)
        await world.beat("idle", slots=0)
    await world.settle(leader)

    seen = [record.event.data for record in world.records() if isinstance(record.event, Event)]
    ends = [type(data).__name__ for data in seen if isinstance(data, JobGivenBack | JobFailed)]
    assert ends == ["JobGivenBack"] * 30 + ["JobFailed"] * 60
    assert max(len(link.jobs) for link in world.written(SchedulerCommitted)) == 20


LATE_MS = 10**13  # a timer of then is later than what any job has


async def test_a_lost_attempt_is_decided_before_all_that_can_wait(world: MemorySchedulers, leader: Replica) -> None:
    names = await world.submit_many(41, tier=Tier.BOOTSTRAPPER)
    await world.beat(slots=1)
    await world.settle(leader)
    due = [
        *(DueTimer("age", name, LATE_MS + number) for number, name in enumerate(names[1:])),
        DueTimer("lease", names[0], 99, 1),
    ]

    proposal = await leader.cycle._planner.propose(due, leader="a", now=leader.leader.now, excused=0)

    assert proposal.batch is not None
    assert proposal.batch.link.jobs == tuple(names[:20])
    assert proposal.overdue


# ── a full queue ──────────────────────────────────────────────────────────────


@pytest.fixture
def small_queue() -> Policy:
    return Policy.model_validate({"queue": {"cap": 3}})


async def test_released_jobs_wait_for_room_in_the_order_of_their_time(small_queue: Policy) -> None:
    async with a_world(policy=small_queue) as world:
        a = await world.leading()
        waiting = await world.submit_many(3)
        for number in (2, 1, 3):
            await world.schedule(f"later-{number}", in_ms=number * SECOND, user=f"l-{number}")
        await world.pass_ms(5 * SECOND, a)
        assert {(await world.job(f"later-{number}")).status for number in (1, 2, 3)} == {Status.SCHEDULED}

        await world.write(waiting[0], "cancelled")
        await world.pass_ms(SECOND, a)
        await world.write(waiting[1], "cancelled")
        await world.pass_ms(SECOND, a)

        found = [(await world.job(f"later-{number}")).status for number in (1, 2, 3)]
        assert found == [Status.QUEUED, Status.QUEUED, Status.SCHEDULED]


async def test_those_who_wait_for_room_do_not_hide_a_lost_worker(small_queue: Policy) -> None:
    async with a_world(policy=small_queue) as world:
        a = await world.leading()
        await world.submit("runs")
        await world.beat(slots=1)
        await world.settle(a)
        await world.write("runs", "started")
        await world.submit_many(3)
        for number in range(300):
            await world.schedule(f"later-{number}", in_ms=number, user=f"l-{number}")
        await world.settle(a)

        await world.pass_ms(50 * SECOND, a, every_ms=4 * SECOND)

        datas = [record.event.data for record in world.records() if isinstance(record.event, Event)]
        assert any(isinstance(data, JobGivenBack) for data in datas)


# ── starting and stopping ─────────────────────────────────────────────────────


async def test_a_start_goes_on_from_the_newest_snapshot(world: MemorySchedulers, leader: Replica) -> None:
    names = await world.submit_many(3)
    await world.beat(slots=1)
    await world.settle(leader)
    await leader.keeper.keep()
    await world.finish(names[0])
    before = world.server.last_seq

    again = await world.restarted("b")
    assert 0 < again.ledger.applied < before
    await leader.leader.resign()
    await world.settle(again)

    assert world.dispatched() == names[:2]
    assert await world.view_is_the_log()


async def test_a_start_joins_the_view_where_it_is(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit_many(3)
    await world.settle(leader)
    generation = (await observe(world.view)).mark.generation

    await leader.leader.resign()
    again = world.replica("b")
    await world.settle(again)

    assert (await observe(world.view)).mark.generation == generation
    assert await world.view_is_the_log()


async def test_a_leader_that_stops_lets_the_other_lead_at_once(world: MemorySchedulers, leader: Replica) -> None:
    standby = world.replica("b")
    await world.settle(leader, standby)
    assert (leader.leader.leads, standby.leader.leads) == (True, False)

    await leader.leader.resign()
    await world.settle(standby)

    assert standby.leader.leads
    assert not leader.leader.leads


async def test_who_led_before_counts_on_nothing_that_it_saw_then(world: MemorySchedulers, leader: Replica) -> None:
    await world.beat(slots=1)
    await world.pass_ms(SECOND, leader)
    planner = leader.cycle._planner
    seen = dict(planner.absences.seen)
    planner.border._pending.add("job-1:1")
    standby = world.replica("b")

    await leader.leader.resign()
    await world.settle(standby)
    await leader.cycle.turn()

    assert (set(seen), planner.absences.seen, planner.border._pending) == ({"default"}, {}, set())


async def test_events_of_one_batch_follow_their_link(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit_many(3)
    await world.beat(slots=2)
    await world.settle(leader)

    kinds = [type(record.event.data) for record in world.records() if isinstance(record.event, Event)]

    at = kinds.index(SchedulerCommitted)
    assert kinds[at + 1 : at + 4] == [SchedulerCommitted, JobDispatched, JobDispatched]


async def test_a_policy_that_cannot_be_in_force_here_is_noted_until_another_one_holds(world: MemorySchedulers) -> None:
    health = Health()
    replica = world.replica("a", health=health)
    await world.settle(replica)
    await world.reload(Policy.model_validate({"queue": {"horizon_days": 85}, "retention": {"events_days": 200}}))
    await world.settle(replica)
    noted = health.notes

    await world.reload(Policy.model_validate({"queue": {"cap": 7}}))
    await world.settle(replica)

    assert [note.partition(" cannot")[0] for note in noted] == ["policy: that of record 1"]
    assert (health.notes, replica.ledger.policy.queue.cap) == ((), 7)
