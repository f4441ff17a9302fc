"""Hostile jobs in a real worker: it outlives each of them, its other jobs do not notice, and nothing is left."""

import os
import signal
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from headgate_contracts.events import JobFailed
from libs.local.service import ServiceProcess
from libs.runtime.eventually import eventually
from tests.fixtures.worker_system import QUICK, WorkerSystem, a_worker_system
from tests.hostile.conftest import BOUNDS, living

SANDBOX = "\n[sandbox]\n" + "".join(f"{name} = {value}\n" for name, value in BOUNDS.items())
POLICY = "[leases]\njob_s = 5\nheartbeat_s = 0.3\nleader_s = 4\nleader_heartbeat_s = 0.5\n" + SANDBOX
PIPELINES = "services.worker.rehearsal,tests.hostile.pipeline"
FILLED = "head -c 4000000 /dev/zero"

HOSTILE = {
    "processes": "bomb() { bomb | bomb & }; bomb; wait; sleep 600",
    "memory": "for i in $(seq 12); do (x=$(head -c 40000000 /dev/zero | tr '\\0' x); sleep 600) & done; wait",
    "disk": f"i=0; while :; do i=$((i+1)); {FILLED} > file-$i; done",
    "output": "yes hostile",
}


@pytest_asyncio.fixture
async def system(
    nats_url: str, redis_url: str, tmp_path: Path, outer_groups: list[Path]
) -> AsyncIterator[WorkerSystem]:
    async with a_worker_system(nats_url, redis_url, tmp_path, policy=POLICY) as system:
        await system.base.scheduler("a")
        yield system


async def a_worker(system: WorkerSystem, name: str, groups: list[Path], *, slots: int = 2) -> ServiceProcess:
    worker = await system.worker(name, slots=slots, HEADGATE_PIPELINES=PIPELINES)
    for group in groups:
        for pid in (worker.pid, *worker_children(worker.pid)):
            (group / "cgroup.procs").write_text(str(pid), encoding="ascii")
    return worker


def worker_children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text(encoding="ascii").split()]


async def test_a_worker_outlives_its_hostile_jobs_and_its_other_jobs_do_not_notice(
    system: WorkerSystem, outer_groups: list[Path]
) -> None:
    worker = await a_worker(system, "w1", outer_groups)
    await system.submit("quiet", {"stages": {**QUICK, "code": 15}}, user="u9")

    for ended_by, script in HOSTILE.items():
        await system.submit(ended_by, {"script": script}, user=ended_by, pipeline="hostile")
        await system.until(ended_by, "failed")
        (failed,) = [data for data in await system.datas(ended_by) if isinstance(data, JobFailed)]
        assert failed.summary == f"The command was ended: {ended_by}."
    await system.until("quiet", "ready")

    assert worker.exit_code is None
    assert (await system.job("quiet")).attempt == 1
    await eventually(lambda: not list((system.folder / "workspaces" / "w1").glob("*-*")))
    await system.no_violations()


async def test_a_daemon_ends_with_its_command_and_its_job_goes_on(
    system: WorkerSystem, outer_groups: list[Path]
) -> None:
    await a_worker(system, "w1", outer_groups)
    nonce = uuid.uuid4().hex
    script = f"MARK={nonce} setsid bash -c 'trap \"\" TERM; sleep 600' >/dev/null 2>&1 & sleep 0.3"

    await system.submit("daemon", {"script": script}, pipeline="hostile")
    await system.until("daemon", "ready")

    assert living(nonce) == []


@pytest.mark.parametrize("fatal", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_command_outlives_neither_its_worker_nor_its_lease(
    system: WorkerSystem, outer_groups: list[Path], fatal: signal.Signals
) -> None:
    worker = await a_worker(system, "w1", outer_groups)
    nonce = uuid.uuid4().hex
    script = f"export MARK={nonce}; trap '' TERM; setsid sleep 600 & sleep 600"
    await system.submit("long", {"script": script}, pipeline="hostile")
    await eventually(lambda: len(living(nonce)) >= 2)

    os.kill(worker.pid, fatal)

    await eventually(lambda: living(nonce) == [])
    if fatal is signal.SIGSTOP:
        worker.resume()
