"""A hundred jobs while everything that runs is killed once: the log alone says what became of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx

from headgate_contracts import Tier
from headgate_contracts.events import JobData
from libs.policy import load_policy
from libs.runtime.eventually import eventually
from tests.fixtures.audit import audit
from tests.fixtures.installation import Installation, installed

JOBS, USERS = 100, 10
QUICK = """
[leases]
job_s = 6
heartbeat_s = 1
"""
INPUT = {"stages": {"scaffold": 0.2, "code": 1.0, "deps": 0.2, "checks": 0.2}, "failing_cycles": 1, "log_lines": 3}
VICTIMS = ("worker", "scheduler", "admission", "notifier", "nats", "valkey", "worker-2")
AGAIN = (502, 503, 504)


async def insisting(call: Callable[[], Awaitable[httpx.Response]]) -> httpx.Response:
    """What a client does that means it: the same request again until somebody answers."""
    while True:
        try:
            response = await call()
        except httpx.TransportError:
            await asyncio.sleep(0.2)  # the connection went with its holder
            continue
        if response.status_code not in AGAIN:
            return response
        await asyncio.sleep(0.2)  # as `Retry-After` asks, only sooner


async def submit(client: httpx.AsyncClient, key: str) -> str:
    body = {"project_id": f"project-{key[0]}", "pipeline": "rehearsal", "input": INPUT}
    headers = {"Idempotency-Key": key}
    response = await insisting(lambda: client.post("/jobs", json=body, headers=headers))
    assert response.status_code == 202, response.text
    return response.json()["id"]


async def jobs_of(there: Installation, user: int) -> list[str]:
    async with there.client(f"user-{user}", Tier.CTO_SCALE) as client:
        jobs = []
        for number in range(JOBS // USERS):
            jobs.append(await submit(client, f"{user}-{number}"))
            await asyncio.sleep(0.2)  # spread over the time in which everything is killed
        return jobs


async def test_each_job_ends_once_and_no_limit_is_broken_whatever_is_killed(tmp_path: Path) -> None:
    async with installed(tmp_path, policy=QUICK) as there:
        submitting = [asyncio.create_task(jobs_of(there, user)) for user in range(USERS)]
        for victim in VICTIMS:
            await asyncio.sleep(1.5)  # so that each dies in the middle of something
            await there.kill(victim)
        promised = [job for jobs in await asyncio.gather(*submitting) for job in jobs]
        await eventually(lambda: all_ended(there, promised), within_s=120, every_s=1)
        records = await there.records()

    policy = load_policy(tmp_path / "policy.toml", environ={})
    report = audit(records, policy=policy, promised=promised, view_was_lost=True)
    assert not report.violations, report
    assert sum(report.ends.values()) == len(set(promised)) == JOBS
    assert report.ends["ready"] == JOBS, report
    assert max(report.most.values()) >= 5, "no limit was ever reached, so none was tried"


async def all_ended(there: Installation, promised: list[str]) -> bool:
    ended: set[Any] = set()
    for record in await there.records():
        data = getattr(record.event, "data", None)
        if isinstance(data, JobData) and data.status.is_end:
            ended.add(data.job_id)
    return ended >= set(promised)


async def test_a_flushed_store_costs_seconds_and_no_job(tmp_path: Path) -> None:
    async with installed(tmp_path, policy=QUICK, slots=16) as there:
        submitting = [asyncio.create_task(jobs_of(there, user)) for user in range(USERS)]
        more = [asyncio.create_task(jobs_of(there, USERS + user)) for user in range(USERS)]
        for _ in range(2):
            await asyncio.sleep(1.5)
            await flush(there)
        promised = [job for jobs in await asyncio.gather(*submitting, *more) for job in jobs]
        await eventually(lambda: all_ended(there, promised), within_s=120, every_s=1)
        records = await there.records()

    policy = load_policy(tmp_path / "policy.toml", environ={})
    report = audit(records, policy=policy, promised=promised, view_was_lost=True)
    assert not report.violations, report
    assert report.ends == {"ready": 2 * JOBS}, report


async def flush(there: Installation) -> None:
    from redis.asyncio import Redis

    client = Redis.from_url(there.up.redis_url)
    await client.flushall()
    await client.aclose()
