"""What the whole system does on this machine: from submit to start, jobs a second, from a kill to going on.

Everything runs as `headgate up` runs it, over HTTP and with every event synced. The floor beside jobs a second is what
the same log takes as raw appends of as many events; both run in the same minute.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import aclosing
from pathlib import Path
from statistics import quantiles

import httpx
import pytest
from nats.js import JetStreamContext

from headgate_contracts import Event, Tier
from headgate_contracts.events import JobData
from libs.eventlog import JetStreamLog, connect, migrate
from libs.eventlog.api import state_of
from libs.eventlog.streams import JOBS
from libs.local.servers import NatsServer
from libs.runtime.eventually import eventually
from tests.fixtures.installation import Installation, installed
from tests.fixtures.lives import life_of
from tests.fixtures.logs import new_epoch, settings

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

IDLE, LOADED, USERS = 100, 400, 20
INSTANT = {"stages": {"scaffold": 0, "code": 0, "deps": 0, "checks": 0}}
ROOMY = """
[tiers.cto_scale]
jobs_per_user = 64
jobs_per_project = 64
jobs_per_day = 100000
[queue]
cap = 10000
user_share = 10000
[submissions]
per_minute = 1000000
bytes_per_minute = 1000000000
changes_per_minute = 1000000
"""
KILLED = ("worker", "scheduler", "admission", "notifier", "valkey", "nats")


async def test_the_system(tmp_path: Path) -> None:
    async with installed(tmp_path, policy=ROOMY, workers=2, slots=8) as there:
        async with there.client("idle", Tier.CTO_SCALE) as client:
            idle = [await submit_to_start(there, client, number) for number in range(IDLE)]
        jobs_s, events_s = await throughput(there)
        back = {name: await going_on(there, name) for name in KILLED}
    raw_s = await raw_appends(tmp_path)

    print("\n\n### the system, `headgate up`, 2 workers of 8 slots\n")
    print("| figure | value |\n| --- | --- |")
    print(f"| submit → started, idle, p50 / p99 | {in_ms(idle, 50)} / {in_ms(idle, 99)} ms |")
    print(f"| jobs a second, submit to end, stages of no length | {jobs_s:.0f} |")
    print(f"| events a second meanwhile | {events_s:.0f} |")
    print(f"| floor: raw synced appends a second, 64 in flight | {raw_s:.0f} |")
    for name, seconds in back.items():
        print(f"| {name}: from kill -9 to the next job's end | {seconds:.1f} s |")


async def submit(client: httpx.AsyncClient, project: str) -> str:
    body = {"project_id": project, "pipeline": "rehearsal", "input": INSTANT}
    while True:
        try:
            response = await client.post("/jobs", json=body)
        except httpx.TransportError:
            continue
        if response.status_code == 202:
            return response.json()["id"]
        assert response.status_code in (502, 503, 504), response.text
        await asyncio.sleep(0.02)


async def submit_to_start(there: Installation, client: httpx.AsyncClient, number: int) -> float:
    """By the log's own clock for the end, by ours for the beginning: one machine, one clock."""
    begun = time.time()
    job = await submit(client, f"project-{number % 5}")
    record = await first(there, job, "started")
    return record - begun


async def first(there: Installation, job: str, event: str) -> float:
    nc = await connect(there.up.nats_url, name="bench")
    try:
        log = JetStreamLog(nc, epoch=(await state_of(nc, JOBS)).epoch or "")
        async with aclosing(log.follow(after=max(0, (await state_of(nc, JOBS)).last_seq - 50))) as pages:
            async for page in pages:
                for record in page.records:
                    data = record.event.data if isinstance(record.event, Event) else None
                    if isinstance(data, JobData) and (data.job_id, data.EVENT) == (job, event):
                        return record.at.timestamp()
    finally:
        await nc.close()
    raise AssertionError("a log is followed for ever")


async def throughput(there: Installation) -> tuple[float, float]:
    before = len(await there.records())
    begun = time.perf_counter()
    jobs = await asyncio.gather(*(some_jobs(there, user) for user in range(USERS)))
    promised = {job for each in jobs for job in each}
    await eventually(lambda: ended(there, promised), within_s=300, every_s=0.2)
    seconds = time.perf_counter() - begun
    return LOADED / seconds, (len(await there.records()) - before) / seconds


async def some_jobs(there: Installation, user: int) -> list[str]:
    async with there.client(f"user-{user}", Tier.CTO_SCALE) as client:
        return [await submit(client, f"project-{user}") for _ in range(LOADED // USERS)]


async def ended(there: Installation, promised: Iterable[str]) -> bool:
    events = [record.event for record in await there.records() if isinstance(record.event, Event)]
    done = {event.data.job_id for event in events if isinstance(event.data, JobData) and event.data.status.is_end}
    return set(promised) <= done


async def going_on(there: Installation, name: str) -> float:
    """From the kill until a job that was submitted after it has ended."""
    pid, begun = there.pid(name), time.perf_counter()
    there.signal(name, 9)  # type: ignore[arg-type]
    async with there.client("killer", Tier.CTO_SCALE) as client:
        job = await submit(client, "killed")
        await eventually(lambda: settled(client, job), within_s=60, every_s=0.02)
    seconds = time.perf_counter() - begun
    await eventually(lambda: there.pid(name) != pid, within_s=30)
    return seconds


async def settled(client: httpx.AsyncClient, job: str) -> bool:
    try:
        response = await client.get(f"/jobs/{job}")
    except httpx.TransportError:
        return False
    return response.status_code == 200 and response.json()["status"] == "ready"


async def raw_appends(folder: Path) -> float:
    """The floor: events of that size, synced, without anything of ours around them."""
    server = NatsServer(folder / "floor")
    (folder / "floor").mkdir()
    await server.start()
    nc = await connect(server.url, name="floor")
    await migrate(nc, settings(), new_epoch=new_epoch())
    js = JetStreamContext(nc)
    events = iter([event for number in range(500) for event in life_of(f"floor-{number}")])
    begun = time.perf_counter()

    async def publish() -> None:
        for event in events:
            await js.publish(event.subject, event.encode(), headers={"Nats-Msg-Id": event.id})

    await asyncio.gather(*(publish() for _ in range(64)))
    seconds = time.perf_counter() - begun
    await nc.close()
    await server.stop()
    return 4000 / seconds


def in_ms(seconds: list[float], percent: int) -> str:
    return f"{quantiles(seconds, n=100)[percent - 1] * 1000:.0f}"
