"""The scheduler as a process on real servers: order and limits, two replicas, and servers that are lost under load."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import TypeVar

import httpx
import pytest
import pytest_asyncio

from headgate_contracts import Event
from headgate_contracts.events import JobDispatched, JobStarted, SchedulerCommitted
from libs.eventlog import JetStreamSnapshots
from libs.local.permissions import NATS_USERS, VALKEY_USERS, nats_users, valkey_users
from libs.local.servers import DEFAULT_NATS_USERS, NatsServer, ValkeyServer
from libs.runtime.eventually import eventually
from tests.fixtures.clients import nats_client
from tests.fixtures.scheduler_system import BRIEF, SHARD, SchedulerSystem, a_scheduler_system
from tests.fixtures.sources import running

T = TypeVar("T")


@pytest_asyncio.fixture
async def system(nats_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[SchedulerSystem]:
    async with a_scheduler_system(nats_url, redis_url, tmp_path) as system:
        yield system


@pytest_asyncio.fixture
async def hasty(nats_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[SchedulerSystem]:
    """With leases whose end can be waited for."""
    async with a_scheduler_system(nats_url, redis_url, tmp_path, policy=BRIEF) as system:
        yield system


@pytest_asyncio.fixture
async def mortal(
    nats_server: NatsServer, valkey_server: ValkeyServer, tmp_path: Path
) -> AsyncIterator[SchedulerSystem]:
    """The same on servers of the test's own."""
    async with a_scheduler_system(nats_server.url, valkey_server.url, tmp_path) as system:
        yield system


async def written(system: SchedulerSystem, kind: type[T]) -> list[T]:
    datas = [record.event.data for record in await system.records() if isinstance(record.event, Event)]
    return [data for data in datas if isinstance(data, kind)]


def queue_order(jobs: list[str], dispatched: list[JobDispatched]) -> bool:
    return [data.job_id for data in dispatched if data.attempt == 1] == jobs


async def test_jobs_start_in_order_within_limits_and_all_end(system: SchedulerSystem) -> None:
    await system.scheduler("a")
    jobs = await system.submit_many(60, users=1000)
    system.worker("w1", slots=4)
    system.worker("w2", slots=4)

    await system.all_end()

    report = await system.audited()
    assert not report.violations, report
    assert report.most["pool:default"] == 8
    assert queue_order(jobs, await written(system, JobDispatched))


async def test_a_user_with_many_jobs_runs_three_and_holds_nobody_up(system: SchedulerSystem) -> None:
    await system.scheduler("a")
    for _ in range(12):
        await system.submit(user="busy")
    await system.submit(user="quiet")
    system.worker("w1", slots=8)

    await system.all_end()

    report = await system.audited()
    assert not report.violations, report
    assert report.most["user:busy"] == 3
    started = [data.job_id for data in await written(system, JobDispatched)]
    assert started[:4] == [*system.submitted[:3], system.submitted[12]]


# ── replicas ──────────────────────────────────────────────────────────────────


@pytest.mark.kills
async def test_a_standby_goes_on_when_the_leader_is_killed(system: SchedulerSystem) -> None:
    a, _ = await system.scheduler("a"), await system.scheduler("b")
    assert await system.leader() == "a"
    system.worker("w1", slots=8)
    await system.submit_many(20)

    await a.kill()
    await system.submit(user="later")
    await system.all_end()

    assert await system.leader() == "b"
    report = await system.audited()
    assert not report.violations, report


@pytest.mark.kills
async def test_a_leader_that_is_frozen_writes_nothing_when_it_wakes(system: SchedulerSystem) -> None:
    a, _ = await system.scheduler("a"), await system.scheduler("b")
    system.worker("w1", slots=4, run_s=0.2)
    await system.submit_many(30)

    a.pause()
    await eventually(lambda: _leads(system, "b"))
    await system.submit_many(30)
    frozen = await written(system, SchedulerCommitted)
    a.resume()
    await system.all_end()

    report = await system.audited()
    assert not report.violations, report
    later = (await written(system, SchedulerCommitted))[len(frozen) :]
    assert {link.leader for link in later} == {"b"}


async def _leads(system: SchedulerSystem, name: str) -> bool:
    return await system.leader() == name


async def test_a_scheduler_that_is_told_to_stop_lets_go_and_keeps_its_fold(
    system: SchedulerSystem, nats_url: str
) -> None:
    a, _ = await system.scheduler("a"), await system.scheduler("b")
    system.worker("w1", slots=8)
    await system.submit_many(20)
    await system.all_end()

    await a.stop()

    assert a.exit_code == 0
    await eventually(lambda: _leads(system, "b"))
    async with nats_client(nats_url) as client:
        kept = await JetStreamSnapshots(client).newest(system.log.epoch)
    assert kept is not None
    assert kept[0].seq >= 20 * 8


async def test_a_start_reads_the_snapshot_and_what_came_after(system: SchedulerSystem) -> None:
    a = await system.scheduler("a")
    system.worker("w1", slots=8)
    await system.submit_many(20)
    await system.all_end()
    await a.stop()

    await system.submit_many(5)
    await system.scheduler("again")
    await system.all_end()

    report = await system.audited()
    assert not report.violations, report


# ── what workers meet ─────────────────────────────────────────────────────────


@pytest.mark.kills
async def test_a_worker_that_dies_costs_its_jobs_one_attempt(hasty: SchedulerSystem) -> None:
    system = hasty
    await system.scheduler("a")
    doomed = system.worker("doomed", slots=4, run_s=60)
    await system.submit_many(4)
    await eventually(lambda: _started(system, 4))

    doomed.die()
    system.worker("w2", slots=4)
    await system.all_end()

    report = await system.audited()
    assert not report.violations, report
    assert report.ends == {"ready": 4}
    assert {data.attempt for data in await written(system, JobDispatched)} == {1, 2}


async def _started(system: SchedulerSystem, number: int) -> bool:
    return len(await written(system, JobStarted)) >= number


async def test_metrics_and_probes_answer(system: SchedulerSystem) -> None:
    a = await system.scheduler("a")
    system.worker("w1", slots=8)
    await system.submit_many(5)
    await system.all_end()

    async with httpx.AsyncClient(base_url=a.url, timeout=30) as http:
        metrics = (await http.get("/metrics")).text

    assert 'headgate_scheduler_dispatched_total{pool="default"} 5.0' in metrics
    assert "headgate_scheduler_leads 1.0" in metrics
    assert "headgate_queue_length" in metrics


# ── servers that are lost ─────────────────────────────────────────────────────


@pytest.mark.kills
async def test_a_flushed_store_loses_nothing_under_load(system: SchedulerSystem) -> None:
    random = Random(7)
    await system.scheduler("a")
    await system.scheduler("b")
    for name in ("w1", "w2"):
        system.worker(name, slots=6, run_s=0.3)
    submitting = asyncio.create_task(system.submit_many(200, random=random))

    for _ in range(5):
        await asyncio.sleep(random.uniform(0.3, 1.5))
        await system.client.flushall()
    await submitting
    await system.all_end()

    report = await system.audited(view_was_lost=True)
    assert not report.violations, report
    assert report.ends == {"ready": 200}


@pytest.mark.kills
async def test_a_nats_server_that_is_killed_under_load_loses_nothing(
    mortal: SchedulerSystem, nats_server: NatsServer
) -> None:
    system, random = mortal, Random(8)
    await system.scheduler("a")
    await system.scheduler("b")
    for name in ("w1", "w2"):
        system.worker(name, slots=6, run_s=0.3)
    submitting = asyncio.create_task(system.submit_many(150, random=random))

    for away_s in (0.1, 2.0, 4.0):
        await asyncio.sleep(random.uniform(0.5, 1.5))
        await nats_server.kill()
        await asyncio.sleep(away_s)
        await nats_server.start()
    await submitting
    await system.all_end()

    report = await system.audited()
    assert not report.violations, report
    assert report.ends == {"ready": 150}


@pytest.mark.kills
async def test_a_store_that_is_killed_under_load_loses_nothing(
    mortal: SchedulerSystem, valkey_server: ValkeyServer
) -> None:
    system, random = mortal, Random(9)
    await system.scheduler("a")
    for name in ("w1", "w2"):
        system.worker(name, slots=6, run_s=0.3)
    submitting = asyncio.create_task(system.submit_many(150, random=random))

    for away_s in (0.1, 4.0):
        await asyncio.sleep(random.uniform(0.5, 1.5))
        await valkey_server.kill()
        await asyncio.sleep(away_s)
        await valkey_server.start()
    await submitting
    await system.all_end()

    report = await system.audited()
    assert not report.violations, report
    assert report.ends == {"ready": 150}


@pytest.mark.kills
async def test_queued_jobs_start_while_the_store_is_dead(mortal: SchedulerSystem, valkey_server: ValkeyServer) -> None:
    """On a worker that comes after it died, so that nobody but the schedulers themselves has heard of it."""
    system = mortal
    for name in ("a", "b"):
        await system.scheduler(name)
    await system.submit_many(30, users=20)

    await valkey_server.kill()
    system.worker("late", slots=4)
    await system.all_end()
    leaders = {link.leader for link in await written(system, SchedulerCommitted)}

    report = await system.audited()
    assert not report.violations, report
    assert report.most["pool:default"] == 4
    assert len(leaders) == 1


@pytest.mark.kills
async def test_queued_jobs_start_while_the_store_is_silent(
    mortal: SchedulerSystem, valkey_server: ValkeyServer
) -> None:
    """Connections to it stay open, and nothing is refused."""

    async def all_start() -> bool:
        return len(await written(mortal, JobDispatched)) == 4

    await mortal.scheduler("a")
    await mortal.submit_many(4, users=20)

    valkey_server.pause()
    mortal.worker("late", slots=4)
    try:
        await eventually(all_start, within_s=10)
    finally:
        valkey_server.resume()
    await mortal.all_end()

    report = await mortal.audited()
    assert not report.violations, report


async def test_servers_that_are_away_at_the_start_are_waited_for(
    mortal: SchedulerSystem, nats_server: NatsServer, valkey_server: ValkeyServer
) -> None:
    await nats_server.kill()
    await valkey_server.kill()
    a = await mortal.scheduler("a", ready=False)
    async with httpx.AsyncClient(base_url=a.url, timeout=30) as http:
        await eventually(lambda: _answers(http, "/livez", 200))
        assert await _answers(http, "/readyz", 503)
    await eventually(lambda: "waiting for NATS" in a.words())

    await nats_server.start()
    await valkey_server.start()

    await mortal.is_ready(a)
    assert a.words().count("waiting for NATS") == 1


async def _answers(http: httpx.AsyncClient, path: str, status: int) -> bool:
    try:
        return (await http.get(path)).status_code == status
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_scheduler_that_waits_for_its_servers_can_be_stopped(
    mortal: SchedulerSystem, nats_server: NatsServer, number: signal.Signals
) -> None:
    await nats_server.kill()
    a = await mortal.scheduler("a", ready=False)
    async with httpx.AsyncClient(base_url=a.url, timeout=30) as http:
        await eventually(lambda: _answers(http, "/livez", 200))

    a._running_child("told").send_signal(number)

    await eventually(lambda: not a.running)
    assert a.exit_code == 0


# ── rights ────────────────────────────────────────────────────────────────────


async def test_a_scheduler_does_all_its_work_with_its_own_rights_alone(tmp_path: Path) -> None:
    passwords: dict[str, str] = dict.fromkeys((*NATS_USERS, *VALKEY_USERS), "secret")
    users = nats_users(passwords, shard=SHARD, pools=("default",))
    own = valkey_users(passwords, shard=SHARD)
    nats = NatsServer(tmp_path / "nats", users=(*DEFAULT_NATS_USERS, *users.values()))
    valkey = ValkeyServer(tmp_path / "valkey", users=tuple(own.values()))
    async with running(nats), running(valkey):
        urls = {
            "HEADGATE_NATS_URL": nats.url_for(users["scheduler"]),
            "HEADGATE_REDIS_URL": valkey.url_for(own["scheduler"]),
        }
        async with a_scheduler_system(nats.url, valkey.url, tmp_path, **urls) as system:
            a = await system.scheduler("a")
            system.worker("w1", slots=8)
            await system.submit_many(20)
            await system.client.flushall()
            await system.all_end()
            await a.stop()

            report = await system.audited(view_was_lost=True)
            assert not report.violations, report
            assert a.exit_code == 0
            assert not [word for word in ("Permission", "NOPERM", "refuse") if word in a.words()], a.words()
