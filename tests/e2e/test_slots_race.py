"""Fifty applications want the slots of one group, at two replicas of admission, while everything is killed: never is
one too many inside, and no slot stays with somebody who has gone for longer than their lease.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from headgate import Headgate, HeadgateError, SlotLost
from headgate.leasing import new_lease
from headgate_contracts import Tier
from libs.runtime.eventually import eventually
from tests.fixtures.installation import Installation, installed

CLIENTS, LIMIT, LEASE_S = 50, 4, 3
GROUP = "group:shop:db"
QUICK = f"""
[leases]
job_s = 6
heartbeat_s = 1

[concurrency]
default_lease_duration_secs = {LEASE_S}
"""
VICTIMS = ("admission", "scheduler", "notifier", "valkey", "worker", "nats", "scheduler")
SLOTS = {"project": "shop", "limit": LIMIT}


@dataclass
class Inside:
    """Who believes to hold a slot."""

    now: int = 0
    most: int = 0
    turns: int = 0
    lost: int = 0

    def __enter__(self) -> None:
        self.now += 1
        self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        self.now -= 1


async def test_never_one_too_many_and_none_stranded_whatever_is_killed(tmp_path: Path) -> None:
    async with installed(tmp_path, policy=QUICK, workers=1, slots=1) as there, another_admission(there) as other:
        inside = Inside()
        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            killing = group.create_task(killed(there))
            for number in range(CLIENTS):
                url = (there.up.url, other)[number % 2]
                group.create_task(takes_turns(there, url, f"u{number}", inside, until=killing))

        async with there.client("olga", Tier.PARTNER, scope="ops") as olga:

            async def nobody_holds_one() -> bool:
                answer = await olga.get(f"/concurrency/{GROUP}")
                return answer.status_code == 200 and answer.json()["active"] == answer.json()["waiting"] == 0

            await eventually(nobody_holds_one, within_s=LEASE_S + 5, every_s=0.2)

    assert killing.result() == list(VICTIMS)
    assert inside.turns >= CLIENTS
    assert 1 < inside.most <= LIMIT


async def takes_turns(
    there: Installation, url: str, user: str, inside: Inside, *, until: asyncio.Task[list[str]]
) -> None:
    """At least one, and others as long as anything is killed. One in ten goes away with its slot."""
    token = there.token(user, Tier.PARTNER, scope="leases", projects=["shop"])
    async with Headgate(url, token) as hg:
        done = False
        while not done or not (user.endswith("7") or until.done()):
            with suppress(HeadgateError):
                if user.endswith("7"):
                    await hg.take_slot("db", new_lease(), ttl_s=LEASE_S, **SLOTS)
                else:
                    await holds_one(hg, inside)
                done = True
                inside.turns += 1


async def holds_one(hg: Headgate, inside: Inside) -> None:
    try:
        async with hg.slot("db", ttl_s=LEASE_S, **SLOTS):
            with inside:
                await asyncio.sleep(0.2)
    except SlotLost:
        inside.lost += 1
        raise


async def killed(there: Installation) -> list[str]:
    """One after the other, while all want a slot; gives those that were."""
    gone = list[str]()
    for victim in VICTIMS:
        await asyncio.sleep(0.8)
        await there.kill(victim)
        gone.append(victim)
    return gone


@asynccontextmanager
async def another_admission(there: Installation) -> AsyncIterator[str]:
    """With all that the first one was told, on a port of its own."""
    environ = there.environment("admission", name="admission-2")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environ["HEADGATE_HTTP_PORT"] = str(port)
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "services.admission", env=environ)
    url = f"http://127.0.0.1:{port}"

    async def is_ready() -> bool:
        assert process.returncode is None, "it has ended"
        with suppress(httpx.TransportError):
            async with httpx.AsyncClient() as http:
                return (await http.get(f"{url}/readyz")).status_code == 200
        return False

    try:
        await eventually(is_ready, within_s=20, every_s=0.1)
        yield url
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
