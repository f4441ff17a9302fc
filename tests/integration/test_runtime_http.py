"""A real server on a free port: streams end with their last bytes, and refusals arrive whole, however much was sent."""

import asyncio
import gc
import json
import socket
import time
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any

import httpx
import pytest
import pytest_asyncio
from fastapi import Depends, FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict
from uvicorn.protocols.http.h11_impl import H11Protocol

from libs.runtime.app import create_app
from libs.runtime.auth import Identity, Principal, Tokens
from libs.runtime.bodies import BodyLimit
from libs.runtime.clock import SystemClock
from libs.runtime.errors import PortTaken
from libs.runtime.eventually import PATIENCE_S, eventually
from libs.runtime.gate import Gate
from libs.runtime.guard import GuardedRoute
from libs.runtime.http import HttpServer
from libs.runtime.keys import KeyPair, jwks
from libs.runtime.keysets import Keys
from libs.runtime.lifecycle import Health
from libs.runtime.probes import Probes
from libs.runtime.telemetry import Telemetry
from tests.fixtures.issuer import LOCAL_TERMS

PAIR = KeyPair.generate()
LIMITS = {"POST /jobs": BodyLimit(256 * 1024)}
NEVER_S = 86_399.0  # as no other timer has
STREAMS = 300
LAST = b"retry: 2000\n\n"


class Submission(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    project_id: str


@dataclass
class Service:
    server: HttpServer
    gate: Gate
    streams: int = 0
    ended: int = 0
    requests: list["weakref.ref[Request]"] = field(default_factory=list)
    takers: list["Taker"] = field(default_factory=list)


class Taker(asyncio.Protocol):
    """Has a connection for itself, in the midst of an answer."""

    transport: asyncio.Transport | None
    lost = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True


class Handed(Response):
    """An answer whose head alone is the application's."""

    def __init__(self, takers: list[Taker]) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._takers = takers

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        taker, connection = Taker(), scope["state"]["connection"]
        if "gone" in scope["path"]:
            connection.transport.abort()
        taker.transport = connection.hand_over(taker)
        self._takers.append(taker)


@pytest_asyncio.fixture
async def service() -> AsyncIterator[Service]:
    clock = SystemClock()
    gate = Gate(patience_s=600)  # a connection it waits for in vain holds up the test
    telemetry = Telemetry("test", instance="t-1", logs=None)
    app = create_app(
        "test",
        version="0",
        gate=gate,
        telemetry=telemetry,
        tokens=Tokens(Keys(["-"], clock=clock, read=public_keys), LOCAL_TERMS, clock=clock),
    )
    probes = Probes(gate=gate, health=Health(), telemetry=telemetry, rest=app)
    made = Service(HttpServer(probes, host="127.0.0.1", port=0, leaving=gate.draining), gate)
    add_routes(app, made)
    await made.server.start()
    await gate.start()
    yield made
    await gate.stop()
    await made.server.stop()


async def public_keys(source: str) -> bytes:
    return jwks(PAIR)


class Route(GuardedRoute):
    limits = LIMITS


def add_routes(app: FastAPI, service: Service) -> None:
    app.router.route_class = Route

    @app.post("/jobs")
    async def submit(submission: Submission, who: Annotated[Principal, Depends(Identity("jobs:write"))]) -> str:
        return who.user

    @app.get("/held-back")
    async def held_back(request: Request) -> bool:
        connection: socket.socket = request.state.connection.transport.get_extra_info("socket")
        return not connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    @app.get("/taken")
    @app.get("/gone")
    async def taken(request: Request) -> Response:
        service.requests.append(weakref.ref(request))
        return Handed(service.takers)

    @app.get("/stream")
    async def stream() -> StreamingResponse:
        async def frames() -> AsyncIterator[bytes]:
            service.streams += 1
            yield b": hello\n\n"
            await service.gate.draining.wait()
            yield LAST
            service.ended += 1

        return StreamingResponse(frames(), media_type="text/event-stream")


@pytest_asyncio.fixture
async def client(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=service.server.url, timeout=30) as made:
        yield made


@pytest_asyncio.fixture
async def cuts(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What a server would do to a connection later on: the test says when."""
    monkeypatch.setattr("libs.runtime.http.UNWANTED_S", NEVER_S)
    loop, planned = asyncio.get_running_loop(), list[Callable[[], None]]()
    call_later = loop.call_later

    def planning(delay: float, do: Callable[..., None], *args: object, **more: Any) -> asyncio.TimerHandle:
        handle = call_later(delay, do, *args, **more)
        if delay == NEVER_S:
            planned.append(lambda: None if handle.cancelled() else do(*args))
        return handle

    monkeypatch.setattr(loop, "call_later", planning)
    return planned


def token(**changed: object) -> dict[str, str]:
    claims = {"sub": "u1", "tier": "partner", "scope": "jobs:write", "iss": "headgate", "aud": "headgate"}
    return {"Authorization": f"Bearer {PAIR.sign({**claims, 'exp': int(time.time()) + 3600, **changed})}"}


async def raw(service: Service, request: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", service.server.port)
    writer.write(request.replace("\n", "\r\n").encode())
    return reader, writer


def begun(*, signed_in: bool) -> str:
    """A request that announces ten megabytes and has sent none of them."""
    who = f"Authorization: {token()['Authorization']}\n" if signed_in else ""
    return f"POST /jobs HTTP/1.1\nHost: test\n{who}Content-Length: 10000000\n\n"


async def answered(reader: asyncio.StreamReader) -> bytes:
    """The status of one answer, once all of it was read."""
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(length)
    return head[:12]


async def all_of_a_stream(service: Service) -> bytes:
    reader, writer = await raw(service, "GET /stream HTTP/1.1\nHost: test\n\n")
    try:
        return await reader.read()
    finally:
        writer.close()


async def test_open_streams_get_their_last_bytes_and_end_at_once(service: Service) -> None:
    readers = [asyncio.create_task(all_of_a_stream(service)) for _ in range(STREAMS)]
    await eventually(lambda: service.streams == STREAMS)

    async with asyncio.timeout(PATIENCE_S):
        await service.gate.stop()
        await service.server.stop()

    for stream in await asyncio.gather(*readers):
        head, _, body = stream.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert LAST in body
        assert body.endswith(b"0\r\n\r\n")  # the end of a chunked body: nothing was cut
    assert service.ended == STREAMS


async def test_a_connection_that_is_handed_over_is_its_takers_and_nothing_of_the_request_stays(
    service: Service,
) -> None:
    reader, writer = await raw(service, "GET /taken HTTP/1.1\nHost: test\n\n")
    head = await reader.readuntil(b"\r\n\r\n")
    await eventually(lambda: service.takers and service.requests[0]() is None)
    [taker] = service.takers
    assert taker.transport is not None

    taker.transport.write(b"2\r\nhi\r\n0\r\n\r\n")
    said = await reader.readuntil(b"0\r\n\r\n")
    writer.close()
    await eventually(lambda: taker.lost)

    assert b"transfer-encoding: chunked" in head.lower()
    assert said == b"2\r\nhi\r\n0\r\n\r\n"


async def test_nothing_that_was_planned_before_befalls_a_connection_that_is_handed_over(
    service: Service, cuts: list[Callable[[], None]]
) -> None:
    reader, writer = await raw(service, "POST /jobs HTTP/1.1\nHost: test\nContent-Length: 3\n\n")
    assert await answered(reader) == b"HTTP/1.1 401"
    writer.write(b"{ }GET /taken HTTP/1.1\r\nHost: test\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    await eventually(lambda: service.takers)

    [cut] = cuts
    cut()

    [taker] = service.takers
    assert taker.transport is not None
    assert not taker.transport.is_closing()
    writer.close()
    await eventually(lambda: taker.lost)


async def test_a_connection_that_has_gone_is_not_handed_over_and_that_is_no_fault(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await raw(service, "GET /gone HTTP/1.1\nHost: test\n\n")
    with suppress(ConnectionError):
        await reader.read()
    writer.close()
    await eventually(lambda: service.requests[0]() is None)

    assert [taker.transport for taker in service.takers] == [None]
    assert "without completing" not in caplog.text


async def test_a_service_that_leaves_refuses_new_connections_while_old_ones_go_on(service: Service) -> None:
    """So that a client that has not been heard may ask the next process, whatever is asked."""
    old, writer = await raw(service, "GET /livez HTTP/1.1\nHost: test\n\n")
    assert (await old.readline()).split()[1] == b"200"

    service.gate.draining.set()

    await eventually(lambda: refuses(service.server.port))
    writer.write(b"GET /livez HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
    assert b"HTTP/1.1 200" in await old.read()
    writer.close()


async def refuses(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionError:
        return True
    writer.close()
    return False


async def test_who_is_refused_in_the_midst_of_a_body_on_a_connection_for_one_request_reads_the_refusal(
    service: Service,
) -> None:
    """As a gateway sends it. Closed at once, its next piece would find nobody, and the refusal would be lost to it."""
    request = "POST /jobs HTTP/1.1\nHost: test\nConnection: close\nContent-Length: 300000\n\n"
    reader, writer = await raw(service, request)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 401")

    for _ in range(3):  # the first one would be answered by a reset, which the others meet
        writer.write(b"x" * 100_000)
        await writer.drain()
        await asyncio.sleep(0.05)

    assert b"/problems/unauthorized" in await reader.read()
    writer.close()


async def test_a_connection_that_is_closed_by_half_ends_without_its_client(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("libs.runtime.http.UNWANTED_S", 0.2)
    reader, writer = await raw(service, "POST /jobs HTTP/1.1\nHost: test\nConnection: close\nContent-Length: 9\n\n")
    assert b"/problems/unauthorized" in await reader.read()

    await eventually(lambda: is_refused(writer))


def is_refused(writer: asyncio.StreamWriter) -> bool:
    """Whether nobody is there any more."""
    writer.write(b"x")
    return writer.transport.is_closing()


async def test_a_client_that_has_gone_holds_up_nobody(service: Service) -> None:
    _, writer = await raw(service, "GET /stream HTTP/1.1\nHost: test\n\n")
    await eventually(lambda: service.streams == 1)
    writer.transport.abort()

    async with asyncio.timeout(PATIENCE_S):
        await service.gate.stop()


@pytest.mark.parametrize("signed_in", [False, True])
async def test_ten_megabytes_are_refused_before_they_are_sent(
    service: Service,
    signed_in: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    reader, writer = await raw(service, begun(signed_in=signed_in))

    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)

    assert head.startswith(b"HTTP/1.1 413" if signed_in else b"HTTP/1.1 401")
    assert b"application/problem+json" in head
    writer.close()


async def test_a_body_that_nobody_wants_is_not_taken_for_ever(service: Service, cuts: list[Callable[[], None]]) -> None:
    reader, writer = await raw(service, begun(signed_in=False))
    assert await answered(reader) == b"HTTP/1.1 401"

    [cut] = cuts
    cut()

    assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
    writer.close()


async def test_of_a_body_that_nobody_wants_nothing_is_kept_once_its_sender_has_gone(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("libs.runtime.http.UNWANTED_S", NEVER_S)
    before, number = known_connections(), 20
    for _ in range(number):
        reader, writer = await raw(service, begun(signed_in=False))
        assert await answered(reader) == b"HTTP/1.1 401"
        writer.close()

    await eventually(lambda: known_connections() < before + number)


def known_connections() -> int:
    """To which anything still refers."""
    gc.collect()
    return sum(isinstance(each, H11Protocol) for each in gc.get_objects())


async def test_a_connection_whose_refused_body_came_is_kept(service: Service, cuts: list[Callable[[], None]]) -> None:
    reader, writer = await raw(service, "POST /jobs HTTP/1.1\nHost: test\nContent-Length: 3\n\n")
    answers = [await answered(reader)]
    writer.write(b"{ }")

    for _ in range(3):
        writer.write(b"GET /held-back HTTP/1.1\r\nHost: test\r\n\r\n")
        answers.append(await answered(reader))
        [cut] = cuts
        cut()

    assert answers == [b"HTTP/1.1 401", *[b"HTTP/1.1 200"] * 3]
    writer.close()


@pytest.mark.parametrize("in_chunks", [False, True], ids=["announced", "in chunks"])
async def test_a_client_that_sends_all_of_ten_megabytes_gets_the_whole_refusal(
    client: httpx.AsyncClient,
    in_chunks: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"x" * 100_000

    response = await client.post("/jobs", content=chunks() if in_chunks else b"x" * 10_000_000, headers=token())

    assert (response.status_code, response.json()["type"]) == (413, "/problems/too-large")
    assert (await client.post("/jobs", json={"project_id": "shop"}, headers=token())).json() == "u1"


@pytest.mark.parametrize(
    ("body", "headers", "status", "named"),
    [
        ({"project_id": "shop"}, {}, 401, "No token"),
        ({"project_id": "shop"}, token(aud="billing"), 401, "another audience"),
        ({"project_id": "shop"}, token(scope="jobs:read"), 403, "jobs:write"),
        ({"project_id": "shop", "colour": 1}, token(), 422, "colour"),
        ({"project_id": 1}, token(), 422, "project_id"),
        ({"project_id": "x" * 300_000}, token(), 413, "262144 bytes"),
    ],
)
async def test_refusals_are_problems_that_name_what_is_wrong(
    client: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str], status: int, named: str
) -> None:
    response = await client.post("/jobs", json=body, headers=headers)

    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    assert named in response.json()["detail"]
    assert len(response.json()["debug_id"]) == 32
    assert ("www-authenticate" in response.headers) is (status in {401, 403})


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"project_id": ' + b"9" * 10_000 + b"}",
        b'{"project_id": "\xff"}',
        b'{"project_id": "\\ud800"}',
    ],
    ids=["deep", "a number of 10,000 digits", "no UTF-8", "half a character"],
)
async def test_a_body_that_breaks_parsers_is_the_clients_fault(client: httpx.AsyncClient, body: bytes) -> None:
    response = await client.post("/jobs", content=body, headers={**token(), "Content-Type": "application/json"})

    assert response.status_code in {400, 422}
    assert json.loads(response.content)["debug_id"]


async def test_a_character_spelled_as_a_pair_is_read(client: httpx.AsyncClient) -> None:
    body = b'{"project_id": "\\ud83d\\ude80"}'

    response = await client.post("/jobs", content=body, headers={**token(), "Content-Type": "application/json"})

    assert response.json() == "u1"


async def test_no_answer_waits_for_the_clients_acknowledgement(service: Service, client: httpx.AsyncClient) -> None:
    """Held back, each body on a connection that is kept would come 40 ms after its head."""
    assert (await client.get("/held-back")).json() is False


async def test_a_port_that_is_taken_is_said(service: Service) -> None:
    other = HttpServer(FastAPI(), host="127.0.0.1", port=service.server.port)

    with pytest.raises(PortTaken, match=str(service.server.port)):
        await other.start()
    await other.stop()


async def test_a_server_serves_again_on_its_port_after_a_stop(service: Service) -> None:
    port = service.server.port
    await service.server.stop()
    await service.server.stop()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)

    again = HttpServer(FastAPI(), host="127.0.0.1", port=port)
    await again.start()
    await again.start()

    async with httpx.AsyncClient(base_url=again.url, timeout=30) as client:
        assert (await client.get("/openapi.json")).status_code == 200
    await again.stop()


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
async def test_an_address_of_ipv6_stands_in_brackets() -> None:
    server = HttpServer(FastAPI(), host="::1", port=0)
    try:
        await server.start()
    except PortTaken:
        pytest.skip("this machine has no IPv6 loopback address")

    async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
        assert (await client.get("/openapi.json")).status_code == 200
    assert server.url == f"http://[::1]:{server.port}"
    await server.stop()
