"""How streams end: one too many, a client that goes or takes nothing, a replica that stops, a log that is away."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate_contracts.commands import LOGS_PREFIX, LogLine
from libs.local.servers import NatsServer
from libs.runtime.eventually import eventually
from tests.fixtures.clients import nats_client
from tests.fixtures.files import open_files
from tests.fixtures.lives import life_of
from tests.fixtures.streams import LOST, Client, Notifiers, listening, notifiers

WHOLE = "queued dispatched started scaffold code deps checks ready"
NARROW = "[stream]\nper_user = 3\nper_replica = 5\n"
MANY = "[stream]\nper_user = 1000\n"
QUICK = "[stream]\nslow_after_s = 1\n"


async def test_one_user_has_so_many_streams_and_one_replica_has(nats_url: str, tmp_path: Path) -> None:
    async with notifiers(nats_url, tmp_path, policy=NARROW) as replicas:
        await replicas.write(*life_of("job-1", "queued"))
        first = [await replicas.get("/v1/stream") for _ in range(3)]
        fourth = await replicas.get("/v1/jobs/job-1/stream")
        others = [await replicas.get("/v1/stream", user=f"user-{number}") for number in (2, 3)]
        sixth = await replicas.get("/v1/stream", user="user-4")
        said = [await refused.body() for refused in (fourth, sixth)]
        first[0].cut()
        await eventually(lambda: _is_let_in(replicas))

        assert [client.status for client in (*first, fourth, *others, sixth)] == [200, 200, 200, 429, 200, 200, 429]
        assert [client.headers["retry-after"] for client in (fourth, sixth)] == ["5", "5"]
        assert "you have 3 streams open here" in said[0]["detail"]
        assert "this replica has 5 streams open" in said[1]["detail"]


async def test_whoever_leaves_leaves_nothing_behind(nats_url: str, tmp_path: Path) -> None:
    """Also in the middle of being let in: counted are both the streams and what they listen to."""
    async with notifiers(nats_url, tmp_path, policy=NARROW) as replicas:
        await replicas.write(*life_of("job-1", "queued"))
        for way in ("fin", "reset", "before the answer", "refused", "complete"):
            await asyncio.gather(*(_come_and_go(replicas, way) for _ in range(3)))
            await replicas.no_streams_left()
            await eventually(lambda: _is_let_in(replicas))


async def test_a_log_that_is_away_is_a_problem_and_no_broken_stream(nats_server: NatsServer, tmp_path: Path) -> None:
    async with notifiers(nats_server.url, tmp_path) as replicas:
        await replicas.write(*life_of("job-1", "queued"))
        nats_server.pause()
        paths = ("/v1/jobs/job-1/stream", "/v1/stream")
        clients = await asyncio.gather(*(replicas.get(path) for path in paths))
        said = [await client.body() for client in clients]
        nats_server.resume()
        await replicas.no_streams_left()
        await eventually(lambda: _is_let_in(replicas))

    assert [client.status for client in clients] == [503, 503]
    assert all(problem["debug_id"] for problem in said)
    assert all("retry-after" in client.headers for client in clients)


async def test_a_client_that_takes_nothing_is_cut_off_and_misses_nothing(nats_url: str, tmp_path: Path) -> None:
    """It blocks in its socket, where no queue would notice; what is kept for it meanwhile does not grow."""
    async with notifiers(nats_url, tmp_path, policy=QUICK) as replicas:
        life = life_of("job-1", WHOLE)
        begun = (await replicas.write(*life[:4]))[-1]
        files = _open_files(replicas)
        with _deaf(replicas, "/v1/jobs/job-1/stream") as blocked:
            await eventually(lambda: _count(replicas, 1))
            before_kib = _resident_kib(replicas)
            async with _chatting(nats_url, "job-1"):
                await eventually(lambda: _count(replicas, 0), every_s=0.1)
            grown_kib = _resident_kib(replicas) - before_kib
            await eventually(lambda: _open_files(replicas) <= files)  # the connection is gone too, with all it held
            rest = await _rest_of(blocked)
        seqs = await replicas.write(*life[4:])
        resumed = await eventually(lambda: _resumed(replicas, last=f"{replicas.log.epoch}-{begun}"))
        counted = {name: await replicas.metric(f"headgate_notifier_{name}") for name in ("cut_off_total", "streams")}

    assert resumed == seqs
    assert counted == {"cut_off_total": 1, "streams": 0}
    assert grown_kib < 16 * 1024
    assert rest
    assert not rest.endswith(b"0\r\n\r\n"), "a stream that was cut must not look complete"


async def _resumed(replicas: Notifiers, *, last: str) -> list[int | None]:
    """What it missed; nothing where a busy server could not read the lines, and told it to come again."""
    async with replicas.listen("/v1/jobs/job-1/stream", last=last) as again:
        return [event.seq for event in await again.events() if event.kind == "status"]


@pytest.mark.kills
async def test_a_replica_that_stops_ends_a_thousand_streams_and_waits_for_none_that_takes_nothing(
    nats_url: str, tmp_path: Path
) -> None:
    """Each has got its `retry:`. Where the machine allows fewer files, fewer."""
    with open_files(4000) as files:
        number = min(1000, files // 2)
        async with notifiers(nats_url, tmp_path, policy=MANY) as replicas:
            await replicas.write(*life_of("job-1", "queued dispatched started scaffold code"))
            clients = [await _begun(replicas, user) for user in range(number)]
            with _deaf(replicas, "/v1/jobs/job-1/stream"):
                await eventually(lambda: _count(replicas, number + 1))
                async with _chatting(nats_url, "job-1"):
                    stopping = asyncio.create_task(replicas.processes[0].stop())
                    ends = await asyncio.gather(*map(_end_of, clients))
                    await stopping
            said = replicas.processes[0].words()

    assert set(ends) == {b"retry: 2000\n\n"}
    assert "was cut off" not in said, "it was waited for a client that takes nothing"


async def _begun(replicas: Notifiers, user: int) -> Client:
    client = await replicas.get("/v1/stream", user=f"user-{user + 10}")
    await client.expect()
    return client


async def _end_of(client: Client) -> bytes:
    while await client.piece() is not None:
        pass
    client.cut()
    return bytes(client.raw[-13:])


async def _is_let_in(replicas: Notifiers) -> bool:
    async with listening(replicas.url, "/v1/stream", token=replicas.token()) as client:
        return client.status == 200


async def _count(replicas: Notifiers, wanted: int) -> bool:
    return await replicas.metric("headgate_notifier_streams") == wanted


async def _come_and_go(replicas: Notifiers, way: str) -> None:
    if way == "before the answer":
        _, writer = await asyncio.open_connection("127.0.0.1", replicas.processes[0].port)
        writer.write(_request(replicas, "/v1/jobs/job-1/stream"))
        await writer.drain()
        writer.transport.abort()
        return
    path = "/v1/jobs/no-such-job/stream" if way == "refused" else "/v1/jobs/job-1/stream"
    client = await replicas.get(path)
    if client.status == 200:
        await client.expect()
    if way == "fin":
        client.writer.close()
    else:
        client.cut()


def _request(replicas: Notifiers, path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {replicas.token()}\r\n\r\n".encode()


@contextmanager
def _deaf(replicas: Notifiers, path: str) -> Iterator[socket.socket]:
    """A client that asks and then never reads."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", replicas.processes[0].port))
        connection.sendall(_request(replicas, path))
        yield connection


async def _rest_of(connection: socket.socket) -> bytes:
    """What still comes. A connection that the other side's kernel gave up may say nothing of it."""
    connection.setblocking(False)
    rest, loop = bytearray(), asyncio.get_running_loop()
    with suppress(*LOST, TimeoutError):
        while piece := await asyncio.wait_for(loop.sock_recv(connection, 65536), 2):
            rest += piece
    return bytes(rest)


@asynccontextmanager
async def _chatting(nats_url: str, job_id: str) -> AsyncIterator[None]:
    """A build that says 4 MB a second. It has begun when this is entered."""
    line = LogLine(job_id=job_id, attempt=1, stage="code", line="x" * 8000, ts=datetime.now(UTC))
    begun = asyncio.Event()

    async def say_on() -> None:
        while True:
            for _ in range(50):
                await nc.publish(f"{LOGS_PREFIX}.{job_id}", line.model_dump_json().encode())
            await nc.flush()
            begun.set()
            await asyncio.sleep(0.1)

    async with nats_client(nats_url) as nc:
        saying = asyncio.create_task(say_on())
        await begun.wait()
        try:
            yield
        finally:
            saying.cancel()
            await asyncio.wait([saying])


def _open_files(replicas: Notifiers) -> int:
    return len(list(Path(f"/proc/{replicas.processes[0].pid}/fd").iterdir()))


def _resident_kib(replicas: Notifiers) -> int:
    status = Path(f"/proc/{replicas.processes[0].pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])
