"""What a stream costs: from an event to all who listen, and the memory of one that is open.

Beside the notifier two floors send the same bytes to as many: Starlette's StreamingResponse and a bare protocol, both
on uvloop. Nothing is appended, rendered or checked there. Server and clients are processes of their own. Measured from
before the append (the request, for a floor) to the moment at which a client's process has the bytes, over all clients.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import httpx

from libs.eventlog import Record
from libs.local.ports import free_ports
from libs.local.servers import NatsServer
from libs.runtime.eventually import eventually
from services.notifier.rendering import item_of
from tests.bench.asked import Asked, Told
from tests.bench.environments import PEERS, environment
from tests.bench.figures import Spread, growth, percentile
from tests.bench.page import table
from tests.bench.plots import curves
from tests.bench.processes import resident_mib
from tests.fixtures.lives import STARTED_AT, queued, step
from tests.fixtures.logs import new_epoch
from tests.fixtures.stream_readers import reading_streams
from tests.fixtures.streams import notifiers

SIZES: Final = (1, 10, 100, 1_000, 5_000)
EVENTS: Final = 30  # fewer where many listen: each of them is a measurement
ROOMY: Final = "[stream]\nper_user = 10000\nper_replica = 10000\n"
NOTIFIER, STARLETTE, BARE = "Headgate's notifier", "floor: Starlette, uvloop", "floor: a bare protocol, uvloop"


@dataclass(frozen=True, slots=True)
class Heard:
    """Of one server with so many connections, in one round."""

    p50_ms: float
    p99_ms: float
    kib_each: float


@dataclass(frozen=True, slots=True)
class Server:
    """One process that is measured: what opens a stream of it, and what says the event of this number."""

    port: int
    pid: int
    target: str
    token: str
    say: Callable[[int], Awaitable[object]]


Found = Mapping[str, Mapping[float, Sequence[Heard]]]


async def streams(asked: Asked) -> Told:
    """Event → client."""
    sizes = asked.sizes(*SIZES)
    found: dict[str, dict[float, list[Heard]]] = {who: {} for who in (NOTIFIER, STARLETTE, BARE)}
    for number in range(asked.rounds):
        for size in sizes:
            for who in _in_turn(list(found), number):
                asked.say(f"round {number + 1} of {asked.rounds}: {size:,} streams, {who}")
                async with _up(who, size, asked) as server:
                    found[who].setdefault(size, []).append(await _heard(server, size, asked))
    drawn = {
        f"{who.removeprefix('floor: ')}, {name}": {size: Spread.of(_of(each, name)) for size, each in told.items()}
        for name in ("p50", "p99")
        for who, told in found.items()
    }
    picture = curves("From an event to all who listen", drawn, across="streams", unit="ms")
    return Told("\n\n".join([_rows(found, sizes), _growths(found)]), {"streams": picture})


async def _heard(server: Server, size: int, asked: Asked) -> Heard:
    before = resident_mib([server.pid])
    events = asked.some(EVENTS if size < 1_000 else EVENTS // 2, least=5)
    async with reading_streams(server.port, size, server.target, server.token) as report:
        each_kib = (resident_mib([server.pid]) - before) * 1024 / size
        said: dict[int, float] = {}
        for number in range(size * 1000, size * 1000 + events):
            said[number] = time.monotonic()
            await server.say(number)
            await asyncio.sleep(0.1 + size / 2500)
        arrived = await report()
    assert sum(map(len, arrived.values())) == size * events, "an event did not come, or came twice"
    delays = [(moment - said[int(number)]) * 1000 for number, moments in arrived.items() for moment in moments]
    return Heard(percentile(delays, 50), percentile(delays, 99), each_kib)


@asynccontextmanager
async def _up(who: str, size: int, asked: Asked) -> AsyncIterator[Server]:
    if who == NOTIFIER:
        async with _notifier(size, asked) as server:
            yield server
    else:
        async with _floor("bare" if who == BARE else "starlette", size) as server:
            yield server


@asynccontextmanager
async def _notifier(size: int, asked: Asked) -> AsyncIterator[Server]:
    user = f"everybody-{size}"  # has no past: what is measured is not the reading of it
    async with NatsServer(asked.room()) as nats, notifiers(nats.url, asked.room(), policy=ROOMY) as replicas:

        async def append(number: int) -> None:
            await replicas.write(step(f"b-{number}", "queued", user_id=user))

        process, target = replicas.processes[0], f"/v1/stream?last_event_id={replicas.log.epoch}-0"
        yield Server(process.port, process.pid, target, replicas.token(user), append)


@asynccontextmanager
async def _floor(kind: str, size: int) -> AsyncIterator[Server]:
    told = item_of(Record(1, STARTED_AT, queued("b-0", user_id=f"everybody-{size}")), epoch=new_epoch())
    assert told is not None
    frames, [port] = told.frames, free_ports(1)
    python = environment("floors").program("python")
    process = await asyncio.create_subprocess_exec(python, "of_streams.py", kind, str(port), cwd=PEERS)
    try:
        await eventually(lambda: _answers(port), every_s=0.05)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:

            async def say(number: int) -> None:
                await client.post("/say", content=frames.replace(b'"b-0"', b'"b-%d"' % number))

            yield Server(port, process.pid, "/v1/stream", "-", say)
    finally:
        process.kill()
        await process.wait()


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def _in_turn(names: Sequence[str], number: int) -> Iterator[str]:
    """Another one begins in each round."""
    return (names[(number + place) % len(names)] for place in range(len(names)))


def _of(heard: Sequence[Heard], name: str) -> list[float]:
    return [one.p50_ms if name == "p50" else one.p99_ms for one in heard]


def _rows(found: Found, sizes: Sequence[int]) -> str:
    rows = [
        [
            f"{size:,}",
            who,
            str(Spread.of(_of(heard, "p50"))),
            str(Spread.of(_of(heard, "p99"))),
            str(Spread.of(one.kib_each for one in heard)) if size >= 100 else "",
        ]
        for size in sizes
        for who, heard in ((who, told[size]) for who, told in found.items())
    ]
    return table(("streams", "", "p50, ms", "p99, ms", "memory each, KiB"), rows)


def _growths(found: Found) -> str:
    rows = [
        [
            who,
            *(
                str(growth((size, one) for size, heard in told.items() for one in _of(heard, name)) or "")
                for name in ("p50", "p99")
            ),
        ]
        for who, told in found.items()
    ]
    return table(("grows with streams, exponent of", "p50", "p99"), rows)
