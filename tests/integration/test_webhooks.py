"""Webhooks over a real server and real HTTP: signed, told again with pauses, and only to hosts that policy lists."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import httpx2
import pytest
from nats.aio.client import Client

from headgate_contracts import JobEvent, advance
from libs.eventlog import JetStreamLog
from libs.eventlog.dispatches import Dispatch, EventDispatches
from libs.policy import Policy
from libs.runtime.clock import SystemClock
from libs.runtime.eventually import eventually
from libs.runtime.lifecycle import Loop
from services.notifier.webhooks import CONSUMER, EVENTS, SENDERS, Webhooks, pause_s, secret_bytes
from tests.fixtures.lives import life_of, submission
from tests.fixtures.logs import connected, opened

SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
ENDED = "queued cancelled"
ENDLESS = -1
ASKS = "queued dispatched started scaffold code deps checks awaiting_confirmation"


@dataclass
class Receiver:
    """Another team's server: answers with these statuses, then with 204."""

    statuses: list[int] = field(default_factory=list[int])
    calls: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list[tuple[str, dict[str, str], bytes]])
    port: int = 0

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.calls.append((first.split(" ")[1], headers, body))
        status = self.statuses.pop(0) if self.statuses else 204
        if status == ENDLESS:
            await self._trickle(writer)
            return
        extra = f"Location: http://{self.host}/elsewhere\r\n" if status == 302 else ""
        writer.write(f"HTTP/1.1 {status} x\r\n{extra}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async def _trickle(self, writer: asyncio.StreamWriter) -> None:
        """A header and then another, for ever."""
        with suppress(ConnectionError):
            writer.write(b"HTTP/1.1 200 x\r\n")
            while True:
                writer.write(b"X-More: y\r\n")
                await writer.drain()
                await asyncio.sleep(0.05)


@asynccontextmanager
async def receiving(*statuses: int) -> AsyncIterator[Receiver]:
    receiver = Receiver(list(statuses))
    server = await asyncio.start_server(receiver.hear, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    async with server:
        yield receiver


@asynccontextmanager
async def calling(
    nc: Client, log: JetStreamLog, *, hosts: tuple[str, ...], tries: int = 8, timeout_s: float = 2
) -> AsyncIterator[None]:
    rules = {"hosts": hosts, "timeout_s": timeout_s, "tries": tries, "first_pause_s": 0.05}
    policy, clock = Policy.model_validate({"webhooks": rules}), SystemClock()
    dispatches = EventDispatches(nc, name=CONSUMER, events=EVENTS, within_s=10, max_tries=tries, clock=clock)
    await dispatches.start()
    async with httpx2.AsyncClient(timeout=2, follow_redirects=False, trust_env=False) as http:
        webhooks = Webhooks(dispatches, log, http, policy, clock, secret_bytes(SECRET))
        running = Loop("webhooks", webhooks.run)
        await running.start()
        try:
            yield
        finally:
            await running.stop()
            await dispatches.stop()


async def write(log: JetStreamLog, job_id: str, story: str, *, url: str | None) -> list[JobEvent]:
    job, events = None, life_of(job_id, story, submission=submission(notify_url=url))
    for event in events:
        await log.append(event, after=job)
        job = advance(job, event, seq=(await log.mark()).seq)
    return events


async def test_a_job_that_asks_calls_its_url_signed(nats_url: str) -> None:
    async with (
        opened(nats_url) as log,
        connected(nats_url) as nc,
        receiving() as there,
        calling(nc, log, hosts=(there.host,)),
    ):
        events = await write(log, "job-1", ASKS, url=f"http://{there.host}/hooks?team=7")
        await eventually(lambda: len(there.calls) == 1)

    [(path, headers, body)] = there.calls
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.digest(b"s" * 32, signed, hashlib.sha256)).decode()
    assert (path, headers["webhook-id"]) == ("/hooks?team=7", events[-1].id)
    assert headers["webhook-signature"] == f"v1,{expected}"
    told = json.loads(body)
    assert (told["type"], told["data"]["status"]) == (
        "dev.headgate.job.awaiting_confirmation.v1",
        "awaiting_confirmation",
    )


async def test_a_host_that_fails_is_called_again_with_the_same_id_until_it_takes_it(nats_url: str) -> None:
    async with (
        opened(nats_url) as log,
        connected(nats_url) as nc,
        receiving(500, 302, 429) as there,
        calling(nc, log, hosts=(there.host,)),
    ):
        await write(log, "job-1", ENDED, url=f"http://{there.host}/hooks")
        await eventually(lambda: len(there.calls) == 4)
        await write(log, "job-2", ENDED, url=f"http://{there.host}/hooks")
        await eventually(lambda: len(there.calls) == 5)

    ids = [headers["webhook-id"] for _, headers, _ in there.calls]
    assert (len(set(ids[:4])), ids[4] != ids[3]) == (1, True)
    assert {path for path, _, _ in there.calls} == {"/hooks"}  # no redirect was followed


async def test_a_host_that_never_ends_its_answer_holds_up_nobody(nats_url: str) -> None:
    """As many at once as there are senders: each is let go in its time, and what comes after them is called."""
    async with (
        opened(nats_url) as log,
        connected(nats_url) as nc,
        receiving(*[ENDLESS] * SENDERS) as there,
        calling(nc, log, hosts=(there.host,), timeout_s=0.3),
    ):
        for number in range(SENDERS + 1):
            await write(log, f"job-{number}", ENDED, url=f"http://{there.host}/hooks")
        await eventually(lambda: len(there.calls) >= 2 * SENDERS + 1)

    assert len({headers["webhook-id"] for _, headers, _ in there.calls}) == SENDERS + 1


async def test_after_so_many_tries_it_is_let_go(nats_url: str) -> None:
    async with (
        opened(nats_url) as log,
        connected(nats_url) as nc,
        receiving(500, 500, 500, 500) as there,
        calling(nc, log, hosts=(there.host,), tries=2),
    ):
        await write(log, "job-1", ENDED, url=f"http://{there.host}/hooks")
        await eventually(lambda: len(there.calls) == 2)
        there.statuses.clear()
        await write(log, "job-2", ENDED, url=f"http://{there.host}/hooks")
        await eventually(lambda: len(there.calls) == 3)

    ids = [headers["webhook-id"] for _, headers, _ in there.calls]
    assert [ids.count(each) for each in dict.fromkeys(ids)] == [2, 1]


async def test_nobody_else_is_called(nats_url: str) -> None:
    """No job without a url, no host that policy does not list, no event that is neither a question nor an end."""
    async with (
        opened(nats_url) as log,
        connected(nats_url) as nc,
        receiving() as there,
        calling(nc, log, hosts=(there.host,)),
    ):
        await write(log, "job-1", ENDED, url=None)
        await write(log, "job-2", ENDED, url="http://169.254.169.254/latest")
        await write(log, "job-3", ENDED, url=f"http://user:word@{there.host}/hooks")
        await write(log, "job-4", "queued dispatched", url=f"http://{there.host}/hooks")
        await write(log, "job-5", ENDED, url=f"http://{there.host}/hooks")
        await eventually(lambda: bool(there.calls))

    assert [json.loads(body)["data"]["job_id"] for _, _, body in there.calls] == ["job-5"]


async def test_what_one_replica_leaves_another_calls(nats_url: str) -> None:
    async with (
        opened(nats_url) as log,
        connected(nats_url) as nc,
        connected(nats_url) as other,
        receiving() as there,
        calling(nc, log, hosts=(there.host,)),
    ):
        await write(log, "job-1", ENDED, url=f"http://{there.host}/hooks")
        await eventually(lambda: len(there.calls) == 1)
        await write(log, "job-2", ENDED, url=f"http://{there.host}/hooks")
        async with calling(other, log, hosts=(there.host,)):
            await eventually(lambda: len(there.calls) == 2)

    assert [json.loads(body)["data"]["job_id"] for _, _, body in there.calls] == ["job-1", "job-2"]


class Deaf:
    """Keeps the first cancellation of each sender for itself, as a client may, and gives what is nobody's."""

    def __init__(self) -> None:
        self.asked = 0

    async def next(self) -> Dispatch:
        self.asked += 1
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return cast("Dispatch", self)

    record = SimpleNamespace(event=None)

    async def ack(self) -> None:
        """Nobody knows of it."""


async def test_senders_end_also_where_a_cancellation_is_kept() -> None:
    dispatches, policy, clock = Deaf(), Policy(), SystemClock()
    async with httpx2.AsyncClient() as http:
        webhooks = Webhooks(dispatches, cast("JetStreamLog", None), http, policy, clock, b"")
        running = Loop("webhooks", webhooks.run)
        await running.start()
        await eventually(lambda: dispatches.asked == SENDERS)

        await running.stop()

    assert dispatches.asked == SENDERS, "one of them went on"


@pytest.mark.parametrize(("tries", "expected"), [(1, 10), (2, 20), (5, 160), (50, 3600)])
def test_pauses_double_up_to_an_hour(tries: int, expected: float) -> None:
    assert pause_s(tries, first_s=10) == expected
