"""Slots outside jobs over HTTP, on the twins: who may, what is said, in which order, and what the log knows first."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from libs.runtime.eventually import eventually
from services.admission.leasing import LeaseWanted
from tests.fixtures.admission_api import AdmissionApi, refused
from tests.fixtures.memory_admission import MemoryAdmission

DB = "group:shop:db"
ONE, TWO, THREE = (f"01KJPZ7QXN5B2D9F4H8K3M6PR{letter}" for letter in "TVW")
LEASES, OPS = "leases", "ops"


@pytest.fixture
def admission() -> MemoryAdmission:
    return MemoryAdmission()


@pytest.fixture
def api(admission: MemoryAdmission) -> AdmissionApi:
    return AdmissionApi(admission, meanwhile=admission.fold)


def client(api: AdmissionApi, user: str = "ann", scope: str = LEASES) -> httpx.AsyncClient:
    return api.client(user, scope=scope, projects=["shop"])


async def take(api: AdmissionApi, lease: str, *, user: str = "ann", group: str = DB, **body: Any) -> httpx.Response:
    async with client(api, user) as http:
        path = f"/v1/concurrency/{group}/leases"
        return await http.post(path, json={"lease": lease, "wait_s": 0} | body, timeout=5)


async def test_a_slot_is_held_and_the_log_knows_of_its_group(admission: MemoryAdmission, api: AdmissionApi) -> None:
    await admission.fold()
    taken = await take(api, ONE, limit=2, ttl_s=60)
    again = await take(api, ONE, limit=2, ttl_s=60)

    said = list(admission.folder.ledger.orders.leased)
    assert (taken.status_code, again.status_code, taken.json()["lease"]) == (201, 201, ONE)
    assert (said, admission.server.last_seq) == ([DB], 1)
    status = await admission.view.group(DB)
    assert [(holder.name, holder.user) for holder in status.holders] == [(ONE, "ann")]
    assert status.limit == 2


async def test_who_finds_none_is_told_who_holds_them_and_when_to_ask_again(
    admission: MemoryAdmission, api: AdmissionApi
) -> None:
    await admission.fold()
    await take(api, ONE, ttl_s=20)

    problem = refused(full := await take(api, TWO, user="bob"), 429, "no-slot")
    own = (await take(api, THREE)).json()

    assert full.headers["retry-after"] == "20"
    assert (problem["limit"], problem["active"]) == (1, 1)
    assert [(each["yours"], each["lease"]) for each in problem["holders"]] == [(False, None)]
    assert [(each["yours"], each["lease"]) for each in own["holders"]] == [(True, ONE)]


async def test_who_waits_has_the_slot_that_is_given_back_at_once(admission: MemoryAdmission, api: AdmissionApi) -> None:
    await admission.fold()
    await take(api, ONE)
    waiting = asyncio.create_task(take(api, TWO, user="bob", wait_s=30))
    await eventually(lambda: somebody_waits(admission), every_s=0.01)

    async with client(api) as http:
        back = await http.delete(f"/v1/concurrency/{DB}/leases/{ONE}")
    granted = await waiting

    assert (back.status_code, granted.status_code) == (204, 201)
    (holder,) = (await admission.view.group(DB)).holders
    assert (holder.name, holder.expires_ms - admission.clock.now_ms()) == (TWO, 300_000)


async def test_who_goes_away_waits_no_more(admission: MemoryAdmission, api: AdmissionApi) -> None:
    await admission.fold()
    await take(api, ONE)
    waiting = asyncio.create_task(admission.leasing.take(_wanted(TWO)))
    await eventually(lambda: somebody_waits(admission), every_s=0.01)

    waiting.cancel()
    await asyncio.wait((waiting,))

    assert (await admission.view.group(DB)).waiting == 0


async def test_a_lease_is_extended_by_its_holder_alone_and_never_taken_so(
    admission: MemoryAdmission, api: AdmissionApi
) -> None:
    await admission.fold()
    first = (await take(api, ONE, ttl_s=10)).json()
    path = f"/v1/concurrency/{DB}/leases"
    async with client(api) as ann, client(api, "bob") as bob:
        longer = await ann.patch(f"{path}/{ONE}", json={"ttl_s": 60, "held_until": first["expires_at"]})
        refused(await bob.patch(f"{path}/{ONE}", json={}), 404, "not-found")
        refused(await ann.patch(f"{path}/{TWO}", json={}), 404, "not-found")
        refused(await take(api, ONE, user="bob"), 409, "lease-taken")
        await bob.delete(f"{path}/{ONE}")
    status = await admission.view.group(DB)

    assert longer.json()["expires_at"] > first["expires_at"]
    assert [holder.name for holder in status.holders] == [ONE]


async def test_a_user_holds_as_many_as_one_may_and_is_told_so() -> None:
    admission = MemoryAdmission(concurrency={"leases_per_user": 1})
    api = AdmissionApi(admission, meanwhile=admission.fold)
    await admission.fold()
    await take(api, ONE)

    problem = refused(full := await take(api, TWO, group="group:shop:cache", wait_s=30), 429, "lease-share")
    others = await take(api, THREE, user="bob", group="group:shop:cache")

    assert problem["detail"].startswith("you hold and wait for 1 slots outside jobs")
    assert "retry-after" not in full.headers, "no time gives it back"
    assert others.status_code == 201


@pytest.mark.parametrize("group", ["user:ann", "pool:default", "workflows", "llm:ollama", "project:shop", "group:db"])
async def test_what_is_no_group_of_ones_own_project_is_not_leased(api: AdmissionApi, group: str) -> None:
    refused(await take(api, ONE, group=group), 403, "not-leasable")


async def test_a_project_that_is_not_claimed_is_ones_own(admission: MemoryAdmission, api: AdmissionApi) -> None:
    await admission.fold()
    for user, lease in (("ann", ONE), ("bob", TWO)):
        assert (await take(api, lease, user=user, group="group:lab:db")).status_code == 201

    assert [len((await admission.view.group(f"group:{user}:lab:db")).holders) for user in ("ann", "bob")] == [1, 1]


async def test_it_takes_the_scope_and_at_most_a_full_lease(admission: MemoryAdmission, api: AdmissionApi) -> None:
    async with client(api, scope="jobs:write") as http:
        refused(await http.post(f"/v1/concurrency/{DB}/leases", json={"lease": ONE}), 403, "forbidden")
    refused(await take(api, ONE, ttl_s=301), 422, "invalid")
    refused(await take(api, "not-a-ulid"), 422, "invalid")


async def test_an_operator_sees_the_holder_and_frees_its_slot(admission: MemoryAdmission, api: AdmissionApi) -> None:
    await admission.fold()
    await take(api, ONE)
    async with client(api, "olga", scope=f"{OPS} {LEASES}") as http:
        shown = (await http.get(f"/v1/concurrency/{DB}")).json()["holders"]
        freed = await http.delete(f"/v1/concurrency/{DB}/leases/{ONE}")
    await admission.fold()

    assert [(each["lease"], each["user_id"], each["job_id"]) for each in shown] == [(ONE, "ann", None)]
    assert freed.status_code == 200
    assert (await admission.view.group(DB)).holders == ()


async def somebody_waits(admission: MemoryAdmission) -> bool:
    return (await admission.view.group(DB)).waiting > 0


def _wanted(lease: str) -> LeaseWanted:
    return LeaseWanted(lease=lease, group=DB, user="bob", ttl_ms=10_000, wait_ms=30_000)
