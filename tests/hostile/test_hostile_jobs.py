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
from tests.fixtures.floor import QUICK, Floor, a_floor
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
async def floor(nats_url: str, redis_url: str, tmp_path: Path, outer_groups: list[Path]) -> AsyncIterator[Floor]:
    async with a_floor(nats_url, redis_url, tmp_path, policy=POLICY) as floor:
        await floor.crowd.scheduler("a")
        yield floor


async def a_worker(floor: Floor, name: str, groups: list[Path], *, slots: int = 2) -> ServiceProcess:
    worker = await floor.worker(name, slots=slots, HEADGATE_PIPELINES=PIPELINES)
    for group in groups:
        for pid in (worker.pid, *worker_children(worker.pid)):
            (group / "cgroup.procs").write_text(str(pid), encoding="ascii")
    return worker


def worker_children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text(encoding="ascii").split()]


async def test_a_worker_outlives_its_hostile_jobs_and_its_other_jobs_do_not_notice(
    floor: Floor, outer_groups: list[Path]
) -> None:
    worker = await a_worker(floor, "w1", outer_groups)
    await floor.submit("quiet", {"stages": {**QUICK, "code": 15}}, user="u9")

    for ended_by, script in HOSTILE.items():
        await floor.submit(ended_by, {"script": script}, user=ended_by, pipeline="hostile")
        await floor.until(ended_by, "failed")
        (failed,) = [data for data in await floor.datas(ended_by) if isinstance(data, JobFailed)]
        assert failed.summary == f"The command was ended: {ended_by}."
    await floor.until("quiet", "ready")

    assert worker.exit_code is None
    assert (await floor.job("quiet")).attempt == 1
    await eventually(lambda: not list((floor.folder / "workspaces" / "w1").glob("*-*")))
    await floor.no_violations()


async def test_a_daemon_ends_with_its_command_and_its_job_goes_on(floor: Floor, outer_groups: list[Path]) -> None:
    await a_worker(floor, "w1", outer_groups)
    nonce = uuid.uuid4().hex
    script = f"MARK={nonce} setsid bash -c 'trap \"\" TERM; sleep 600' >/dev/null 2>&1 & sleep 0.3"

    await floor.submit("daemon", {"script": script}, pipeline="hostile")
    await floor.until("daemon", "ready")

    assert living(nonce) == []


@pytest.mark.parametrize("fatal", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_command_outlives_neither_its_worker_nor_its_lease(
    floor: Floor, outer_groups: list[Path], fatal: signal.Signals
) -> None:
    worker = await a_worker(floor, "w1", outer_groups)
    nonce = uuid.uuid4().hex
    script = f"export MARK={nonce}; trap '' TERM; setsid sleep 600 & sleep 600"
    await floor.submit("long", {"script": script}, pipeline="hostile")
    await eventually(lambda: len(living(nonce)) >= 2)

    os.kill(worker.pid, fatal)

    await eventually(lambda: living(nonce) == [])
    if fatal is signal.SIGSTOP:
        worker.resume()
