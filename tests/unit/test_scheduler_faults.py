"""Every way in which a commit can go, two schedulers at once, servers that are away: what the log says afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from headgate_contracts import Event, Priority, Status, Tier
from headgate_contracts.events import JobGivenBack, SchedulerCommitted
from headgate_contracts.vocabulary import GivenBackReason
from libs.capacity.answers import Swept
from libs.capacity.errors import ViewUnavailable
from libs.capacity.lead import Led, MemoryLead
from libs.capacity.ledger import Ledger
from libs.capacity.memory.view import MemoryView
from libs.eventlog.errors import LogUnavailable, OutcomeUnknown, WentBack
from libs.eventlog.expectation import Message
from libs.eventlog.memory import Fate, MemoryLog
from libs.eventlog.values import Appended, Conflicted
from tests.fixtures.audit import audit
from tests.fixtures.cuts import Interrupted, Once
from tests.fixtures.logs import HastyClock
from tests.fixtures.observing import observe
from tests.fixtures.schedulers import EPOCH, MemorySchedulers

SECOND = 1000


class SweptLate(MemoryView):
    """A view on whose sweeps something happens first."""

    before: Callable[[], Awaitable[None]] | None = None

    def __init__(self, world: MemorySchedulers) -> None:
        super().__init__(EPOCH, clock=world.clock.now_ms, store=world.store)

    async def sweep(self, *, now_ms: int | None = None) -> Swept:
        if self.before is not None:
            await self.before()
        return await super().sweep(now_ms=now_ms)


def leaders(world: MemorySchedulers) -> list[str]:
    return [link.leader for link in world.written(SchedulerCommitted)]


# ── two at once ───────────────────────────────────────────────────────────────


async def test_two_schedulers_that_lead_in_turn_start_each_job_once(world: MemorySchedulers) -> None:
    a, b = world.replica("a"), world.replica("b")
    await world.settle(a, b)
    names = await world.submit_many(12)
    await world.beat(slots=3)

    for number in range(12):
        leader, other = (a, b) if number % 2 else (b, a)
        await other.leader.resign()
        await world.settle(leader, other)
        for job_id in world.dispatched()[-3:]:
            if (await world.job(job_id)).status is Status.STARTING:
                await world.finish(job_id)

    assert world.dispatched() == names
    assert set(leaders(world)) == {"a", "b"}


async def test_two_schedulers_that_both_believe_to_lead_do_no_harm(world: MemorySchedulers) -> None:
    a = world.replica("a", lead=MemoryLead(world.clock.now_ms))
    b = world.replica("b", lead=MemoryLead(world.clock.now_ms))
    await world.settle(a, b)
    names = await world.submit_many(60)
    await world.beat(slots=64)

    for _ in range(100):
        await asyncio.gather(world.turn(a), world.turn(b))

    assert sorted(world.dispatched()) == names
    assert not audit(world.records(), policy=world.policy, drained=False).violations


async def test_a_leader_that_was_stopped_in_mid_commit_is_refused_and_steps_down(world: MemorySchedulers) -> None:
    async def stopped_for_20_s() -> None:
        await world.pass_ms(20 * SECOND, b)

    log = Interrupted(world, Once(stopped_for_20_s, after=1))
    a, b = world.replica("a", log=log), world.replica("b")
    await world.settle(a, b)
    await world.begun(a)
    names = await world.submit_many(3)
    await world.beat(slots=2)

    await a.leader.renew()
    await a.cycle.turn()

    assert [type(outcome) for outcome in log.outcomes] == [Appended, Conflicted]
    assert not a.leader.leads
    assert leaders(world) == ["a", "b", "b"]
    assert world.dispatched() == names[:2]


async def test_a_leader_that_was_stopped_and_goes_on_plans_nothing(world: MemorySchedulers) -> None:
    a, b = world.replica("a"), world.replica("b")
    await world.settle(a, b)
    await world.pass_ms(20 * SECOND, b)
    await world.submit("job-1")
    await world.beat(slots=2)

    await a.cycle.turn()

    assert not a.leader.leads
    assert world.dispatched() == []


async def test_a_view_that_a_slower_leader_made_anew_is_not_planned_by(world: MemorySchedulers) -> None:
    """It counts fewer who run than there are; the chain would not notice, as its last link is our own."""

    async def made_anew_by_the_slower_one() -> None:
        await world.view.begin(EPOCH, generation="slow", applied=behind.applied, standing=behind.standing())
        await world.view.seed(list(behind.seeds()), generation="slow", lease_ms=30_000)
        await world.view.open(generation="slow", quarantine_ms=0)
        await world.beat(slots=8)

    view = SweptLate(world)
    a = world.replica("a", view=view)
    await world.settle(a)
    await world.submit("first", user="me", project="held", tier=Tier.PARTNER, priority=Priority.HIGH)
    for number in range(3):
        await world.submit(f"job-{number}", user="me", project=f"p-{number}", tier=Tier.PARTNER)
    behind: Ledger = Ledger(world.policy)
    for record in world.records():
        behind.apply(record)
    await world.pause("project:held")
    await world.beat(slots=8)
    await world.settle(a)
    await world.resume("project:held")
    await world.settle(a)
    assert len(world.dispatched()) == 3

    view.before = Once(made_anew_by_the_slower_one)
    await world.settle(a)

    assert len(world.dispatched()) == 3


async def test_a_standby_leads_within_a_lease_and_goes_on_where_the_view_is(world: MemorySchedulers) -> None:
    a, b = world.replica("a"), world.replica("b")
    await world.settle(a, b)
    first, second = await world.submit_many(2)
    await world.beat(slots=1)
    await world.settle(a, b)
    generation = (await observe(world.view)).mark.generation

    await world.finish(first)
    await world.pass_ms(6 * SECOND, b)

    assert world.dispatched() == [first, second]
    assert leaders(world) == ["a", "b"]
    assert (await observe(world.view)).mark.generation == generation


# ── commits that are refused, lost or unknown ─────────────────────────────────


async def test_a_job_that_moves_on_in_mid_commit_keeps_the_others_from_nothing(world: MemorySchedulers) -> None:
    async def somebody_cancels() -> None:
        await world.write("job-01", "cancelled")

    log = Interrupted(world, Once(somebody_cancels, after=1))
    a = world.replica("a", log=log)
    await world.settle(a)
    await world.begun(a)
    await world.submit_many(4)
    await world.beat(slots=2)

    await world.settle(a)

    assert [type(outcome) for outcome in log.outcomes] == [Appended, Conflicted, Appended]
    assert world.dispatched() == ["job-00", "job-02"]
    assert "headgate_scheduler_conflicts_total 1.0" in world.metrics(a).splitlines()


async def test_a_view_that_is_lost_in_mid_commit_is_folded_again(world: MemorySchedulers) -> None:
    async def flushed() -> None:
        world.store.lose()
        world.lead.lose()

    a = world.replica("a", log=Interrupted(world, Once(flushed, after=1)))
    await world.settle(a)
    names = await world.submit_many(4)
    await world.beat(slots=2)

    await world.settle(a)
    await world.beat(slots=2)
    await world.settle(a)

    assert world.dispatched() == names[:2]
    assert await world.view_is_the_log()


class Fates:
    """What becomes of the first sends; the rest arrives."""

    def __init__(self, *fates: Fate) -> None:
        self.left = list(fates)

    def __call__(self, messages: Sequence[Message]) -> Fate:
        return self.left.pop(0) if self.left else Fate.ARRIVES


@pytest.mark.parametrize("fate", [Fate.UNHEARD, Fate.LOST, Fate.LATE])
@pytest.mark.parametrize("before", [0, 1], ids=["of the first link", "of the batch"])
async def test_an_answer_that_is_lost_is_found_out(world: MemorySchedulers, fate: Fate, before: int) -> None:
    a = world.replica("a", fate=Fates(*[Fate.ARRIVES] * before, fate))
    await world.settle(a)
    names = await world.submit_many(3)
    await world.beat(slots=2)

    await world.settle(a)
    world.server.land()
    await world.settle(a)

    assert world.dispatched() == names[:2]


@pytest.mark.parametrize("lands", ["before the next plan", "after it", "never"])
async def test_an_outcome_that_stays_unknown_is_settled_by_the_log(world: MemorySchedulers, lands: str) -> None:
    fates = Fates(Fate.ARRIVES, *[Fate.LATE] * 1000)
    a = world.replica("a", fate=fates)
    await world.settle(a)
    await world.begun(a)
    names = await world.submit_many(3)
    await world.beat(slots=2)
    with pytest.raises(OutcomeUnknown):
        await world.settle(a)
    fates.left.clear()

    if lands == "before the next plan":
        world.server.land()
    await world.settle(a)
    if lands == "after it":
        world.server.land()
        await world.settle(a)

    assert world.dispatched() == names[:2]
    assert [len(link.jobs) for link in world.written(SchedulerCommitted)].count(2) == 1


async def test_a_commit_that_was_stored_while_the_connection_broke_is_not_made_again(world: MemorySchedulers) -> None:
    def breaks(messages: Sequence[Message]) -> Fate:
        log.wire.connected = len(messages) == 1
        return Fate.ARRIVES if log.wire.connected else Fate.UNHEARD

    log = MemoryLog(world.server, clock=HastyClock(), settle_within_s=2.0, fate=breaks)
    a = world.replica("a", log=log)
    await world.settle(a)
    names = await world.submit_many(3)
    await world.beat(slots=2)
    with pytest.raises((OutcomeUnknown, LogUnavailable)):
        await world.settle(a)
    with pytest.raises(LogUnavailable):
        await world.settle(a)

    log.wire.connected = True
    await world.settle(a)

    assert world.dispatched() == names[:2]
    assert [len(link.jobs) for link in world.written(SchedulerCommitted)] == [0, 2]


async def test_nothing_is_decided_while_the_log_is_known_to_go_further(world: MemorySchedulers) -> None:
    a = await world.leading()
    await world.submit_many(1)
    await world.beat(slots=2)
    await asyncio.sleep(0)

    a.inbox.expect(world.server.last_seq + 1)  # as a commit of our own, or a conflict, tells
    for _ in range(5):
        await world.turn(a)

    assert world.dispatched() == []


async def test_a_log_that_went_back_ends_the_process(world: MemorySchedulers) -> None:
    a = await world.leading()
    await world.submit_many(3)
    await world.settle(a)

    world.server.go_back(1)
    await world.clock.advance_ms(2 * SECOND)

    with pytest.raises(WentBack):
        await world.turn(a)


# ── servers that are away ─────────────────────────────────────────────────────


class Away(MemoryLead):
    """A store that can be away."""

    is_away = False

    async def hold(self, name: str, *, ttl_ms: int) -> Led:
        if self.is_away:
            raise ViewUnavailable("no answer")
        return await super().hold(name, ttl_ms=ttl_ms)


async def running_job(world: MemorySchedulers, a: Any) -> None:
    await world.pass_ms(60 * SECOND, a)
    await world.submit("job-1")
    await world.beat(slots=1)
    await world.settle(a)
    await world.write("job-1", "started")
    await world.settle(a)


async def test_while_nats_is_away_leases_do_not_run(world: MemorySchedulers) -> None:
    log = MemoryLog(world.server, clock=HastyClock(), settle_within_s=2.0)
    a = world.replica("a", log=log)
    await running_job(world, a)

    log.wire.connected = world.told.connected = False
    for _ in range(60):
        await world.clock.advance_ms(SECOND)
        with pytest.raises(LogUnavailable):
            await world.turn(a)
    log.wire.connected = world.told.connected = True
    await world.pass_ms(4 * SECOND, a)
    reply = await world.beat(slots=1, holders=("job-1:1",))
    await world.pass_ms(25 * SECOND, a)

    assert reply.kept == ("job-1:1",)
    assert (await world.job("job-1")).status is Status.STARTING


async def test_while_the_store_is_away_leases_do_not_run(world: MemorySchedulers) -> None:
    lead = Away(world.clock.now_ms)
    a = world.replica("a", lead=lead)
    await running_job(world, a)

    lead.is_away = True
    for _ in range(60):
        await world.clock.advance_ms(SECOND)
        with pytest.raises(ViewUnavailable):
            await world.turn(a)
    lead.is_away = False
    await world.pass_ms(4 * SECOND, a)
    reply = await world.beat(slots=1, holders=("job-1:1",))
    await world.pass_ms(25 * SECOND, a)

    assert reply.kept == ("job-1:1",)
    assert (await world.job("job-1")).status is Status.STARTING


async def test_while_nobody_could_hear_the_workers_no_lease_is_judged(world: MemorySchedulers) -> None:
    a = world.replica("a")
    await running_job(world, a)

    world.told.connected = False
    await world.pass_ms(60 * SECOND, a)
    assert (await world.job("job-1")).status is Status.STARTING
    world.told.connected = True
    await world.pass_ms(20 * SECOND, a)

    assert (await world.job("job-1")).status is Status.STARTING


async def test_a_worker_that_was_lost_with_an_outage_does_not_count_against_its_job(world: MemorySchedulers) -> None:
    a = world.replica("a")
    await running_job(world, a)

    world.told.connected = False
    await world.pass_ms(60 * SECOND, a)
    world.told.connected = True
    await world.pass_ms(35 * SECOND, a)

    job = await world.job("job-1")
    assert (job.status, job.lost) == (Status.QUEUED, 0)
    datas = [record.event.data for record in world.records() if isinstance(record.event, Event)]
    assert [data.reason for data in datas if isinstance(data, JobGivenBack)] == [GivenBackReason.OUTAGE]


async def test_a_worker_that_was_lost_counts_against_a_job_that_began_after_an_outage(world: MemorySchedulers) -> None:
    a = world.replica("a")
    await world.pass_ms(60 * SECOND, a)
    await world.submit("job-0")
    world.store.lose()
    await world.settle(a)
    await world.submit("job-1")
    await world.beat(slots=2)
    await world.settle(a)
    await world.write("job-1", "started")
    await world.settle(a)

    await world.pass_ms(31 * SECOND, a)

    job = await world.job("job-1")
    assert (job.status, job.lost) == (Status.QUEUED, 1)


async def test_a_flushed_store_costs_no_running_job_its_worker(world: MemorySchedulers) -> None:
    a = world.replica("a")
    await running_job(world, a)

    world.store.lose()
    world.lead.lose()
    lost = await world.beat(slots=1, holders=("job-1:1",))
    await world.settle(a)
    found = await world.beat(slots=1, holders=("job-1:1",))
    await world.pass_ms(20 * SECOND, a)

    assert lost.kept == ("job-1:1",)
    assert found.kept == ("job-1:1",)
    assert (await world.job("job-1")).attempt == 1
    assert await world.view_is_the_log()


async def test_limits_hold_across_a_flush(world: MemorySchedulers) -> None:
    a = await world.leading()
    for number in range(8):
        await world.submit(f"job-{number}", user="me", project=f"p-{number}")
    await world.beat(slots=8)
    await world.settle(a)
    assert len(world.dispatched()) == 3

    world.store.lose()
    await world.settle(a)
    await world.beat(slots=8)
    await world.pass_ms(3 * SECOND, a)

    assert len(world.dispatched()) == 3
