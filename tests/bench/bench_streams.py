"""What a stream costs: from an event to all who listen, and the memory of one that is open.

The floor is a bare StreamingResponse that sends the same bytes to as many, in the same run: no log, no history, no
token, nothing rendered. Server and clients are processes of their own; the clock is the machine's. Measured from before
the append (the request, for the floor) to the moment at which a client's process has the bytes, over all clients.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

import httpx
import pytest

from libs.eventlog import Record
from libs.local.ports import free_ports
from libs.runtime.eventually import eventually
from services.notifier.rendering import told_of
from tests.fixtures.hearers import ROOT, hearing
from tests.fixtures.lives import STARTED_AT, queued, step
from tests.fixtures.logs import new_epoch
from tests.fixtures.streams import Notifiers, notifiers

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

SIZES, EVENTS = (100, 1000, 5000), 30
ROOMY = "[stream]\nper_user = 10000\nper_replica = 10000\n"


@dataclass(frozen=True)
class Server:
    """One process that is measured."""

    port: int
    pid: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def resident_kib(self) -> int:
        return int(Path(f"/proc/{self.pid}/status").read_text().partition("VmRSS:")[2].split()[0])


@dataclass(frozen=True)
class Figure:
    """Of one server with so many connections."""

    delays_ms: list[float]
    kib_each: float
    grown_kib: float

    def __str__(self) -> str:
        percentiles = quantiles(self.delays_ms, n=100)
        return f"{percentiles[49]:.1f} / {percentiles[98]:.1f} ms | {self.kib_each:.1f} KiB | {self.grown_kib:.0f} KiB"


async def test_from_an_event_to_all_who_listen(nats_url: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    print("\n\n### from an event to all who listen\n")
    print("| connections | p50 / p99 | memory each | more after 30 events |\n| --- | --- | --- | --- |")
    for size in SIZES:
        async with notifiers(nats_url, tmp_path_factory.mktemp("streams"), policy=ROOMY) as hall:
            print(f"| {size} | {await of_notifier(hall, size)} |")
        async with bare() as server, httpx.AsyncClient(base_url=server.url) as client:
            print(f"| floor, {size} | {await of_floor(server, client, size)} |")


async def of_notifier(hall: Notifiers, size: int) -> Figure:
    user = f"everybody-{size}"  # has no past: what is measured is not the reading of it
    target = f"/v1/stream?last_event_id={hall.log.epoch}-0"

    async def append(number: int) -> None:
        await hall.write(step(f"b-{number}", "queued", user_id=user))

    server = Server(hall.processes[0].port, hall.processes[0].pid)
    return await figure(server, size, target, hall.token(user), say=append)


async def of_floor(server: Server, client: httpx.AsyncClient, size: int) -> Figure:
    record = Record(1, STARTED_AT, queued("b-0", user_id=f"everybody-{size}"))
    told = told_of(record, epoch=new_epoch())
    assert told is not None

    async def say(number: int) -> None:
        await client.post("/say", content=told.frames.replace(b'"b-0"', b'"b-%d"' % number))

    return await figure(server, size, "/v1/stream", "-", say=say)


async def figure(
    server: Server, size: int, target: str, token: str, *, say: Callable[[int], Awaitable[object]]
) -> Figure:
    before_kib = server.resident_kib
    async with hearing(server.port, size, target, token) as report:
        begun_kib = server.resident_kib
        said: dict[int, float] = {}
        for number in range(size * 1000, size * 1000 + EVENTS):
            said[number] = time.monotonic()
            await say(number)
            await asyncio.sleep(0.1 + size / 2500)
        arrived = await report()
        assert sum(map(len, arrived.values())) == size * EVENTS
        delays = [(moment - said[int(number)]) * 1000 for number, moments in arrived.items() for moment in moments]
        return Figure(delays, (begun_kib - before_kib) / size, server.resident_kib - begun_kib)


@asynccontextmanager
async def bare() -> AsyncIterator[Server]:
    [port] = free_ports(1)
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.fixtures.bare", str(port), cwd=ROOT)
    try:
        await eventually(lambda: answers(port), within_s=20, every_s=0.05)
        yield Server(port, process.pid)
    finally:
        process.kill()
        await process.wait()


async def answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
