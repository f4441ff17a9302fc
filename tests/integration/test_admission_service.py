"""Admission as a process composes it: when it lets somebody in."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from headgate_contracts import Tier
from libs.eventlog import LogSettings
from libs.local.ports import free_ports
from libs.policy import Policy
from libs.runtime.eventually import eventually
from libs.runtime.keys import keep_keys
from libs.runtime.lifecycle import Service
from services.admission.__main__ import compose
from services.admission.index import Index
from services.admission.outcomes import Accepted
from tests.fixtures.admission_api import OPERATOR, USER, token_of
from tests.fixtures.replicas import replicas

JOB = {"project_id": "shop", "input": {}}


async def test_nobody_is_let_in_before_the_log_was_folded(
    nats_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("libs.runtime.gate.OPENS_WITHIN_S", 0.1)
    async with replicas(nats_url, redis_url, policy=Policy(), opened=False, shape=LogSettings()) as (one, _):
        monkeypatch.setenv("HEADGATE_NATS_URL", nats_url)
        monkeypatch.setenv("HEADGATE_REDIS_URL", redis_url)
        async with running(tmp_path, monkeypatch) as client:
            before = await client.get("/readyz")
            refused = await client.post("/v1/jobs", json=JOB)

            await one.fold()
            await eventually(lambda: _is_ready(client), every_s=0.05)
            first = await client.post("/v1/jobs", json=JOB)

    assert (before.status_code, before.json()["missing"]) == (503, ["the view", "gate"])
    assert (refused.status_code, refused.json()["type"]) == (503, "/problems/unavailable")
    assert first.status_code == 202, first.text


async def test_nobody_is_let_in_over_a_view_that_is_behind_the_log(
    nats_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with replicas(nats_url, redis_url, policy=Policy(), shape=LogSettings()) as (one, _):
        monkeypatch.setenv("HEADGATE_NATS_URL", nats_url)
        monkeypatch.setenv("HEADGATE_REDIS_URL", redis_url)
        assert isinstance(
            await one.submitting.submit(one.new("ann", key="k")), Accepted
        )  # the view is open, and does not know it
        async with running(tmp_path, monkeypatch) as client:
            await one.fold()
            await eventually(lambda: _is_ready(client), every_s=0.05)
            first = await client.post("/v1/jobs", json=JOB)

    assert first.status_code == 202, first.text
    assert first.json()["usage"]["jobs_used"] == 2


async def test_metrics_are_asked_for_at_a_port_of_their_own_where_one_is_set(
    nats_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [port] = free_ports(1)
    async with replicas(nats_url, redis_url, policy=Policy(), opened=False, shape=LogSettings()) as (one, _):
        monkeypatch.setenv("HEADGATE_NATS_URL", nats_url)
        monkeypatch.setenv("HEADGATE_REDIS_URL", redis_url)
        monkeypatch.setenv("HEADGATE_METRICS_PORT", str(port))
        async with running(tmp_path, monkeypatch) as client, httpx.AsyncClient() as scraper:
            await one.fold()
            await eventually(lambda: _is_ready(client), every_s=0.05)
            answers = [await each.get(path) for each, path in _asking(client, scraper, port)]

    assert [answer.status_code for answer in answers] == [200, 404, 404, 200]


async def test_an_index_that_is_made_anew_delays_no_readiness_and_each_list_says_how_far_it_is(
    nats_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, fold = threading.Event(), Index.fold
    monkeypatch.setattr(Index, "fold", lambda *given: fold(*given) if slow.wait() else None)
    paths = ("/v1/jobs", "/v1/jobs/counts", "/v1/stats", "/v1/workers/attempts")
    async with replicas(nats_url, redis_url, policy=Policy(), shape=LogSettings()) as (one, _):
        monkeypatch.setenv("HEADGATE_NATS_URL", nats_url)
        monkeypatch.setenv("HEADGATE_REDIS_URL", redis_url)
        for key in ("k1", "k2"):
            assert isinstance(await one.submitting.submit(one.new("ann", key=key)), Accepted)
        try:
            async with running(tmp_path, monkeypatch, scope=OPERATOR) as client:
                await one.fold()
                await eventually(lambda: _is_ready(client), every_s=0.05)
                behind = [await client.get(path) for path in paths]
                slow.set()
                await eventually(lambda: _is_whole(client), every_s=0.05)
                whole = [await client.get(path) for path in paths]
        finally:
            slow.set()

    assert [(each.status_code, each.headers.get("headgate-catching-up")) for each in behind] == [(200, "0/2")] * 4
    assert [(each.status_code, each.headers.get("headgate-catching-up")) for each in whole] == [(200, None)] * 4
    assert (behind[0].json(), len(whole[0].json())) == ([], 2)


async def _is_whole(client: httpx.AsyncClient) -> bool:
    return "headgate-catching-up" not in (await client.get("/v1/jobs")).headers


def _asking(
    client: httpx.AsyncClient, scraper: httpx.AsyncClient, port: int
) -> Iterator[tuple[httpx.AsyncClient, str]]:
    there = f"http://127.0.0.1:{port}"
    yield scraper, f"{there}/metrics"
    yield scraper, f"{there}/v1/jobs"
    yield client, "/metrics"
    yield client, "/v1/jobs"


@asynccontextmanager
async def running(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, scope: str = USER
) -> AsyncIterator[httpx.AsyncClient]:
    """The service, as far as it comes, and a client that is signed in."""
    [port] = free_ports(1)
    pair = keep_keys(folder / "keys")
    monkeypatch.setenv("HEADGATE_JWKS", str(folder / "keys" / "jwks.json"))
    monkeypatch.setenv("HEADGATE_HTTP_PORT", str(port))
    service = Service("admission")
    life = asyncio.create_task(service.run(compose))
    headers = {"Authorization": f"Bearer {token_of('ann', tier=Tier.PARTNER, scope=scope, pair=pair)}"}
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=30) as client:
            await eventually(lambda: _waits_for(client, "the view"), every_s=0.05)
            yield client
    finally:
        service.stop()
        assert await life == 0


async def _waits_for(client: httpx.AsyncClient, name: str) -> bool:
    try:
        answer = await client.get("/readyz")
    except httpx.ConnectError:
        return False
    return answer.json()["missing"] == [name, "gate"]


async def _is_ready(client: httpx.AsyncClient) -> bool:
    return (await client.get("/readyz")).status_code == 200
