"""Workers that sleep through their leases, again and again, until two hundred attempts were given away behind their
backs: not one of them gets a word into the log, whether it tries by itself or somebody tries for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
import pytest_asyncio

from headgate_contracts import Event, Job, Writer
from headgate_contracts.events import JobData
from libs.eventlog import Conflicted
from libs.local.service import ServiceProcess
from libs.runtime.eventually import eventually
from services.worker.domain import event_about, next_stage
from tests.fixtures.lives import event_id
from tests.fixtures.misbehaving import Door
from tests.fixtures.worker_system import WorkerSystem, a_worker_system, lives, pids_of_attempts

ZOMBIES = 200
WORKERS, SLOTS = 4, 10
MOST_ROUNDS = 15
POLICY = """
[leases]
job_s = 2
heartbeat_s = 0.4
leader_s = 4
leader_heartbeat_s = 0.5

[runs]
max_lost = 30

[queue]
cap = 1000
user_share = 1000
"""


@dataclass(frozen=True)
class Zombie:
    """An attempt as its worker saw it when it fell asleep."""

    job: Job

    @property
    def name(self) -> str:
        return f"{self.job.id}:{self.job.attempt}"


class Night:
    """Rounds of it: jobs run, all workers are stopped, the jobs are given away, all workers wake up."""

    def __init__(self, system: WorkerSystem, workers: list[ServiceProcess]) -> None:
        self.system = system
        self.workers = workers
        self.refused = 0
        self._zombies: list[Zombie] = []
        self._numbers = count()

    async def round(self) -> None:
        door = Door(self.system.folder / f"door-{next(self._numbers)}")
        await self._fill(door)
        asleep = await self._fall_asleep()
        door.open()  # some stages end in their sleep, and are to be told when they wake up
        await asyncio.gather(*(self._given_away(zombie) for zombie in asleep))
        await eventually(self._nothing_is_left)
        self.refused += sum(await asyncio.gather(*(self._is_refused(zombie) for zombie in asleep)))
        for worker in self.workers:
            worker.resume()
        await eventually(lambda: self._say_so(asleep))
        self._zombies += asleep

    async def judge(self) -> None:
        """What the log holds of them."""
        for zombie in self._zombies:
            words = [event for event in await self._events(zombie.job.id) if event.data.attempt == zombie.job.attempt]
            ends = next(
                at
                for at, event in enumerate(words)
                if event.writer is Writer.SCHEDULER and event.data.status == "queued"
            )
            by_worker = [event.data.EVENT for event in words[ends + 1 :] if event.writer is Writer.WORKER]
            assert by_worker == [], zombie.name

    async def ends(self) -> bool:
        """Whatever runs is cancelled; true once nothing is left."""
        jobs = [await self.system.job(name) for name in self.system.base.submitted]
        for job in jobs:
            if job.status.is_running and job.cancel_requested_by is None:
                await self.system.base.write(job, "cancel_requested")
        return all(job.status.is_end for job in jobs)

    def _nothing_is_left(self) -> bool:
        return not [pid for worker in self.workers for pid in pids_of_attempts(worker) if lives(pid)]

    async def _fill(self, door: Door) -> None:
        """As many jobs as there are slots: some for ever, some until the door is open. Those of the round before end
        meanwhile."""

        async def are_busy() -> bool:
            jobs = [await self.system.job(name) for name in self.system.base.submitted]
            for number in range(sum(not job.status.is_end for job in jobs), WORKERS * SLOTS):
                await self._submit(self.system.folder / "never" if number % 2 else door.path)
            return len(await self._running()) >= WORKERS * SLOTS * 0.9

        await eventually(are_busy)

    async def _submit(self, waits_for: Path) -> None:
        name = f"job-{next(self._numbers)}"
        await self.system.submit(name, {"do": "waits", "for": str(waits_for)}, user=f"u-{name}", pipeline="misbehaving")

    async def _running(self) -> list[Job]:
        jobs = [await self.system.job(name) for name in self.system.base.submitted]
        return [job for job in jobs if job.status.is_running and job.worker is not None]

    async def _fall_asleep(self) -> list[Zombie]:
        for worker in self.workers:
            worker.pause()
        return [Zombie(job) for job in await self._running()]

    async def _given_away(self, zombie: Zombie) -> None:
        async def is_over() -> bool:
            job = await self.system.job(zombie.job.id)
            return (job.status.is_running, job.attempt) != (True, zombie.job.attempt)

        await eventually(is_over)

    async def _is_refused(self, zombie: Zombie) -> bool:
        """What it would say next, said for it with all rights: the log refuses it by its number alone."""
        event = event_about(
            zombie.job, next_stage(zombie.job), event_id=event_id("zombie", zombie.job.seq), now=zombie.job.updated_at
        )
        return isinstance(await self.system.base.log.append(event, after=zombie.job), Conflicted)

    def _say_so(self, asleep: list[Zombie]) -> bool:
        words = "".join(worker.words() for worker in self.workers)
        return all(f"{zombie.name} is not ours any more" in words for zombie in asleep)

    async def _events(self, job_id: str) -> list[Event[JobData]]:
        records = await self.system.base.log.read(job_id)
        return [record.event for record in records if isinstance(record.event, Event)]  # type: ignore[misc]


@pytest_asyncio.fixture
async def system(nats_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[WorkerSystem]:
    async with a_worker_system(nats_url, redis_url, tmp_path, policy=POLICY) as system:
        yield system


@pytest.mark.timeout(600)
async def test_two_hundred_of_two_hundred_zombies_are_refused(system: WorkerSystem) -> None:
    await system.base.scheduler("a")
    workers = [
        await system.worker(f"w{number}", slots=SLOTS, HEADGATE_PIPELINES="tests.fixtures.misbehaving")
        for number in range(WORKERS)
    ]
    night = Night(system, workers)

    rounds = 0
    while night.refused < ZOMBIES and rounds < MOST_ROUNDS:
        rounds += 1
        await night.round()

    await night.judge()
    assert night.refused == len(night._zombies) >= ZOMBIES
    await eventually(night.ends, every_s=0.5)
    await system.no_violations()
    print(f"{night.refused} of {len(night._zombies)} zombies refused in {rounds} rounds")  # noqa: T201 - for the report
