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
from tests.fixtures.crowd import BRIEF, SHARD, Crowd, a_crowd
from tests.fixtures.sources import running

T = TypeVar("T")


@pytest_asyncio.fixture
async def crowd(nats_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[Crowd]:
    async with a_crowd(nats_url, redis_url, tmp_path) as crowd:
        yield crowd


@pytest_asyncio.fixture
async def hasty(nats_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[Crowd]:
    """With leases whose end can be waited for."""
    async with a_crowd(nats_url, redis_url, tmp_path, policy=BRIEF) as crowd:
        yield crowd


@pytest_asyncio.fixture
async def mortal(nats_server: NatsServer, valkey_server: ValkeyServer, tmp_path: Path) -> AsyncIterator[Crowd]:
    """The same on servers of the test's own."""
    async with a_crowd(nats_server.url, valkey_server.url, tmp_path) as crowd:
        yield crowd


async def written(crowd: Crowd, kind: type[T]) -> list[T]:
    datas = [record.event.data for record in await crowd.records() if isinstance(record.event, Event)]
    return [data for data in datas if isinstance(data, kind)]


def queue_order(jobs: list[str], dispatched: list[JobDispatched]) -> bool:
    return [data.job_id for data in dispatched if data.attempt == 1] == jobs


async def test_jobs_start_in_order_within_limits_and_all_end(crowd: Crowd) -> None:
    await crowd.scheduler("a")
    jobs = await crowd.submit_many(60, users=1000)
    crowd.worker("w1", slots=4)
    crowd.worker("w2", slots=4)

    await crowd.all_end()

    report = await crowd.audited()
    assert not report.violations, report
    assert report.most["pool:default"] == 8
    assert queue_order(jobs, await written(crowd, JobDispatched))


async def test_a_user_with_many_jobs_runs_three_and_holds_nobody_up(crowd: Crowd) -> None:
    await crowd.scheduler("a")
    for _ in range(12):
        await crowd.submit(user="busy")
    await crowd.submit(user="quiet")
    crowd.worker("w1", slots=8)

    await crowd.all_end()

    report = await crowd.audited()
    assert not report.violations, report
    assert report.most["user:busy"] == 3
    started = [data.job_id for data in await written(crowd, JobDispatched)]
    assert started[:4] == [*crowd.submitted[:3], crowd.submitted[12]]


# ── replicas ──────────────────────────────────────────────────────────────────


@pytest.mark.kills
async def test_a_standby_goes_on_when_the_leader_is_killed(crowd: Crowd) -> None:
    a, _ = await crowd.scheduler("a"), await crowd.scheduler("b")
    assert await crowd.leader() == "a"
    crowd.worker("w1", slots=8)
    await crowd.submit_many(20)

    await a.kill()
    await crowd.submit(user="later")
    await crowd.all_end()

    assert await crowd.leader() == "b"
    report = await crowd.audited()
    assert not report.violations, report


@pytest.mark.kills
async def test_a_leader_that_is_frozen_writes_nothing_when_it_wakes(crowd: Crowd) -> None:
    a, _ = await crowd.scheduler("a"), await crowd.scheduler("b")
    crowd.worker("w1", slots=4, run_s=0.2)
    await crowd.submit_many(30)

    a.pause()
    await eventually(lambda: _leads(crowd, "b"))
    await crowd.submit_many(30)
    frozen = await written(crowd, SchedulerCommitted)
    a.resume()
    await crowd.all_end()

    report = await crowd.audited()
    assert not report.violations, report
    later = (await written(crowd, SchedulerCommitted))[len(frozen) :]
    assert {link.leader for link in later} == {"b"}


async def _leads(crowd: Crowd, name: str) -> bool:
    return await crowd.leader() == name


async def test_a_scheduler_that_is_told_to_stop_lets_go_and_keeps_its_fold(crowd: Crowd, nats_url: str) -> None:
    a, _ = await crowd.scheduler("a"), await crowd.scheduler("b")
    crowd.worker("w1", slots=8)
    await crowd.submit_many(20)
    await crowd.all_end()

    await a.stop()

    assert a.exit_code == 0
    await eventually(lambda: _leads(crowd, "b"))
    async with nats_client(nats_url) as client:
        kept = await JetStreamSnapshots(client).newest(crowd.log.epoch)
    assert kept is not None
    assert kept[0].seq >= 20 * 8


async def test_a_start_reads_the_snapshot_and_what_came_after(crowd: Crowd) -> None:
    a = await crowd.scheduler("a")
    crowd.worker("w1", slots=8)
    await crowd.submit_many(20)
    await crowd.all_end()
    await a.stop()

    await crowd.submit_many(5)
    await crowd.scheduler("again")
    await crowd.all_end()

    report = await crowd.audited()
    assert not report.violations, report


# ── what workers meet ─────────────────────────────────────────────────────────


@pytest.mark.kills
async def test_a_worker_that_dies_costs_its_jobs_one_attempt(hasty: Crowd) -> None:
    crowd = hasty
    await crowd.scheduler("a")
    doomed = crowd.worker("doomed", slots=4, run_s=60)
    await crowd.submit_many(4)
    await eventually(lambda: _started(crowd, 4))

    doomed.die()
    crowd.worker("w2", slots=4)
    await crowd.all_end()

    report = await crowd.audited()
    assert not report.violations, report
    assert report.ends == {"ready": 4}
    assert {data.attempt for data in await written(crowd, JobDispatched)} == {1, 2}


async def _started(crowd: Crowd, number: int) -> bool:
    return len(await written(crowd, JobStarted)) >= number


async def test_metrics_and_probes_answer(crowd: Crowd) -> None:
    a = await crowd.scheduler("a")
    crowd.worker("w1", slots=8)
    await crowd.submit_many(5)
    await crowd.all_end()

    async with httpx.AsyncClient(base_url=a.url, timeout=30) as http:
        metrics = (await http.get("/metrics")).text

    assert 'headgate_scheduler_dispatched_total{pool="default"} 5.0' in metrics
    assert "headgate_scheduler_leads 1.0" in metrics
    assert "headgate_queue_length" in metrics


# ── servers that are lost ─────────────────────────────────────────────────────


@pytest.mark.kills
async def test_a_flushed_store_loses_nothing_under_load(crowd: Crowd) -> None:
    random = Random(7)
    await crowd.scheduler("a")
    await crowd.scheduler("b")
    for name in ("w1", "w2"):
        crowd.worker(name, slots=6, run_s=0.3)
    submitting = asyncio.create_task(crowd.submit_many(200, random=random))

    for _ in range(5):
        await asyncio.sleep(random.uniform(0.3, 1.5))
        await crowd.client.flushall()
    await submitting
    await crowd.all_end()

    report = await crowd.audited(view_was_lost=True)
    assert not report.violations, report
    assert report.ends == {"ready": 200}


@pytest.mark.kills
async def test_a_nats_server_that_is_killed_under_load_loses_nothing(mortal: Crowd, nats_server: NatsServer) -> None:
    crowd, random = mortal, Random(8)
    await crowd.scheduler("a")
    await crowd.scheduler("b")
    for name in ("w1", "w2"):
        crowd.worker(name, slots=6, run_s=0.3)
    submitting = asyncio.create_task(crowd.submit_many(150, random=random))

    for away_s in (0.1, 2.0, 4.0):
        await asyncio.sleep(random.uniform(0.5, 1.5))
        await nats_server.kill()
        await asyncio.sleep(away_s)
        await nats_server.start()
    await submitting
    await crowd.all_end()

    report = await crowd.audited()
    assert not report.violations, report
    assert report.ends == {"ready": 150}


@pytest.mark.kills
async def test_a_store_that_is_killed_under_load_loses_nothing(mortal: Crowd, valkey_server: ValkeyServer) -> None:
    crowd, random = mortal, Random(9)
    await crowd.scheduler("a")
    for name in ("w1", "w2"):
        crowd.worker(name, slots=6, run_s=0.3)
    submitting = asyncio.create_task(crowd.submit_many(150, random=random))

    for away_s in (0.1, 4.0):
        await asyncio.sleep(random.uniform(0.5, 1.5))
        await valkey_server.kill()
        await asyncio.sleep(away_s)
        await valkey_server.start()
    await submitting
    await crowd.all_end()

    report = await crowd.audited()
    assert not report.violations, report
    assert report.ends == {"ready": 150}


@pytest.mark.kills
async def test_queued_jobs_start_while_the_store_is_dead(mortal: Crowd, valkey_server: ValkeyServer) -> None:
    """On a worker that comes after it died, so that nobody but the schedulers themselves has heard of it."""
    crowd = mortal
    for name in ("a", "b"):
        await crowd.scheduler(name)
    await crowd.submit_many(30, users=20)

    await valkey_server.kill()
    crowd.worker("late", slots=4)
    await crowd.all_end()
    leaders = {link.leader for link in await written(crowd, SchedulerCommitted)}

    report = await crowd.audited()
    assert not report.violations, report
    assert report.most["pool:default"] == 4
    assert len(leaders) == 1


@pytest.mark.kills
async def test_queued_jobs_start_while_the_store_is_silent(mortal: Crowd, valkey_server: ValkeyServer) -> None:
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
    mortal: Crowd, nats_server: NatsServer, valkey_server: ValkeyServer
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
    mortal: Crowd, nats_server: NatsServer, number: signal.Signals
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
        async with a_crowd(nats.url, valkey.url, tmp_path, **urls) as crowd:
            a = await crowd.scheduler("a")
            crowd.worker("w1", slots=8)
            await crowd.submit_many(20)
            await crowd.client.flushall()
            await crowd.all_end()
            await a.stop()

            report = await crowd.audited(view_was_lost=True)
            assert not report.violations, report
            assert a.exit_code == 0
            assert not [word for word in ("Permission", "NOPERM", "refuse") if word in a.words()], a.words()
