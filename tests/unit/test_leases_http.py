"""Slots outside jobs over HTTP, on the twins: who may, what is said, in which order, and what the log knows first."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from libs.runtime.eventually import eventually
from services.admission.leasing import LeaseWanted
from tests.fixtures.desk import Desk
from tests.fixtures.front import Front, refused

DB = "group:shop:db"
ONE, TWO, THREE = (f"01KJPZ7QXN5B2D9F4H8K3M6PR{letter}" for letter in "TVW")
LEASES, OPS = "leases", "ops"


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def front(desk: Desk) -> Front:
    return Front(desk, meanwhile=desk.fold)


def client(front: Front, user: str = "ann", scope: str = LEASES) -> httpx.AsyncClient:
    return front.client(user, scope=scope, projects=["shop"])


async def take(front: Front, lease: str, *, user: str = "ann", group: str = DB, **body: Any) -> httpx.Response:
    async with client(front, user) as http:
        path = f"/v1/concurrency/{group}/leases"
        return await http.post(path, json={"lease": lease, "wait_s": 0} | body, timeout=5)


async def test_a_slot_is_held_and_the_log_knows_of_its_group(desk: Desk, front: Front) -> None:
    await desk.fold()
    taken = await take(front, ONE, limit=2, ttl_s=60)
    again = await take(front, ONE, limit=2, ttl_s=60)

    said = list(desk.folder.ledger.orders.leased)
    assert (taken.status_code, again.status_code, taken.json()["lease"]) == (201, 201, ONE)
    assert (said, desk.server.last_seq) == ([DB], 1)
    status = await desk.view.group(DB)
    assert [(holder.name, holder.user) for holder in status.holders] == [(ONE, "ann")]
    assert status.limit == 2


async def test_who_finds_none_is_told_who_holds_them_and_when_to_ask_again(desk: Desk, front: Front) -> None:
    await desk.fold()
    await take(front, ONE, ttl_s=20)

    problem = refused(full := await take(front, TWO, user="bob"), 429, "no-slot")
    own = (await take(front, THREE)).json()

    assert full.headers["retry-after"] == "20"
    assert (problem["limit"], problem["active"]) == (1, 1)
    assert [(each["yours"], each["lease"]) for each in problem["holders"]] == [(False, None)]
    assert [(each["yours"], each["lease"]) for each in own["holders"]] == [(True, ONE)]


async def test_who_waits_has_the_slot_that_is_given_back_at_once(desk: Desk, front: Front) -> None:
    await desk.fold()
    await take(front, ONE)
    waiting = asyncio.create_task(take(front, TWO, user="bob", wait_s=30))
    await eventually(lambda: somebody_waits(desk), every_s=0.01)

    async with client(front) as http:
        back = await http.delete(f"/v1/concurrency/{DB}/leases/{ONE}")
    granted = await waiting

    assert (back.status_code, granted.status_code) == (204, 201)
    (holder,) = (await desk.view.group(DB)).holders
    assert (holder.name, holder.expires_ms - desk.clock.now_ms()) == (TWO, 300_000)


async def test_who_goes_away_waits_no_more(desk: Desk, front: Front) -> None:
    await desk.fold()
    await take(front, ONE)
    waiting = asyncio.create_task(desk.leasing.take(_wanted(TWO)))
    await eventually(lambda: somebody_waits(desk), every_s=0.01)

    waiting.cancel()
    await asyncio.wait((waiting,))

    assert (await desk.view.group(DB)).waiting == 0


async def test_a_lease_is_extended_by_its_holder_alone_and_never_taken_so(desk: Desk, front: Front) -> None:
    await desk.fold()
    first = (await take(front, ONE, ttl_s=10)).json()
    path = f"/v1/concurrency/{DB}/leases"
    async with client(front) as ann, client(front, "bob") as bob:
        longer = await ann.patch(f"{path}/{ONE}", json={"ttl_s": 60, "held_until": first["expires_at"]})
        refused(await bob.patch(f"{path}/{ONE}", json={}), 404, "not-found")
        refused(await ann.patch(f"{path}/{TWO}", json={}), 404, "not-found")
        refused(await take(front, ONE, user="bob"), 409, "lease-taken")
        await bob.delete(f"{path}/{ONE}")
    status = await desk.view.group(DB)

    assert longer.json()["expires_at"] > first["expires_at"]
    assert [holder.name for holder in status.holders] == [ONE]


@pytest.mark.parametrize("group", ["user:ann", "pool:default", "workflows", "llm:ollama", "project:shop", "group:db"])
async def test_what_is_no_group_of_ones_own_project_is_not_leased(front: Front, group: str) -> None:
    refused(await take(front, ONE, group=group), 403, "not-leasable")


async def test_a_project_that_is_not_claimed_is_ones_own(desk: Desk, front: Front) -> None:
    await desk.fold()
    for user, lease in (("ann", ONE), ("bob", TWO)):
        assert (await take(front, lease, user=user, group="group:lab:db")).status_code == 201

    assert [len((await desk.view.group(f"group:{user}:lab:db")).holders) for user in ("ann", "bob")] == [1, 1]


async def test_it_takes_the_scope_and_at_most_a_full_lease(desk: Desk, front: Front) -> None:
    async with client(front, scope="jobs:write") as http:
        refused(await http.post(f"/v1/concurrency/{DB}/leases", json={"lease": ONE}), 403, "forbidden")
    refused(await take(front, ONE, ttl_s=301), 422, "invalid")
    refused(await take(front, "not-a-ulid"), 422, "invalid")


async def test_an_operator_sees_the_holder_and_frees_its_slot(desk: Desk, front: Front) -> None:
    await desk.fold()
    await take(front, ONE)
    async with client(front, "olga", scope=f"{OPS} {LEASES}") as http:
        shown = (await http.get(f"/v1/concurrency/{DB}")).json()["holders"]
        freed = await http.delete(f"/v1/concurrency/{DB}/leases/{ONE}")
    await desk.fold()

    assert [(each["lease"], each["user_id"], each["job_id"]) for each in shown] == [(ONE, "ann", None)]
    assert freed.status_code == 200
    assert (await desk.view.group(DB)).holders == ()


async def somebody_waits(desk: Desk) -> bool:
    return (await desk.view.group(DB)).waiting > 0


def _wanted(lease: str) -> LeaseWanted:
    return LeaseWanted(lease=lease, group=DB, user="bob", ttl_ms=10_000, wait_ms=30_000)
