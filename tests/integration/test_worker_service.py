"""Workers as processes beside a scheduler, on real servers: the whole way, and bad days."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from headgate_contracts.events import JobFailed, JobGivenBack, JobReady, JobStage
from libs.local.permissions import NATS_USERS, nats_users
from libs.local.servers import DEFAULT_NATS_USERS, NatsServer, ValkeyServer
from libs.runtime.eventually import eventually
from tests.fixtures.misbehaving import Door
from tests.fixtures.scheduler_system import BRIEF
from tests.fixtures.worker_system import (
    QUICK,
    WorkerSystem,
    a_worker_system,
    children_of,
    heard_lines,
    lives,
    pids_of_attempts,
)

LONG_LEASES = "[leases]\njob_s = 600\nheartbeat_s = 200\nleader_s = 4\nleader_heartbeat_s = 0.5\n"
SHORT_LEASES = "[leases]\njob_s = 3\nheartbeat_s = 0.5\nleader_s = 4\nleader_heartbeat_s = 0.5\n"
WAYS = "queued dispatched started scaffold code deps checks"


@pytest_asyncio.fixture
async def system(nats_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[WorkerSystem]:
    async with a_worker_system(nats_url, redis_url, tmp_path) as system:
        yield system


@pytest_asyncio.fixture(scope="module")
async def at_work(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WorkerSystem]:
    """With a scheduler and a worker of one slot, for the tests that leave them running."""
    folder = tmp_path_factory.mktemp("system")
    async with (
        NatsServer(folder / "nats") as nats,
        ValkeyServer(folder / "valkey") as valkey,
        a_worker_system(nats.url, valkey.url, folder) as system,
    ):
        await system.base.scheduler("a")
        await system.worker("w1", slots=1)
        yield system


@pytest_asyncio.fixture
async def hasty(nats_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[WorkerSystem]:
    """With leases whose end can be waited for."""
    async with a_worker_system(nats_url, redis_url, tmp_path, policy=BRIEF) as system:
        yield system


@pytest_asyncio.fixture
async def mortal(nats_server: NatsServer, valkey_server: ValkeyServer, tmp_path: Path) -> AsyncIterator[WorkerSystem]:
    """The same on servers of the test's own."""
    async with a_worker_system(nats_server.url, valkey_server.url, tmp_path) as system:
        yield system


# ── the way through ───────────────────────────────────────────────────────────


async def test_jobs_go_through_two_workers_and_each_ends_once(system: WorkerSystem) -> None:
    await system.base.scheduler("a")
    await system.worker("w1", slots=4)
    await system.worker("w2", slots=4)

    for number in range(24):
        await system.submit(f"job-{number}", {"stages": QUICK}, user=f"u{number}")

    await system.base.all_end()
    await system.no_violations()
    stories = {await system.story(f"job-{number}") for number in range(24)}
    assert stories == {f"{WAYS} ready"}
    workers = {(await system.job(f"job-{number}")).worker for number in range(24)}
    assert workers == {"w1", "w2"}


async def test_what_a_job_made_and_said_can_be_read_by_others(at_work: WorkerSystem) -> None:
    async with heard_lines(at_work.nats_url) as heard:
        await at_work.submit("says", {"stages": QUICK, "log_lines": 20})
        await at_work.until("says", "ready")
        await eventually(lambda: len(heard) >= 20)  # the end of a job waits a second for its lines, and no longer

    assert [line.line for line in heard] == [f"line {number} of 20 of iteration 1" for number in range(1, 21)]
    assert (await at_work.base.nc.jetstream().stream_info("LOGS")).state.messages == 20
    assert (await at_work.result("says")).keys() == {"rehearsal.json"}


async def test_failed_checks_end_in_a_question_and_its_answer_goes_on(at_work: WorkerSystem) -> None:
    await at_work.submit("asks", {"stages": QUICK, "failing_cycles": 3})
    asked = await at_work.until("asks", "awaiting_confirmation")

    await at_work.write("asks", "confirmed", batch=3)

    job = await at_work.until("asks", "ready")
    assert (asked.iteration, job.iteration, job.attempt) == (3, 4, 2)


async def test_a_job_that_breaks_fails_and_the_worker_goes_on(at_work: WorkerSystem) -> None:
    await at_work.submit("breaks", {"stages": QUICK, "fail_at": "code"}, user="u1")
    await at_work.submit("follows", {"stages": QUICK}, user="u2")

    await at_work.until("follows", "ready")

    failed = (await at_work.datas("breaks"))[-1]
    assert isinstance(failed, JobFailed)
    assert failed.fault == "job"


async def test_a_running_job_is_cancelled_long_before_the_next_heartbeat(
    nats_url: str, redis_url: str, tmp_path: Path
) -> None:
    async with a_worker_system(nats_url, redis_url, tmp_path, policy=LONG_LEASES) as system:
        await system.base.scheduler("a")
        worker = await system.worker("w1")
        await system.submit("job-1", {"stages": {**QUICK, "code": 600}})
        await system.until("job-1", "code")

        await system.write("job-1", "cancel_requested", by="ann")

        await system.until("job-1", "cancelled")
        await eventually(lambda: not pids_of_attempts(worker))


async def test_one_slot_of_a_provider_is_never_two(nats_url: str, redis_url: str, tmp_path: Path) -> None:
    policy = f"{LONG_LEASES}[providers.limits]\nollama = 1\n"
    async with a_worker_system(nats_url, redis_url, tmp_path, policy=policy) as system:
        await system.base.scheduler("a")
        await system.worker("w1", slots=2)
        await system.worker("w2", slots=2)
        async with heard_lines(nats_url) as said:
            for number in range(4):  # each speaks at the beginning and at the end of its time with the provider
                content = {"stages": {**QUICK, "code": 0.3}, "provider": "ollama", "log_lines": 3}
                await system.submit(f"job-{number}", content, user=f"u{number}")
            await system.base.all_end()
            await eventually(lambda: len(said) >= 12)

        order = [line.job_id for line in sorted(said, key=lambda line: line.ts)]
        turns = [job for place, job in enumerate(order) if place == 0 or order[place - 1] != job]
        assert len(said) == 12
        assert sorted(turns) == [f"job-{number}" for number in range(4)]


async def test_a_worker_does_with_the_rights_of_its_own_user_what_it_has_to_do(
    valkey_server: ValkeyServer, tmp_path: Path
) -> None:
    rights = nats_users(dict.fromkeys(NATS_USERS, "hush"), shard="main", pools=["default"])["worker"]
    server = NatsServer(tmp_path / "nats", users=(*DEFAULT_NATS_USERS, rights))
    async with server, a_worker_system(server.url, valkey_server.url, tmp_path) as system:
        await system.base.scheduler("a")
        worker = await system.worker("w1", HEADGATE_NATS_URL=server.url_for(rights))
        await system.submit("job-1", {"stages": QUICK, "provider": "ollama", "log_lines": 3}, user="u1")
        await system.submit("job-2", {"stages": {**QUICK, "code": 600}}, user="u2")
        await system.until("job-1", "ready")
        await system.until("job-2", "code")

        await system.write("job-2", "cancel_requested")

        await system.until("job-2", "cancelled")
        assert "permissions violation" not in worker.words()


# ── workers that go ───────────────────────────────────────────────────────────


@pytest.mark.kills
async def test_a_killed_workers_job_goes_on_elsewhere_from_its_last_finished_stage(
    hasty: WorkerSystem, tmp_path: Path
) -> None:
    system, door = hasty, Door(tmp_path / "open")
    await system.base.scheduler("a")
    w1 = await system.worker("w1", HEADGATE_PIPELINES="tests.fixtures.misbehaving")
    await system.submit("job-1", {"do": "waits", "for": str(door.path)}, pipeline="misbehaving")
    await system.until("job-1", "code")
    left_behind = pids_of_attempts(w1)

    await w1.kill()
    door.open()
    await system.worker("w2", HEADGATE_PIPELINES="tests.fixtures.misbehaving")

    await system.until("job-1", "ready")
    assert await system.story("job-1") == (
        "queued dispatched started scaffold code given_back dispatched started (scaffold) code deps checks ready"
    )
    given_back = next(data for data in await system.datas("job-1") if isinstance(data, JobGivenBack))
    assert given_back.reason in ("lost", "outage")  # a scheduler that is new at it blames nobody
    assert left_behind
    assert not any(map(lives, left_behind))
    await system.no_violations()


@pytest.mark.kills
async def test_a_worker_that_is_told_to_stop_hands_over_and_no_stage_is_done_twice(system: WorkerSystem) -> None:
    await system.base.scheduler("a")
    w1 = await system.worker("w1", slots=2, HEADGATE_DRAIN_GRACE_S="2")
    await system.submit("job-1", {"stages": {"scaffold": 0.05, "code": 0.05, "deps": 6, "checks": 0}}, user="u1")
    await system.submit("job-2", {"stages": {**QUICK, "checks": 0.6}}, user="u2")
    await system.until("job-1", "deps")
    await system.until("job-2", "checks", "ready")

    await w1.stop()
    await system.worker("w2")

    assert w1.exit_code == 0
    await system.until("job-1", "ready")
    await system.until("job-2", "ready")
    assert (await system.story("job-1")).endswith(
        "deps given_back dispatched started (scaffold) (code) deps checks ready"
    )
    assert await system.story("job-2") == f"{WAYS} ready"
    handed = next(data for data in await system.datas("job-1") if isinstance(data, JobGivenBack))
    assert (handed.reason, handed.finished_stages) == ("drained", ("scaffold", "code"))
    assert (await system.job("job-1")).lost == 0
    await system.no_violations()


@pytest.mark.kills
async def test_a_worker_that_sleeps_through_its_lease_has_lost_it_and_goes_on_with_new_work(
    nats_url: str, redis_url: str, tmp_path: Path
) -> None:
    async with a_worker_system(nats_url, redis_url, tmp_path, policy=SHORT_LEASES) as system:
        await system.base.scheduler("a")
        w1 = await system.worker("w1", slots=1)
        await system.submit("job-1", {"stages": {**QUICK, "code": 6}})
        await system.until("job-1", "code")
        attempt = pids_of_attempts(w1)

        w1.pause()
        await eventually(lambda: not any(map(lives, attempt)))  # ended though its worker sleeps
        await system.worker("w2", slots=1)
        await system.until("job-1", "ready")
        before = await system.story("job-1")
        w1.resume()
        await eventually(lambda: "job-1:1 is not ours any more" in w1.words())
        await system.submit("job-2", {"stages": {**QUICK, "code": 3}}, user="u2")
        await system.submit("job-3", {"stages": {**QUICK, "code": 3}}, user="u3")
        await system.base.all_end()

        assert await system.story("job-1") == before
        assert before.endswith("given_back dispatched started (scaffold) code deps checks ready")
        assert {(await system.job(name)).worker for name in ("job-2", "job-3")} == {"w1", "w2"}
        await system.no_violations()


@pytest.mark.kills
async def test_a_job_whose_process_is_killed_for_want_of_memory_goes_on_and_costs_no_iteration(
    nats_url: str, redis_url: str, tmp_path: Path
) -> None:
    async with a_worker_system(nats_url, redis_url, tmp_path, policy=SHORT_LEASES) as system:
        await system.base.scheduler("a")
        await system.worker("w1", HEADGATE_PIPELINES="tests.fixtures.misbehaving")

        await system.submit("job-1", {"do": "is_killed_once", "mark": str(tmp_path / "mark")}, pipeline="misbehaving")

        job = await system.until("job-1", "ready", "failed")
        way = "queued dispatched started scaffold code given_back dispatched started (scaffold) code deps checks ready"
        assert await system.story("job-1") == way
        assert (job.lost, job.iteration) == (1, 1)
        await system.no_violations()


@pytest.mark.kills
async def test_a_job_that_uses_up_every_machine_fails_in_the_end_and_gets_its_day_back(
    nats_url: str, redis_url: str, tmp_path: Path
) -> None:
    async with a_worker_system(nats_url, redis_url, tmp_path, policy=f"{SHORT_LEASES}[runs]\nmax_lost = 1\n") as system:
        await system.base.scheduler("a")
        await system.worker("w1", HEADGATE_PIPELINES="tests.fixtures.misbehaving")

        await system.submit("job-1", {"do": "finds_the_disk_full"}, pipeline="misbehaving")

        job = await system.until("job-1", "failed")
        failed = (await system.datas("job-1"))[-1]
        assert isinstance(failed, JobFailed)
        assert (failed.fault, job.attempt) == ("system", 2)
        await system.no_violations()


@pytest.mark.kills
async def test_a_worker_that_lost_its_spawner_ends_and_its_job_goes_on_elsewhere(
    hasty: WorkerSystem, tmp_path: Path
) -> None:
    system, door = hasty, Door(tmp_path / "open")
    await system.base.scheduler("a")
    w1 = await system.worker("w1", HEADGATE_PIPELINES="tests.fixtures.misbehaving")
    await system.submit("job-1", {"do": "waits", "for": str(door.path)}, pipeline="misbehaving")
    await system.until("job-1", "code")

    os.kill(children_of(w1.pid)[0], signal.SIGKILL)

    await eventually(lambda: w1.exit_code == 1)
    door.open()
    await system.worker("w2", HEADGATE_PIPELINES="tests.fixtures.misbehaving")
    await system.until("job-1", "ready")
    assert "The process that attempts are forked from has died" in w1.words()
    await system.no_violations()


# ── servers that go ───────────────────────────────────────────────────────────


@pytest.mark.kills
async def test_a_job_outlives_an_outage_of_nats_that_is_longer_than_its_lease(
    nats_server: NatsServer, valkey_server: ValkeyServer, tmp_path: Path
) -> None:
    async with a_worker_system(nats_server.url, valkey_server.url, tmp_path, policy=BRIEF) as system:
        await system.base.scheduler("a")
        worker = await system.worker("w1")
        await system.submit("job-1", {"stages": {**QUICK, "code": 2, "deps": 2}})
        await system.until("job-1", "code")

        await nats_server.kill()
        await asyncio.sleep(7)  # leases are 5 s
        still_there = pids_of_attempts(worker)
        await nats_server.start()

        await system.until("job-1", "ready")
        assert await system.story("job-1") == f"{WAYS} ready"
        assert still_there
        await system.no_violations()


@pytest.mark.kills
async def test_a_job_outlives_the_loss_of_all_schedulers(hasty: WorkerSystem) -> None:
    system = hasty
    a = await system.base.scheduler("a")
    await system.worker("w1")
    await system.submit("job-1", {"stages": {**QUICK, "code": 8}})
    await system.until("job-1", "code")

    await a.kill()
    await asyncio.sleep(7)  # more than a lease
    await system.base.scheduler("b")

    await system.until("job-1", "ready")
    assert await system.story("job-1") == f"{WAYS} ready"
    await system.no_violations()


@pytest.mark.kills
async def test_nats_is_killed_again_and_again_while_jobs_run_and_each_ends_once(
    mortal: WorkerSystem, nats_server: NatsServer
) -> None:
    await mortal.base.scheduler("a")
    await mortal.worker("w1", slots=4)
    await mortal.worker("w2", slots=4)
    for number in range(40):
        content = {"stages": {**QUICK, "code": 0.1}, "failing_cycles": number % 3, "log_lines": 5}
        await mortal.submit(f"job-{number}", content, user=f"u{number}")

    for _ in range(3):
        await asyncio.sleep(0.5)
        await nats_server.kill()
        await asyncio.sleep(0.3)
        await nats_server.start()

    await mortal.base.all_end()
    await mortal.no_violations()


@pytest.mark.kills
async def test_a_worker_that_starts_before_nats_waits_says_so_once_and_then_works(
    mortal: WorkerSystem, nats_server: NatsServer
) -> None:
    await nats_server.stop()
    worker = await mortal.worker("w1", ready=False)
    await eventually(lambda: "waiting for NATS" in worker.words())
    await asyncio.sleep(1)
    waits = (worker.running, await worker.ready(), worker.words().count("waiting for NATS"))

    await nats_server.start()
    await mortal.base.is_ready(worker)
    await mortal.base.scheduler("a")
    await mortal.submit("job-1", {"stages": QUICK})

    await mortal.until("job-1", "ready")
    assert waits == (True, False, 1)


async def test_a_worker_that_is_told_to_stop_while_nats_is_away_ends_all_the_same(
    mortal: WorkerSystem, nats_server: NatsServer
) -> None:
    await mortal.base.scheduler("a")
    worker = await mortal.worker("w1", HEADGATE_DRAIN_GRACE_S="0.5", HEADGATE_END_GRACE_S="0.2")
    await mortal.submit("job-1", {"stages": {**QUICK, "code": 600}})
    await mortal.until("job-1", "code")
    left_behind = pids_of_attempts(worker)
    await nats_server.kill()

    await worker.stop()

    assert worker.exit_code == 0, worker.words()
    assert left_behind
    assert not any(map(lives, left_behind))


async def test_one_module_that_cannot_be_loaded_is_said_and_the_others_run(system: WorkerSystem) -> None:
    await system.base.scheduler("a")
    worker = await system.worker("w1", HEADGATE_PIPELINES="tests.fixtures.speaking, no.such.module")
    await system.submit("job-1", {"stages": QUICK})

    await system.until("job-1", "ready")

    assert worker.words().count("no.such.module is no pipeline") == 1
    assert await worker.ready()
    assert any("no.such.module is no pipeline" in note for note in worker.notes)


async def test_stages_and_results_are_told_with_what_they_took(at_work: WorkerSystem) -> None:
    await at_work.submit("takes", {"stages": {**QUICK, "code": 0.5}})

    await at_work.until("takes", "ready")

    datas = await at_work.datas("takes")
    ready = datas[-1]
    assert isinstance(ready, JobReady)
    assert 0.5 <= ready.duration_s < 5
    assert [data.iteration for data in datas if isinstance(data, JobStage)] == [1, 1, 1, 1]
