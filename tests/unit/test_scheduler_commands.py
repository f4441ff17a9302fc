"""What workers ask for and what they hear: heartbeats, slots for stages, grants, and the second opinion."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
import pytest_asyncio

from headgate_contracts.commands import (
    AcquireLease,
    GiveUpLease,
    LeaseReply,
    NamedLease,
    ProviderShut,
    RedeemTicket,
    ShutProvider,
    TicketRedeemed,
)
from headgate_contracts.envelope import utc
from headgate_contracts.events import Group
from services.scheduler.domain import SHUT_MAX_MS
from services.scheduler.replica import Replica
from tests.fixtures.observing import observe
from tests.fixtures.schedulers import MemorySchedulers

SECOND = 1000
DB = "group:shop:db"


@pytest_asyncio.fixture
async def leader(world: MemorySchedulers) -> Replica:
    """It leads, and two jobs run on one worker."""
    replica = await world.leading()
    await world.pass_ms(60 * SECOND, replica)
    for name in ("job-1", "job-2"):
        await world.submit(name, user=f"u-{name}", project=f"p-{name}")
    await world.beat(slots=2)
    await world.settle(replica)
    await world.write("job-1", "started")
    await world.write("job-2", "started")
    await world.settle(replica)
    return replica


async def ask(world: MemorySchedulers, by: Replica, lease: str, *groups: str, **wanted: Any) -> LeaseReply:
    return await by.handlers.acquire(AcquireLease(lease=lease, groups=groups or (DB,), **wanted))


async def end(world: MemorySchedulers, by: Replica, lease: str) -> LeaseReply:
    command = GiveUpLease(lease=lease)
    return await by.handlers.give_up(command)


def told(world: MemorySchedulers) -> list[tuple[str, str, str]]:
    return [(address, reply.lease, reply.state) for address, reply in world.told.replies]


# ── slots inside a job ────────────────────────────────────────────────────────


async def test_a_stage_gets_its_slots_or_a_place_among_those_who_wait(world: MemorySchedulers, leader: Replica) -> None:
    first = await ask(world, leader, "l1", holder="job-1:1")
    second = await ask(world, leader, "l2", holder="job-2:1", wait_ms=60_000)
    third = await ask(world, leader, "l3", holder="job-2:1")

    assert (first.state, second.state, third.state) == ("granted", "waiting", "full")
    assert (second.group, second.behind) == (DB, 0)
    assert third.group == DB
    assert first.expires_ms == world.clock.now_ms() + 30_000


async def test_who_waits_hears_of_its_turn_when_a_slot_is_given_up(world: MemorySchedulers, leader: Replica) -> None:
    await ask(world, leader, "l1", holder="job-1:1")
    await ask(world, leader, "l2", holder="job-2:1", wait_ms=60_000)

    reply = await end(world, leader, "l1")

    assert reply.state == "given_up"
    assert told(world) == [("headgate.cmd.v1.main.granted.l2", "l2", "granted")]


async def test_who_waits_hears_of_its_turn_when_the_holders_job_ends(world: MemorySchedulers, leader: Replica) -> None:
    await ask(world, leader, "l1", holder="job-1:1")
    await ask(world, leader, "l2", holder="job-2:1", wait_ms=60_000)

    await world.write("job-1", "scaffold", "code", "deps", "checks", "ready")
    await world.settle(leader)

    assert [lease for _, lease, _ in told(world)] == ["l2"]


async def test_who_waits_hears_of_its_turn_when_a_lease_runs_out(world: MemorySchedulers, leader: Replica) -> None:
    await ask(world, leader, "l1", ttl_ms=5000)
    await ask(world, leader, "l2", holder="job-2:1", wait_ms=60_000)

    await world.pass_ms(7 * SECOND, leader)

    assert [lease for _, lease, _ in told(world)] == ["l2"]


async def test_who_waits_hears_of_its_turn_when_the_limit_is_raised(world: MemorySchedulers, leader: Replica) -> None:
    await ask(world, leader, "l1", holder="job-1:1")
    await ask(world, leader, "l2", holder="job-2:1", wait_ms=60_000)

    await world.set_limit(DB, 2)
    await world.settle(leader)

    assert [lease for _, lease, _ in told(world)] == ["l2"]


async def test_a_lease_outside_any_job_lasts_as_long_as_policy_says(world: MemorySchedulers, leader: Replica) -> None:
    reply = await ask(world, leader, "l1")

    assert reply.expires_ms == world.clock.now_ms() + 300_000


@pytest.mark.parametrize("group", ["workflows", "user:u-job-1", "project:p-job-1", "pool:default"])
@pytest.mark.parametrize("holder", [None, "job-1:1"])
async def test_a_slot_of_whole_jobs_is_refused_to_a_lease_by_the_name_of_its_group(
    world: MemorySchedulers, leader: Replica, group: str, holder: str | None
) -> None:
    """Who may start is planned without a word to the view: the planner would not know of it."""
    before = await observe(world.view)

    reply = await ask(world, leader, "l1", DB, group, holder=holder, wait_ms=60_000)
    named = (NamedLease(lease="l2", holder="job-1:1", groups=(DB, group)),)
    heard = await world.beat(slots=2, holders=("job-1:1", "job-2:1"), leases=named)

    assert reply == LeaseReply(lease="l1", state="refused", group=group)
    assert (heard.kept, heard.lost_leases) == (("job-1:1", "job-2:1"), ("l2",))
    assert (await observe(world.view)).groups == before.groups


async def test_an_attempt_that_is_over_gets_no_slot(world: MemorySchedulers, leader: Replica) -> None:
    await world.write("job-1", "given_back:drained")
    await world.settle(leader)

    assert (await ask(world, leader, "l1", holder="job-1:1")).state == "not_yours"


async def test_without_a_view_nobody_is_granted_anything(world: MemorySchedulers, leader: Replica) -> None:
    world.store.lose()

    assert (await ask(world, leader, "l1", holder="job-1:1")).state == "view_lost"
    assert (await end(world, leader, "l1")).state == "view_lost"


# ── the second opinion ────────────────────────────────────────────────────────


@pytest.mark.parametrize("view", ["there", "lost"])
async def test_a_worker_hears_what_became_of_each_attempt(world: MemorySchedulers, leader: Replica, view: str) -> None:
    await world.write("job-1", "cancel_requested")
    await world.write("job-2", "given_back:drained")
    await world.settle(leader)
    world.told.connected = True
    if view == "lost":
        world.store.lose()

    reply = await world.beat(slots=2, holders=("job-1:1", "job-2:1"))

    assert reply.cancel == ("job-1:1",)
    assert reply.not_yours == ("job-2:1",)
    assert reply.lease_s == 30


async def test_an_attempt_that_the_view_has_not_folded_yet_goes_on(world: MemorySchedulers, leader: Replica) -> None:
    await world.submit("job-3", user="u-3", project="p-3")
    await world.beat(slots=3)
    await world.turn(leader)  # takes job-3
    await world.turn(leader)  # commits it, and has not read its own records yet
    assert (await world.job("job-3")).attempt == 1

    reply = await world.beat(slots=3, holders=("job-3:1",))

    assert reply.kept == ("job-3:1",)


async def test_an_attempt_that_nobody_here_has_folded_yet_goes_on(world: MemorySchedulers, leader: Replica) -> None:
    await world.write("job-1", "given_back:drained")
    await world.settle(leader)

    reply = await world.beat(slots=2, holders=("job-1:2",))

    assert reply.kept == ("job-1:2",)


async def test_an_attempt_of_a_job_that_this_fold_has_not_come_to_yet_goes_on(
    world: MemorySchedulers, leader: Replica
) -> None:
    """The leader before has started it and is gone, and this replica is a little behind the log."""
    world.store.lose()

    reply = await world.beat(slots=2, holders=("job-9:1",))

    assert reply.kept == ("job-9:1",)


async def test_a_lease_that_was_forced_free_is_told_as_lost(world: MemorySchedulers, leader: Replica) -> None:
    await world.write("job-1", "given_back:drained")
    await world.settle(leader)

    reply = await world.beat(slots=2, leases=(NamedLease(lease="l1", holder="job-1:1", groups=(DB,)),))

    assert reply.lost_leases == ("l1",)


# ── what is shown ─────────────────────────────────────────────────────────────


async def test_waiting_and_acquiring_are_counted_by_group(world: MemorySchedulers) -> None:
    replica = await world.leading()
    await world.beat(slots=2)
    await world.submit("job-1", groups=(Group(name=DB),))
    await world.pass_ms(3 * SECOND, replica)
    await ask(world, replica, "l1", "llm:gemini", "llm:global")
    await ask(world, replica, "l2", DB)
    await world.set_limit("llm:ollama", 1)
    await world.settle(replica)
    await ask(world, replica, "l3", "llm:ollama")
    await ask(world, replica, "l4", "llm:ollama", wait_ms=60_000)
    await world.pass_ms(2 * SECOND, replica)
    await end(world, replica, "l3")
    await replica.gauges.look()

    text = world.metrics(replica)

    assert 'headgate_concurrency_acquisition_total{group="other",result="acquired"} 1.0' in text
    assert 'headgate_concurrency_acquisition_total{group="other",result="rejected"} 1.0' in text
    assert 'headgate_concurrency_slots_active{group="other"} 1.0' in text
    assert DB not in text
    assert 'headgate_concurrency_wait_seconds_sum{group="llm:ollama"} 2.0' in text
    assert 'headgate_llm_in_flight{provider="gemini"} 1.0' in text
    assert 'headgate_llm_in_flight{provider="total"} 1.0' in text
    assert 'headgate_llm_blocked_requests_total{provider="ollama"} 1.0' in text
    assert 'headgate_llm_block_seconds_sum{provider="ollama"} 2.0' in text
    assert 'headgate_scheduler_dispatched_total{pool="default"} 1.0' in text
    assert 'headgate_queue_length{pool="default"} 0.0' in text
    assert "headgate_scheduler_leads 1.0" in text
    assert "user:" not in text
    assert "project:" not in text


async def test_a_decision_is_a_span_of_the_jobs_own_trace(world: MemorySchedulers) -> None:
    replica = await world.leading()
    await world.submit("job-1")
    await world.beat(slots=1)

    await world.settle(replica)

    (span,) = world.spans(replica)
    (dispatched,) = [record for record in world.records() if record.traceparent]
    assert span.name == "decide dispatched"
    assert span.attributes["headgate.job.id"] == "job-1"
    assert f"{span.context.trace_id:032x}" in (dispatched.traceparent or "")
    assert f"{span.context.span_id:016x}" in (dispatched.traceparent or "")


# ── a provider that has had enough ────────────────────────────────────────────


async def pause(world: MemorySchedulers, by: Replica, for_ms: int) -> ProviderShut:
    command = ShutProvider(provider="ollama", for_ms=for_ms)
    return await by.handlers.shut(command)


async def test_nobody_gets_a_slot_of_a_provider_that_pauses(world: MemorySchedulers, leader: Replica) -> None:
    reply = await pause(world, leader, 30_000)

    refused = await ask(world, leader, "l1", "llm:ollama", holder="job-1:1")
    waits = await ask(world, leader, "l2", "llm:ollama", holder="job-1:1", wait_ms=60_000)
    other = await ask(world, leader, "l3", "llm:openai", holder="job-1:1")

    assert reply == ProviderShut(provider="ollama", until=utc(world.clock.now_ms() + 30_000))
    assert (refused.state, refused.shut_ms) == ("full", 30_000)
    assert (waits.state, waits.shut_ms) == ("waiting", 30_000)
    assert (other.state, other.shut_ms) == ("granted", None)


async def test_who_waits_for_it_hears_when_it_opens(world: MemorySchedulers, leader: Replica) -> None:
    await pause(world, leader, 20_000)
    await ask(world, leader, "l1", "llm:ollama", wait_ms=60_000)

    await world.pass_ms(19 * SECOND, leader)
    before = told(world)
    await world.pass_ms(2 * SECOND, leader)

    assert (before, told(world)) == ([], [("headgate.cmd.v1.main.granted.l1", "l1", "granted")])


async def test_a_pause_is_no_longer_than_a_day_whatever_is_said(world: MemorySchedulers, leader: Replica) -> None:
    reply = await pause(world, leader, 10**15)

    assert reply.until == utc(world.clock.now_ms() + SHUT_MAX_MS)


async def test_of_two_pauses_the_later_end_counts(world: MemorySchedulers, leader: Replica) -> None:
    await pause(world, leader, 60_000)
    await pause(world, leader, 10_000)

    assert (await ask(world, leader, "l1", "llm:ollama", holder="job-1:1")).shut_ms == 60_000


async def test_while_the_view_is_lost_nobody_knows_until_when(world: MemorySchedulers, leader: Replica) -> None:
    world.store.lose()

    assert await pause(world, leader, 30_000) == ProviderShut(provider="ollama")


# ── tickets ───────────────────────────────────────────────────────────────────


TICKET = "A" * 43
DIGEST = hashlib.sha256(TICKET.encode()).hexdigest()


async def test_a_ticket_is_worth_something_once(world: MemorySchedulers, leader: Replica) -> None:
    kept = TicketRedeemed(user_id="u1", scopes=("jobs:read",))
    await world.view.keep_ticket(DIGEST, kept.model_dump_json(), user="ann", most=9, ttl_ms=30_000)

    replies = [await leader.handlers.redeem(RedeemTicket(ticket=TICKET)) for _ in range(2)]

    assert replies == [kept, TicketRedeemed()]


async def test_a_ticket_that_nobody_was_given_is_nobodys(world: MemorySchedulers, leader: Replica) -> None:
    assert await leader.handlers.redeem(RedeemTicket(ticket=TICKET)) == TicketRedeemed()
