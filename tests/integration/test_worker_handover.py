"""Real workers, a real scheduler, a real object store: work goes from hand to hand, and nothing of it is done twice."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from headgate_contracts.events import JobDispatched, JobGivenBack, JobStage
from libs.eventlog.buckets import JetStreamObjects
from libs.eventlog.streams import WORKSPACES
from libs.local.permissions import NATS_USERS, nats_users
from libs.local.servers import DEFAULT_NATS_USERS, NatsServer, ValkeyServer
from libs.local.service import ServiceProcess
from libs.runtime.eventually import eventually
from tests.fixtures.clients import nats_client
from tests.fixtures.misbehaving import Door
from tests.fixtures.worker_system import WorkerSystem, a_worker_system, heard_lines, lives, pids_of_attempts

PIPELINES = "tests.fixtures.building, tests.fixtures.misbehaving"
POLICY = """
[leases]
job_s = 30
heartbeat_s = 0.5
leader_s = 4
leader_heartbeat_s = 0.5

[providers]
give_back_after_s = 3
"""
BRIEF = POLICY.replace("job_s = 30", "job_s = 3")
KEY = "sk-live-0123456789abcdefghij"
PROVIDERS = {"HEADGATE_PROVIDERS": "openai", "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
ONE_CYCLE = ["scaffold 1", "code 1", "deps 1", "checks 1"]


@pytest_asyncio.fixture
async def system(nats_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[WorkerSystem]:
    async with a_worker_system(nats_url, redis_url, tmp_path, policy=POLICY) as system:
        await system.base.scheduler("a")
        yield system


@pytest_asyncio.fixture
async def hasty(nats_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[WorkerSystem]:
    """With leases whose end can be waited for."""
    async with a_worker_system(nats_url, redis_url, tmp_path, policy=BRIEF) as system:
        await system.base.scheduler("a")
        yield system


async def builder(system: WorkerSystem, name: str, *, slots: int = 4, **told: str) -> ServiceProcess:
    return await system.worker(name, slots=slots, ready=True, HEADGATE_PIPELINES=PIPELINES, **PROVIDERS, **told)


async def submit(system: WorkerSystem, job_id: str = "job-1", *, user: str = "u1", **content: Any) -> None:
    await system.submit(job_id, content, user=user, pipeline="building")


async def steps(system: WorkerSystem, job_id: str = "job-1") -> list[str]:
    await system.until(job_id, "ready", "failed")
    return (await system.result(job_id))["steps.txt"].decode().splitlines()


async def kept(system: WorkerSystem) -> list[str]:
    return await JetStreamObjects(system.base.nc, WORKSPACES).names()


@pytest.mark.kills
async def test_a_killed_workers_job_goes_on_elsewhere_with_its_work(hasty: WorkerSystem) -> None:
    system = hasty
    w1 = await builder(system, "w1")
    await submit(system, sleep={"deps": 1}, bytes=3_000_000)
    await system.until("job-1", "deps")
    left_behind = pids_of_attempts(w1)

    await w1.kill()
    folders = system.folder / "workspaces" / "w1"
    assert [path.name for path in folders.glob("*-*")] == ["job-1-1"]
    await builder(system, "w2")

    await eventually(lambda: not list(folders.glob("*-*")))
    assert await steps(system) == ONE_CYCLE
    assert (await system.story("job-1")).endswith("given_back dispatched started (scaffold) (code) deps checks ready")
    assert left_behind
    assert not any(map(lives, left_behind))
    await eventually(lambda: _is_empty(system))
    await system.no_violations()


async def _is_empty(system: WorkerSystem) -> bool:
    return not await kept(system)


@pytest.mark.kills
async def test_jobs_that_lose_their_worker_again_and_again_repeat_no_recorded_stage(hasty: WorkerSystem) -> None:
    system = hasty
    for number in range(3):
        await submit(system, f"job-{number}", user=f"u{number}", sleep={"code": 0.4, "deps": 0.4, "checks": 0.4})

    for turn in range(3):
        worker = await builder(system, f"w{turn}")
        await eventually(lambda: _all_run(system))
        await worker.kill()
    await builder(system, "last")

    for number in range(3):
        assert await steps(system, f"job-{number}") == ONE_CYCLE
        real = [
            data for data in await system.datas(f"job-{number}") if isinstance(data, JobStage) and not data.restored
        ]
        begun = [data.stage for data in real]
        assert sorted(set(begun), key=begun.index) == ["scaffold", "code", "deps", "checks"]
    await system.no_violations()


async def _all_run(system: WorkerSystem) -> bool:
    return all([(await system.job(f"job-{number}")).status.is_running for number in range(3)])


@pytest.mark.kills
async def test_of_three_workers_of_which_two_go_the_third_gives_nothing_back(system: WorkerSystem) -> None:
    """With three slots each, so that of eight jobs two at least are on any of them."""
    jobs = [f"job-{number}" for number in range(8)]
    workers = {
        f"w{number}": await builder(system, f"w{number}", slots=3, HEADGATE_DRAIN_GRACE_S="0.5") for number in range(3)
    }
    for job in jobs:
        await submit(system, job, user=job, sleep={"deps": 4})
    for job in jobs:
        await system.until(job, "deps")
    stays = workers.pop("w2")
    on_it = {job for job in jobs if (await system.job(job)).worker == "w2"}

    await asyncio.gather(*(worker.stop() for worker in workers.values()))

    back = {job for job in jobs if any(isinstance(data, JobGivenBack) for data in await system.datas(job))}
    assert stays.exit_code is None
    assert len(on_it) >= 2
    assert back == set(jobs) - on_it


@pytest.mark.kills
async def test_a_worker_that_is_told_to_stop_hands_over_with_the_work(system: WorkerSystem) -> None:
    w1 = await builder(system, "w1", HEADGATE_DRAIN_GRACE_S="0.5")
    await submit(system, sleep={"deps": 3})
    await system.until("job-1", "deps")

    await w1.stop()
    handed = (await system.datas("job-1"))[-1]
    await builder(system, "w2")

    assert w1.exit_code == 0
    assert isinstance(handed, JobGivenBack)
    assert (handed.reason, handed.finished_stages, handed.checkpoint) == ("drained", ("scaffold", "code"), "job-1-1-2")
    assert await steps(system) == ONE_CYCLE
    assert (await system.job("job-1")).lost == 0


async def test_a_provider_that_pauses_for_long_gets_the_job_back_when_it_opens(system: WorkerSystem) -> None:
    worker = await builder(system, "w1")
    await submit(system, busy_once=4)

    assert await steps(system) == ["scaffold 1", "code 1", "deps 1", "checks 1"]

    job, records = await system.job("job-1"), await system.base.log.read("job-1")
    told = next(data for data in await system.datas("job-1") if isinstance(data, JobGivenBack))
    assert (told.reason, told.provider, told.checkpoint) == ("provider", "openai", "job-1-1-2")
    assert (job.lost, job.attempt) == (0, 2)
    shut = next(record.at for record in records if _stage(record) == "code")
    again = [record.at for record in records if _event(record) == "dispatched"][1]
    assert (again - shut).total_seconds() >= 4
    assert KEY not in worker.words()


async def test_a_provider_that_pauses_for_a_moment_is_waited_for_and_so_by_all(
    system: WorkerSystem, nats_url: str
) -> None:
    await builder(system, "w1")
    async with heard_lines(nats_url) as said:
        await submit(system, busy=[2.2])
        await eventually(lambda: any("called at" in line.line for line in said))
        await submit(system, "job-2", user="u2")

        await system.until("job-1", "ready")
        await system.until("job-2", "ready")

    for job_id in ("job-1", "job-2"):
        assert await system.story(job_id) == "queued dispatched started scaffold code deps checks ready"
    called = next(record.at for record in await system.base.log.read("job-1") if _stage(record) == "code")
    through = next(record.at for record in await system.base.log.read("job-2") if _stage(record) == "deps")
    assert (through - called).total_seconds() >= 2.2  # the other one's pause


async def test_no_more_jobs_than_it_allows_are_in_a_stage_at_once(system: WorkerSystem) -> None:
    await builder(system, "w1")
    ids = [f"job-{number}" for number in range(3)]
    for job_id in ids:  # two are allowed in deps
        await submit(system, job_id, user=f"u-{job_id}", sleep={"deps": 1})

    for job_id in ids:
        await system.until(job_id, "ready")

    left = [record.at for job_id in ids for record in await system.base.log.read(job_id) if _stage(record) == "checks"]
    first, _, last = sorted(left)
    assert (last - first).total_seconds() > 0.9  # the third began when one of the others had ended


def _event(record: Any) -> str:
    return record.event.data.EVENT.value


def _stage(record: Any) -> str:
    data = getattr(record.event, "data", None)
    return data.stage if isinstance(data, JobStage) else ""


async def test_a_worker_keeps_work_and_shuts_providers_with_the_rights_of_its_own_user(
    valkey_server: ValkeyServer, tmp_path: Path
) -> None:
    rights = nats_users(dict.fromkeys(NATS_USERS, "hush"), shard="main", pools=["default"])["worker"]
    server = NatsServer(tmp_path / "nats", users=(*DEFAULT_NATS_USERS, rights))
    async with server, a_worker_system(server.url, valkey_server.url, tmp_path, policy=POLICY) as system:
        await system.base.scheduler("a")
        worker = await builder(system, "w1", HEADGATE_NATS_URL=server.url_for(rights))

        await submit(system, busy=[0.2], failing_cycles=1, bytes=3_000_000)  # small ones are kept for another run

        assert len(await steps(system)) == 8
        await eventually(lambda: _is_empty(system))
        assert "permissions violation" not in worker.words()


@pytest.mark.kills
async def test_workers_that_sleep_through_their_leases_write_no_word_and_go_on_with_new_work(
    hasty: WorkerSystem,
) -> None:
    system, door = hasty, Door(hasty.folder / "open")
    workers = [await builder(system, name) for name in ("w1", "w2")]
    ids = [f"job-{number}" for number in range(8)]
    for number, job_id in enumerate(ids):  # some end a stage in their sleep, others not
        content = {"do": "waits", "for": str(door.path if number % 2 else system.folder / "never")}
        await system.submit(job_id, content, user=f"u-{job_id}", pipeline="misbehaving")
    await eventually(lambda: _are(system, ids, "code"))

    for worker in workers:
        worker.pause()
    door.open()
    await eventually(lambda: _are(system, ids, "queued"))
    zombies = [pid for worker in workers for pid in pids_of_attempts(worker)]
    before = {job_id: len(await system.datas(job_id)) for job_id in ids}
    for worker in workers:
        worker.resume()

    await eventually(lambda: _are(system, ids, "code", "deps", "checks", "ready"))
    for job_id in ids:
        after = (await system.datas(job_id))[before[job_id] :]
        assert isinstance(after[0], JobDispatched)
        assert {data.attempt for data in after} == {2}
        assert any(f"{job_id}:1 is not ours any more" in worker.words() for worker in workers)
    assert not any(map(lives, zombies))
    for endless in ids[::2]:
        await system.write(endless, "cancel_requested")
    await system.base.all_end()
    await system.no_violations()


async def _are(system: WorkerSystem, ids: list[str], *statuses: str) -> bool:
    return all([(await system.job(job_id)).status in statuses for job_id in ids])


def _environment(pid: int) -> bytes:
    """As far as this user may see it: an attempt keeps it from all but root."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except PermissionError:
        return b""


def _contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


async def test_a_key_is_in_no_file_no_environment_and_no_log(
    system: WorkerSystem, nats_url: str, tmp_path: Path
) -> None:
    worker = await builder(system, "w1")
    await submit(system, sleep={"deps": 600})
    await system.until("job-1", "deps")

    environments = [await asyncio.to_thread(_environment, pid) for pid in pids_of_attempts(worker)]
    files = await asyncio.to_thread(_contents, tmp_path / "workspaces")

    assert environments
    assert files
    assert not any(KEY.encode() in content for content in (*environments, *files))
    async with nats_client(nats_url) as client:
        stored = await JetStreamObjects(client, WORKSPACES).get("job-1-1-2")
    assert stored
    assert KEY not in worker.words()
