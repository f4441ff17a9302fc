"""Commands over NATS to a scheduler process: heartbeats, leases and their grants, positions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from nats.aio.client import Client

from headgate_contracts.commands import (
    AcquireLease,
    AskPosition,
    GiveUpLease,
    LeaseReply,
    PositionChanged,
    Watching,
    command_subject,
    granted_subject,
    position_subject,
    watching_subject,
)
from headgate_contracts.records import Record
from libs.local.servers import ValkeyServer
from libs.runtime.eventually import eventually
from tests.fixtures.clients import nats_client
from tests.fixtures.scheduler_system import SHARD, SchedulerSystem, a_scheduler_system

DB = ("group:shop:db",)


@pytest_asyncio.fixture
async def system(nats_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[SchedulerSystem]:
    async with a_scheduler_system(nats_url, redis_url, tmp_path) as system:
        await system.scheduler("a")
        yield system


@pytest_asyncio.fixture
async def nats(nats_url: str) -> AsyncIterator[Client]:
    async with nats_client(nats_url) as client:
        yield client


async def ask(nats: Client, command: Record, verb: str) -> LeaseReply:
    subject = command_subject(SHARD, verb)  # type: ignore[arg-type]
    reply = await nats.request(subject, command.model_dump_json().encode(), timeout=30)
    return LeaseReply.model_validate_json(reply.data)


async def test_a_waiter_is_told_on_the_subject_of_its_lease(system: SchedulerSystem, nats: Client) -> None:
    heard = await nats.subscribe(granted_subject(SHARD, "l2"))
    first = await ask(nats, AcquireLease(lease="l1", groups=DB), "acquire")
    second = await ask(nats, AcquireLease(lease="l2", groups=DB, wait_ms=60_000), "acquire")

    given_up = await ask(nats, GiveUpLease(lease="l1"), "give_up")
    told = LeaseReply.model_validate_json((await heard.next_msg(timeout=30)).data)

    assert (first.state, second.state, given_up.state) == ("granted", "waiting", "given_up")
    assert (told.lease, told.state) == ("l2", "granted")


async def test_a_lease_that_runs_out_wakes_who_waits(system: SchedulerSystem, nats: Client) -> None:
    heard = await nats.subscribe(granted_subject(SHARD, "l2"))
    await ask(nats, AcquireLease(lease="l1", groups=DB, ttl_ms=500), "acquire")
    await ask(nats, AcquireLease(lease="l2", groups=DB, wait_ms=60_000), "acquire")

    told = LeaseReply.model_validate_json((await heard.next_msg(timeout=30)).data)

    assert told.state == "granted"


async def test_a_heartbeat_is_answered_by_each_replica_also_while_nobody_leads(
    system: SchedulerSystem, nats: Client
) -> None:
    await system.scheduler("b")
    await system.submit(user="me")
    await system.beat("w1", slots=1)
    await eventually(lambda: _is_dispatched(system))

    replies = [await system.beat("w1", slots=1, holders=("job-0001:1",)) for _ in range(20)]

    assert all(reply is not None and reply.kept == ("job-0001:1",) for reply in replies)


async def test_while_the_store_is_silent_a_heartbeat_is_answered_from_the_fold(
    nats_url: str, valkey_server: ValkeyServer, tmp_path: Path
) -> None:
    async with a_scheduler_system(nats_url, valkey_server.url, tmp_path) as system:
        await system.scheduler("a")
        await system.submit(user="me")
        await system.beat("w1", slots=1)
        await eventually(lambda: _is_dispatched(system))

        valkey_server.pause()
        reply = await system.beat("w1", slots=1, holders=("job-0001:1",), timeout_s=30)
        valkey_server.resume()

        assert reply is not None
        assert reply.kept == ("job-0001:1",)


async def _is_dispatched(system: SchedulerSystem) -> bool:
    return (await system.read(system.submitted[0])).attempt == 1


async def test_where_a_job_stands_can_be_asked(system: SchedulerSystem, nats: Client) -> None:
    await system.submit(user="me")
    name = await system.submit(user="you")
    subject = command_subject(SHARD, "position")
    question = AskPosition(job_id=name).model_dump_json().encode()

    async def second_in_line() -> bool:
        reply = await nats.request(subject, question, timeout=30)
        stands = PositionChanged.model_validate_json(reply.data)
        assert stands.queue
        assert stands.queue.position == 2
        assert [waits.reason for waits in stands.waiting_on] == ["no_worker"]
        return True

    await eventually(second_in_line)


async def test_who_is_watched_and_moves_up_is_told(system: SchedulerSystem, nats: Client) -> None:
    first, second = await system.submit(user="me"), await system.submit(user="you")
    heard = await nats.subscribe(position_subject(SHARD, "you", second))
    await nats.publish(watching_subject(SHARD), Watching(jobs=(second,)).model_dump_json().encode())
    job = await system.read(first)
    await system.write(job, "cancelled")

    positions: list[int] = []
    async with asyncio.timeout(30):
        while positions[-1:] != [1]:
            moved = PositionChanged.model_validate_json((await heard.next_msg(timeout=30)).data)
            positions.append(moved.queue.position if moved.queue else 0)

    assert positions[-1] == 1
