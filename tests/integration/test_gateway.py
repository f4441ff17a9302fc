"""One port before two services: what goes where, that nothing is held back, and what a client sees of a restart."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

import pytest

from libs.local.gateway import Gateway, Routes, Upstream
from libs.local.ports import free_ports
from libs.runtime.eventually import eventually

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
NOBODY = Upstream("127.0.0.1", 1)


@pytest.mark.parametrize(
    ("target", "notifier"),
    [
        ("/", True),
        ("/assets/app.js", True),
        ("/v1/stream?ticket=t", True),
        ("/v1/stream-tickets", False),
        ("/v1/jobs/j1/stream?last_event_id=E-4", True),
        ("/v1/jobs/j1", False),
        ("/v1/jobs", False),
        ("/v1/jobs/j1/stream/more", False),
        ("/openapi.json", False),
        ("/../assets/x", False),
    ],
)
def test_streams_and_the_page_go_to_the_notifier(target: str, notifier: bool) -> None:  # noqa: FBT001 a table's column
    routes = Routes(admission=Upstream("a", 1), notifier=Upstream("n", 2))

    assert (routes.choose(target) is routes.notifier) is notifier


async def test_a_request_and_its_answer_pass_unchanged() -> None:
    async with serving(echo) as behind, gateway_to(behind) as port:
        status, headers, body = await ask(port, b"POST /v1/jobs?dry_run=true HTTP/1.1", b"x" * 300_000)

    seen = json.loads(body)
    assert (status, headers["x-seen"]) == (202, "yes")
    assert seen == {"line": "POST /v1/jobs?dry_run=true HTTP/1.1", "bytes": 300_000}


async def test_each_piece_of_a_stream_arrives_before_the_next_one_is_made() -> None:
    go_on = asyncio.Event()

    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
        await go_on.wait()
        writer.write(b"data: 2\n\n")
        writer.close()

    async with serving(stream) as behind, gateway_to(behind) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /v1/jobs/j1/stream HTTP/1.1\r\nHost: h\r\n\r\n")
        first = await reader.readuntil(b"data: 1\n\n")
        go_on.set()
        rest = await reader.readuntil(b"0\r\n\r\n")
        writer.close()

    assert first.startswith(b"HTTP/1.1 200")
    assert b"data: 2" in rest


async def test_one_connection_carries_requests_to_both_services() -> None:
    async with serving(echo) as one, serving(echo) as other:
        gateway = Gateway(Routes(admission=one, notifier=other))
        await gateway.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        lines = []
        for target in (b"/v1/jobs", b"/v1/stream", b"/v1/jobs"):
            writer.write(b"GET " + target + b" HTTP/1.1\r\nHost: h\r\n\r\n")
            lines.append(json.loads((await answer(reader))[2])["line"])
        writer.close()
        await gateway.stop()

    assert lines == ["GET /v1/jobs HTTP/1.1", "GET /v1/stream HTTP/1.1", "GET /v1/jobs HTTP/1.1"]


async def test_a_service_that_is_back_in_time_is_waited_for() -> None:
    [port_behind] = free_ports(1)
    behind = Upstream("127.0.0.1", port_behind)
    gateway = Gateway(Routes(admission=behind, notifier=behind))
    await gateway.start()
    asking = asyncio.create_task(ask(gateway.port, b"GET /v1/jobs HTTP/1.1"))
    await eventually(lambda: gateway._open)
    async with serving(echo, port=port_behind):
        status, _, _ = await asking
    await gateway.stop()

    assert status == 202


async def test_a_service_that_stays_away_is_a_503_that_says_when_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("libs.local.gateway.CONNECT_PATIENCE_S", 0.0)
    async with gateway_to(NOBODY) as port:
        status, headers, body = await ask(port, b"GET /v1/jobs HTTP/1.1")

    assert (status, headers["retry-after"], headers["content-type"]) == (503, "1", "application/problem+json")
    problem = json.loads(body)
    assert problem["status"] == 503
    assert len(problem["debug_id"]) == 32


async def test_a_stop_ends_open_streams_at_once() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\ndata: 1\n\n")
        await reader.read()
        writer.close()

    async with serving(endless) as behind:
        gateway = Gateway(Routes(admission=behind, notifier=behind))
        await gateway.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(b"GET /v1/stream HTTP/1.1\r\nHost: h\r\n\r\n")
        await reader.readuntil(b"data: 1\n\n")
        await gateway.stop()
        await gateway.stop()
        rest = await reader.read()
        writer.close()

    assert b"0\r\n\r\n" not in rest, "a stream that was cut must not look complete"


async def test_a_client_that_leaves_has_left_the_service_behind_too() -> None:
    """Or each page that is loaded again leaves a stream open, and its user soon has no more of them."""
    for leave in (asyncio.StreamWriter.close, lambda writer: writer.transport.abort()):
        begun, left = asyncio.Event(), asyncio.Event()
        async with serving(partial(endless, begun=begun, left=left)) as behind, gateway_to(behind) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /v1/stream HTTP/1.1\r\nHost: h\r\n\r\n")
            await begun.wait()
            leave(writer)

            async with asyncio.timeout(30):
                await left.wait()


async def test_a_client_that_takes_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("libs.local.gateway.STREAM_TAKEN_WITHIN_S", 1.0)
    left = asyncio.Event()

    async def pouring(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        with suppress(ConnectionError):
            while True:
                writer.write(b"data: x\n\n" * 1000)
                await writer.drain()
        left.set()

    async with serving(pouring) as behind, gateway_to(behind) as port:
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(("127.0.0.1", port))
            deaf.sendall(b"GET /v1/stream HTTP/1.1\r\nHost: h\r\n\r\n")

            async with asyncio.timeout(30):
                await left.wait()


async def test_three_hundred_streams_pass_at_once_and_none_waits_for_another() -> None:
    go_on, number = asyncio.Event(), 300

    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        name = head.split(b" ")[1]
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nfirst: " + name + b"\n\n")
        await go_on.wait()
        writer.write(b"then: " + name + b"\n\n")
        writer.close()

    async def follow(port: int, name: str) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /v1/jobs/{name}/stream HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        await reader.readuntil(f"first: /v1/jobs/{name}/stream\n\n".encode())
        begun.append(name)
        if len(begun) == number:
            go_on.set()
        rest = await reader.readuntil(b"0\r\n\r\n")
        writer.close()
        return rest

    begun: list[str] = []
    async with serving(stream) as behind, gateway_to(behind) as port:
        names = [f"job-{each}" for each in range(number)]
        heard = await asyncio.gather(*(follow(port, name) for name in names))

    assert all(f"then: /v1/jobs/{name}/stream".encode() in rest for name, rest in zip(names, heard, strict=True))


async def endless(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, begun: asyncio.Event, left: asyncio.Event
) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
    begun.set()
    with suppress(ConnectionError):
        await reader.read()
    left.set()
    writer.close()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    lengths = [line.split(":")[1] for line in head.lower().splitlines() if line.startswith("content-length")]
    body = await reader.readexactly(int(lengths[0]) if lengths else 0)
    said = json.dumps({"line": head.splitlines()[0], "bytes": len(body)}).encode()
    writer.write(b"HTTP/1.1 202 Accepted\r\nX-Seen: yes\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said))
    writer.close()


@asynccontextmanager
async def serving(handler: Handler, *, port: int = 0) -> AsyncIterator[Upstream]:
    server = await asyncio.start_server(handler, "127.0.0.1", port)
    async with server:
        yield Upstream("127.0.0.1", server.sockets[0].getsockname()[1])


@asynccontextmanager
async def gateway_to(behind: Upstream) -> AsyncIterator[int]:
    gateway = Gateway(Routes(admission=behind, notifier=behind))
    await gateway.start()
    try:
        yield gateway.port
    finally:
        await gateway.stop()


async def ask(port: int, line: bytes, body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(line + b"\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    await writer.drain()
    try:
        return await answer(reader)
    finally:
        writer.close()


async def answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return int(head[0].split()[1]), headers, await reader.readexactly(int(headers["content-length"]))
