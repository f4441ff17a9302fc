"""What a worker costs, and what its loss costs: a kill until the job runs elsewhere, its work stored and fetched by the
megabyte, a job in which nothing is to be done.

The floor beside the cost of a checkpoint is the pure copy: the same bytes to a file and back, without packing and
without a server. Workers and scheduler are processes of their own, every byte is synced by the server.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from headgate_contracts.events import JobStage
from libs.eventlog import migrate
from libs.eventlog.buckets import JetStreamObjects
from libs.eventlog.streams import WORKSPACES
from libs.policy import Policy
from libs.runtime.eventually import eventually
from services.worker.child.folder import Folder
from services.worker.child.messages import Begin
from services.worker.sandbox.command import CommandBounds, Level
from tests.fixtures.clients import nats_client
from tests.fixtures.logs import new_epoch, settings
from tests.fixtures.scheduler_system import POLICY
from tests.fixtures.worker_system import QUICK, WorkerSystem, a_worker_system

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

MIB = 1024 * 1024
JOBS, SLOTS = 100, 4
SIZES = (1, 8, 64)
LEAD = "leader_s = 1.5\nleader_heartbeat_s = 0.5\n"
LEASES = {
    30: f"[leases]\njob_s = 30\nheartbeat_s = 5\n{LEAD}",  # the default
    3: f"[leases]\njob_s = 3\nheartbeat_s = 1\n{LEAD}",
}
BUILDING = "services.worker.rehearsal, tests.fixtures.building"


async def test_from_a_kill_to_the_job_running_elsewhere(nats_url: str, redis_url: str, tmp_path: Path) -> None:
    print("\n\n### kill -9 of a worker, until the stage it was in runs on another one\n")
    print("| lease | seconds, 1 MiB of work restored |\n| --- | --- |")
    for lease_s, policy in LEASES.items():
        folder = tmp_path / str(lease_s)
        folder.mkdir()
        async with a_worker_system(nats_url, redis_url, folder, policy=policy) as system:
            print(f"| {lease_s} s | {await kill_to_stage(system, lease_s):.1f} |")
        await emptied(nats_url, redis_url)


async def kill_to_stage(system: WorkerSystem, lease_s: int) -> float:
    await system.base.scheduler("a")
    told = {"HEADGATE_PIPELINES": BUILDING, "HEADGATE_PROVIDERS": "ollama"}
    w1 = await system.worker("w1", slots=1, ready=True, **told)
    job = f"job-{lease_s}"
    await system.submit(job, {"sleep": {"deps": 5}, "bytes": MIB}, pipeline="building")
    await system.until(job, "deps")
    await system.worker("w2", slots=1, ready=True, **told)
    killed = time.time()
    await w1.kill()

    async def again() -> float:
        stages = [record for record in await system.base.log.read(job) if _is_stage(record, "deps")]
        assert len(stages) == 2, await system.story(job)
        return stages[1].at.timestamp()

    return await eventually(again, within_s=60, every_s=0.1) - killed


def _is_stage(record: Any, stage: str) -> bool:
    data = getattr(record.event, "data", None)
    return isinstance(data, JobStage) and data.stage == stage and not data.restored


async def emptied(nats_url: str, redis_url: str) -> None:
    import redis.asyncio

    from tests.fixtures.servers import delete_streams

    await delete_streams([nats_url])
    async with redis.asyncio.from_url(redis_url) as client:
        await client.flushall()


async def test_a_checkpoint(nats_url: str, tmp_path: Path) -> None:
    async with nats_client(nats_url) as client:
        await migrate(client, settings(workspaces_max_bytes=512 * MIB), new_epoch=new_epoch())
        shelf = JetStreamObjects(client, WORKSPACES)
        print("\n\n### a checkpoint, ms for each MiB of workspace\n")
        print("| workspace | packed | pack | store | fetch | unpack | floor: write and read |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for kind, make in (("source", source), ("noise", noise)):
            for size in SIZES:
                print(
                    f"| {size} MiB of {kind} | {await one_checkpoint(shelf, tmp_path / f'{kind}{size}', size, make)} |"
                )


async def one_checkpoint(shelf: JetStreamObjects, home: Path, size: int, make: Callable[[Path, int], None]) -> str:
    one, other = folder_in(home / "a"), folder_in(home / "b")
    await asyncio.to_thread(make, one.workspace, size)
    store, fetched = home / "a" / "store", home / "b" / "store"
    pack_s = await took(lambda: asyncio.to_thread(one.pack))
    content = store.read_bytes()
    store_s = await took(lambda: shelf.put("checkpoint", content))
    fetch_s = await took(lambda: shelf.get("checkpoint"))
    fetched.write_bytes(content)
    unpack_s = await took(lambda: asyncio.to_thread(other.restore))
    floor_s = await took(lambda: asyncio.to_thread(copied, home / "floor", os.urandom(size * MIB)))
    each = " | ".join(f"{1000 * seconds / size:.1f}" for seconds in (pack_s, store_s, fetch_s, unpack_s, floor_s))
    return f"{len(content) / (size * MIB):.0%} | {each}"


def folder_in(home: Path) -> Folder:
    (home / "kept" / "workspace").mkdir(parents=True)
    return Folder(
        Begin(
            job_id="job-1",
            project_id="p",
            pipeline="rehearsal",
            input="{}",
            folder=str(home / "kept"),
            store=str(home / "store"),
            store_bytes=Policy().runs.checkpoint_bytes,
            area=str(home / "area"),
            level=Level("plain"),
            bounds=CommandBounds.of(Policy().sandbox),
            command_s=60,
        )
    )


def source(workspace: Path, size: int) -> None:
    """Files of 16 KiB, as programs are: words and signs that come again."""
    words = [f"name_{number}" for number in range(400)] + ["def", "return", "self", "(", ")", ":", "=", "\n    "]
    dice = random.Random(7)
    for number in range(size * 64):
        text = " ".join(dice.choices(words, k=2000))[: 16 * 1024]
        (workspace / f"module_{number}.py").write_text(text.ljust(16 * 1024), encoding="utf-8")


def noise(workspace: Path, size: int) -> None:
    (workspace / "noise").write_bytes(random.Random(7).randbytes(size * MIB))


def copied(path: Path, content: bytes) -> int:
    path.write_bytes(content)
    return len(path.read_bytes())


async def took(work: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def test_a_job_in_which_nothing_is_to_be_done(nats_url: str, redis_url: str, tmp_path: Path) -> None:
    async with a_worker_system(nats_url, redis_url, tmp_path, policy=POLICY) as system:
        await system.base.scheduler("a")
        worker = await system.worker("w1", slots=SLOTS)
        alone = [await life_ms(system, f"alone-{number}") for number in range(20)]
        cpu_before = cpu_s(worker.pid)
        began = time.perf_counter()
        for number in range(JOBS):
            await system.submit(f"many-{number}", {"stages": QUICK}, user=f"u{number}")
        await system.base.all_end(within_s=120)
        many_s, used_s = time.perf_counter() - began, cpu_s(worker.pid) - cpu_before

    print("\n\n### a job in which nothing is to be done: five events, one process, one result\n")
    print("| figure | value |\n| --- | --- |")
    print(f"| claim → ready, one alone, median | {median(alone):.0f} ms |")
    print(f"| CPU of the worker's own process for each | {1000 * used_s / JOBS:.1f} ms |")
    print(f"| jobs a second, {SLOTS} slots, submission included | {JOBS / many_s:.0f} |")


async def life_ms(system: WorkerSystem, job_id: str) -> float:
    await system.submit(job_id, {"stages": QUICK}, user=job_id)
    await system.until(job_id, "ready")
    times = {record.event.data.EVENT.value: record.at for record in await system.base.log.read(job_id)}  # type: ignore[union-attr]
    return (times["ready"] - times["started"]).total_seconds() * 1000


def cpu_s(pid: int) -> float:
    parts = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")
