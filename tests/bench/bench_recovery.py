"""What a loss costs: from a kill -9 of each process to the end of the next job, everything as `headgate up` runs it.

Over HTTP, with every event synced. Nothing is asserted about speed.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

import httpx
import pytest

from headgate_contracts import Tier
from libs.runtime.eventually import eventually
from tests.bench.field import ROOMY
from tests.fixtures.installation import Installation, installed

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]

INSTANT: Final = {"stages": {"scaffold": 0, "code": 0, "deps": 0, "checks": 0}}
KILLED: Final = ("worker", "scheduler", "admission", "notifier", "valkey", "nats")


async def test_from_a_kill_to_the_next_jobs_end(tmp_path: Path) -> None:
    async with installed(tmp_path, policy=ROOMY, workers=2, slots=8) as there:
        back = {name: await going_on(there, name) for name in KILLED}

    print("\n\n### from kill -9 to the next job's end\n")
    print("| killed | s |\n| --- | --- |")
    for name, seconds in back.items():
        print(f"| {name} | {seconds:.1f} |")


async def going_on(there: Installation, name: str) -> float:
    """From the kill until a job that was submitted after it has ended."""
    pid, begun = there.pid(name), time.perf_counter()
    there.signal(name, 9)  # type: ignore[arg-type]
    async with there.client("killer", Tier.CTO_SCALE) as client:
        job = await submit(client)
        await eventually(lambda: is_ready(client, job), within_s=60, every_s=0.02)
    seconds = time.perf_counter() - begun
    await eventually(lambda: there.pid(name) != pid, within_s=30)
    return seconds


async def submit(client: httpx.AsyncClient) -> str:
    body = {"project_id": "killed", "pipeline": "rehearsal", "input": INSTANT}
    while True:
        try:
            response = await client.post("/jobs", json=body)
        except httpx.TransportError:
            continue
        if response.status_code == 202:
            return response.json()["id"]
        assert response.status_code in (502, 503, 504), response.text
        await asyncio.sleep(0.02)


async def is_ready(client: httpx.AsyncClient, job: str) -> bool:
    try:
        response = await client.get(f"/jobs/{job}")
    except httpx.TransportError:
        return False
    return response.status_code == 200 and response.json()["status"] == "ready"
