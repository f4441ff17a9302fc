"""Work over several workers: each has its share of it, and who goes gives back its own alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headgate_contracts.events import JobGivenBack, JobStarted
from tests.fixtures.worker_system import WorkerSystem, a_worker_system

JOBS = tuple(f"job-{number}" for number in range(8))


@pytest.mark.kills
async def test_of_three_workers_the_one_that_stays_keeps_its_jobs(
    nats_url: str, redis_url: str, tmp_path: Path
) -> None:
    async with a_worker_system(nats_url, redis_url, tmp_path) as system:
        await system.base.scheduler("a")
        going = [await system.worker(name, HEADGATE_DRAIN_GRACE_S="0.5") for name in ("w1", "w2")]
        await system.worker("w3")
        for job in JOBS:
            await system.submit(job, {"stages": {"scaffold": 0, "code": 60}}, user=f"u-{job}")
        for job in JOBS:
            await system.until(job, "code")
        at_first = {job: (await _workers(system, job))[0] for job in JOBS}

        await asyncio.gather(*(worker.stop() for worker in going))

        assert set(at_first.values()) == {"w1", "w2", "w3"}  # none is full while another is idle
        for job, worker in at_first.items():
            back = [data.reason for data in await system.datas(job) if isinstance(data, JobGivenBack)]
            assert back == ([] if worker == "w3" else ["drained"]), job
            assert set((await _workers(system, job))[1:]) <= {"w3"}, job


async def _workers(system: WorkerSystem, job: str) -> list[str]:
    return [data.worker for data in await system.datas(job) if isinstance(data, JobStarted)]
