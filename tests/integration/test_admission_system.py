"""What clients of admission see of the whole system as `headgate up` runs it, with each service's own rights."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from headgate_contracts import Tier
from libs.runtime.eventually import eventually
from tests.fixtures.installation import Installation, installed

pytestmark = pytest.mark.up

QUICK: dict[str, Any] = {"stages": {"scaffold": 0.02, "code": 0.02, "deps": 0.02, "checks": 0.02}}
SLOW: dict[str, Any] = {"stages": {"code": 60}}
FAILS: dict[str, Any] = QUICK | {"fail_at": "deps"}
POLICY = """
[tiers.cto_scale]
jobs_per_user = 1
"""


@pytest_asyncio.fixture(scope="module")
async def there(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    async with installed(tmp_path_factory.mktemp("admission"), policy=POLICY, workers=1, slots=4) as there:
        yield there


def job(content: dict[str, Any] = QUICK, **more: Any) -> dict[str, Any]:
    return {"project_id": "shop", "pipeline": "rehearsal", "input": content, **more}


async def submitted(client: httpx.AsyncClient, content: dict[str, Any] = QUICK, **more: Any) -> str:
    answer = await client.post("/jobs", json=job(content, **more))
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


async def reaches(client: httpx.AsyncClient, job_id: str, *statuses: str) -> dict[str, Any]:
    shown: dict[str, Any] = {}

    async def there() -> bool:
        nonlocal shown
        shown = (await client.get(f"/jobs/{job_id}")).json()
        return shown["status"] in statuses

    await eventually(there, every_s=0.05)
    return shown


async def test_a_failed_job_is_submitted_again_and_goes_on_from_its_work(there: Installation) -> None:
    async with there.client("retry", Tier.CTO_SCALE) as client:
        failed = await submitted(client, FAILS)
        await reaches(client, failed, "failed")

        first = await client.post(f"/jobs/{failed}/retry", headers={"Idempotency-Key": "again"})
        again = await client.post(f"/jobs/{failed}/retry", headers={"Idempotency-Key": "again"})
        await reaches(client, first.json()["id"], "failed")
        events = (await client.get(f"/jobs/{first.json()['id']}/events")).json()

    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["id"] == again.json()["id"]
    stages = [(event["stage"], event["restored"]) for event in events if event["event"] == "stage"]
    assert stages[:3] == [("scaffold", True), ("code", True), ("deps", False)]


async def test_the_phases_of_a_workflow_run_one_after_the_other(there: Installation) -> None:
    phases = [{"pipeline": "rehearsal", "input": QUICK} for _ in range(3)]
    async with there.client("phases", Tier.CTO_SCALE) as client:
        answer = await client.post("/workflows", json={"project_id": "shop", "phases": phases})
        assert answer.status_code == 202, answer.text
        workflow = answer.json()
        last = workflow["phases"][-1]["id"]
        await reaches(client, last, "ready")
        shown = (await client.get(f"/workflows/{workflow['id']}")).json()
        usage = shown["phases"][0]["usage"]

    assert shown["status"] == "ready"
    assert [phase["status"] for phase in shown["phases"]] == ["ready"] * 3
    assert usage["jobs_used"] == 1


async def test_of_a_workflow_that_is_cancelled_nothing_goes_on(there: Installation) -> None:
    phases = [{"pipeline": "rehearsal", "input": SLOW} for _ in range(3)]
    async with there.client("ends", Tier.CTO_SCALE) as client:
        answer = await client.post("/workflows", json={"project_id": "shop", "phases": phases})
        workflow = answer.json()
        await reaches(client, workflow["phases"][0]["id"], "code")

        cancelled = await client.post(f"/workflows/{workflow['id']}/cancel", json={"reason": "enough"})
        await reaches(client, workflow["phases"][0]["id"], "cancelled")
        shown = (await client.get(f"/workflows/{workflow['id']}")).json()

    assert cancelled.status_code == 202, cancelled.text
    assert [phase["status"] for phase in shown["phases"]] == ["cancelled"] * 3


async def test_waiting_jobs_change_their_class_and_place(there: Installation) -> None:
    async with (
        there.client("order", Tier.CTO_SCALE) as client,
        there.client("boss", Tier.PARTNER, scope="jobs:read ops") as operator,
    ):
        running = await submitted(client, SLOW)
        await reaches(client, running, "code")
        first, second, third = [await submitted(client, SLOW) for _ in range(3)]
        await reaches(client, third, "queued")

        raised = await client.patch(f"/jobs/{second}", json={"priority": "high"})
        underway = await client.patch(f"/jobs/{running}", json={"priority": "high"})
        moved = await operator.post("/queue/move", json={"job_id": third, "before": first, "reason": "demo"})

        async def in_order() -> bool:
            shown = [(await client.get(f"/jobs/{each}")).json()["queue"]["position"] for each in (second, third, first)]
            return shown == [1, 2, 3]

        await eventually(in_order, every_s=0.05)
        bulk = await client.post("/jobs/cancel", json={"project": "shop"})
        await reaches(client, running, "cancelled")

    assert (raised.status_code, moved.status_code, underway.status_code) == (200, 200, 409)
    assert bulk.status_code == 207
    assert {each["job"]["id"] for each in bulk.json()["results"]} == {running, first, second, third}


async def test_a_batch_and_a_dry_run_go_through_the_gateway(there: Installation) -> None:
    async with there.client("batch", Tier.CTO_SCALE) as client:
        dry = await client.post("/jobs?dry_run=true", json=job())
        answer = await client.post("/jobs/batch", json={"jobs": [job() for _ in range(20)] + [{"input": {}}]})
        jobs = [each["job"]["id"] for each in answer.json()["results"] if each["job"]]
        await asyncio.gather(*(reaches(client, each, "ready") for each in jobs))
        usage = (await client.get("/usage")).json()

    assert dry.status_code == 200
    assert dry.json()["usage"]["jobs_used"] == 0
    assert [each["status"] for each in answer.json()["results"]] == [202] * 20 + [422]
    assert usage["jobs_used"] == 20


async def test_what_is_shown_at_first_stands_in_the_log(there: Installation) -> None:
    async with there.client("shown", Tier.CTO_SCALE) as client:

        async def estimated() -> bool:
            told = (await client.post("/jobs?dry_run=true", json=job())).json()["queue"]
            return told["estimate_seconds"] is not None

        unknown = (await client.post("/jobs", json=job())).json()
        await reaches(client, unknown["id"], "ready")
        await eventually(estimated, every_s=0.2)  # some job has ended, and the leader has made a forecast of it
        answer = await client.post("/jobs", json=job())
        shown = answer.json()["queue"]
        [first, *_] = (await client.get(f"/jobs/{answer.json()['id']}/events")).json()

    assert first["estimate"]["upper_bound"] >= first["estimate"]["estimate_seconds"] >= first["estimate"]["lower_bound"]
    assert shown["estimate_seconds"] is not None
