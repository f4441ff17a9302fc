"""The gateway: what goes where, what is passed on at once, what waits, what ends, and what it says of itself."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from libs.runtime.eventually import eventually
from tests.fixtures.files import open_files
from tests.fixtures.gateway import HASTY, HOST, House, Part, answer, echo, endless, heard, house, playing, request
from tests.fixtures.manifests import service_of

TRIED_WITHIN_S: Final = 0.5  # twice the time between two tries to connect
SECRET: Final = "s3cr3t-t0k3n"


@pytest_asyncio.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with house(tmp_path_factory.mktemp("gateway")) as there:
        yield there


@pytest.fixture
def there(shared: House) -> House:
    shared.admission = shared.notifier = echo
    return shared


@pytest_asyncio.fixture(scope="module")
async def hasty(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    """One whose patience ends while a test waits for that."""
    async with house(tmp_path_factory.mktemp("hasty"), bounds=HASTY) as there:
        yield there


# --- what goes where ---


@pytest.mark.parametrize(
    ("path", "service"),
    [
        ("/", "notifier"),
        ("/assets/app.js", "notifier"),
        ("/v1/stream", "notifier"),
        ("/v1/stream?ticket=t", "notifier"),
        ("/v1/jobs/j1/stream?last_event_id=E-4", "notifier"),
        ("/v1/stream-tickets", "admission"),
        ("/v1/jobs", "admission"),
        ("/v1/jobs/j1", "admission"),
        ("/v1/jobs/j1/log", "admission"),
        ("/v1/jobs/stream", "admission"),
        ("/v1/jobs/j1/stream/more", "admission"),
        ("/v1/usage", "admission"),
        ("/openapi.json", "admission"),
        ("/readyz", None),
        ("/metrics", None),
        ("/%6detrics", None),
        ("/METRICS", None),
        ("/v1/../metrics", None),
        ("//metrics", None),
        ("/metrics/", None),
        ("/docs", None),
        ("/assetsx", None),
    ],
)
async def test_each_path_has_one_answer_here_and_at_a_gateway_of_a_cluster(
    there: House, path: str, service: str | None
) -> None:
    there.admission, there.notifier = named("admission"), named("notifier")

    said = await there.ask(f"GET {path}")

    if service is None:
        assert said.status == 404
        assert said.problem()["type"] == "/problems/not-found"
    else:
        assert (said.status, said.body.decode()) == (200, service)
    if path == path.lower() and not re.search(r"%|//|\.\.", path):  # how a cluster's own writes others is its business
        assert service_of(path.partition("?")[0]) == service


async def test_of_health_it_says_that_it_runs_itself(there: House) -> None:
    there.admission = there.notifier = silent

    said = await there.ask("GET /livez")

    assert (said.status, said.body) == (200, b"alive\n")


async def test_a_request_and_its_answer_pass_unchanged(there: House) -> None:
    said = await there.ask("POST /v1/jobs?dry_run=true", "Authorization: Bearer t", "If-Match: 3", body=b"x" * 300_000)

    seen = json.loads(said.body)
    assert (said.status, said.headers["x-seen"]) == (202, "yes")
    assert (seen["head"][0], seen["bytes"]) == ("POST /v1/jobs?dry_run=true HTTP/1.1", 300_000)
    assert {"Host: h", "Authorization: Bearer t", "If-Match: 3"} <= set(seen["head"])


async def test_what_a_client_cannot_know_of_itself_is_not_passed_on(there: House) -> None:
    lies = ("Forwarded: for=9.9.9.9", "X-Real-IP: 9.9.9.9", "X-Request-Id: 9", "X-Forwarded-Prefix: /9")

    said = await there.ask(
        "GET /v1/jobs", *lies, "X-Forwarded-For: 9.9.9.9", "X_Real_IP: 9.9.9.9", "traceparent: 00-t-s-01"
    )

    told = [line for line in json.loads(said.body)["head"] if not line.startswith("Host")]
    assert not [line for line in told if "9" in line]
    assert "X-Forwarded-For: 127.0.0.1" in told
    assert "Traceparent: 00-t-s-01" in told


async def test_one_connection_carries_requests_to_both_services(there: House) -> None:
    there.admission, there.notifier = named("admission"), named("notifier")

    async with there.connected() as (reader, writer):
        said: list[str] = []
        for path in ("/v1/jobs", "/v1/stream", "/v1/jobs"):
            writer.write(request(f"GET {path}"))
            said.append((await answer(reader)).body.decode())

    assert said == ["admission", "notifier", "admission"]


# --- nothing is held back ---


async def test_each_piece_of_a_stream_arrives_before_the_next_one_is_made(there: House) -> None:
    go_on = asyncio.Event()

    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
        await go_on.wait()
        writer.write(b"data: 2\n\n")

    there.notifier = stream
    async with there.connected() as (reader, writer):
        writer.write(request("GET /v1/jobs/j1/stream"))
        first = await reader.readuntil(b"data: 1\n\n")
        go_on.set()
        rest = await reader.readuntil(b"0\r\n\r\n")

    assert first.startswith(b"HTTP/1.1 200")
    assert b"data: 2" in rest


async def test_a_client_that_leaves_has_left_the_service_behind_too(there: House) -> None:
    """Or each page that is loaded again leaves a stream open, and its user soon has no more of them."""
    left: asyncio.Queue[None] = asyncio.Queue()

    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await endless(reader, writer)
        finally:
            left.put_nowait(None)

    there.notifier = stream
    for leave in (asyncio.StreamWriter.close, lambda writer: writer.transport.abort()):
        async with there.connected() as (reader, writer):
            writer.write(request("GET /v1/stream"))
            await reader.readuntil(b"data: 1\n\n")
            leave(writer)

            async with asyncio.timeout(30):
                await left.get()


async def test_three_hundred_streams_pass_at_once_and_none_waits_for_another(there: House) -> None:
    go_on, begun, number = asyncio.Event(), 0, 0

    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1]
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nfirst: " + path + b"\n\n")
        await go_on.wait()
        writer.write(b"then: " + path + b"\n\n")

    async def follow(path: str) -> bytes:
        nonlocal begun
        async with there.connected() as (reader, writer):
            writer.write(request(f"GET {path}"))
            await reader.readuntil(f"first: {path}\n\n".encode())
            begun += 1
            if begun == number:
                go_on.set()
            return await reader.readuntil(b"0\r\n\r\n")

    there.notifier = stream
    with open_files(3000) as files:
        number = min(300, files // 3)  # both ends are files of this process
        paths = [f"/v1/jobs/job-{each}/stream" for each in range(number)]
        told = await asyncio.gather(*(follow(path) for path in paths))

    assert all(f"then: {path}".encode() in rest for path, rest in zip(paths, told, strict=True))


async def test_a_refusal_does_not_wait_for_the_body(there: House) -> None:
    """Who has no token is told so at once, whatever they say they bring."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno")
        await reader.read()

    there.admission = refuse
    for announced in (100, 1_000_000):
        async with there.connected() as (reader, writer):
            writer.write(request("POST /v1/jobs", f"Content-Length: {announced}") + b"only this")

            assert (await answer(reader)).status == 401
            assert await reader.read() == b""


# --- while a service is away ---


@pytest.mark.parametrize("line", ["GET /v1/jobs", "POST /v1/jobs", "DELETE /v1/jobs/j1"])
async def test_a_service_that_is_back_in_time_is_waited_for_whatever_is_asked(tmp_path: Path, line: str) -> None:
    async with house(tmp_path, away=True) as there:
        asking = asyncio.create_task(there.ask(line, body=b"x" * 1000))
        await asyncio.sleep(TRIED_WITHIN_S)

        async with playing(echo, port=there.admission_port):
            said = await asking

    assert said.status == 202
    assert json.loads(said.body)["bytes"] == 1000


async def test_a_service_that_stays_away_is_a_503_that_says_that_nothing_was_asked(tmp_path: Path) -> None:
    async with house(tmp_path, bounds=HASTY, away=True) as there:
        said = await there.ask("POST /v1/jobs", body=b"{}")

    assert (said.status, said.headers["retry-after"]) == (503, "1")
    assert said.problem()["type"] == "/problems/away"


@pytest.mark.parametrize(
    "headers",
    [("Content-Length: 2",), ("Content-Length: 2", "Idempotency-Key: k"), ("Content-Length: 0", "Idempotency-Key: k")],
    ids=["a body", "a body and a key", "a key"],
)
async def test_what_a_service_may_have_done_is_not_asked_of_it_again(there: House, headers: tuple[str, ...]) -> None:
    there.admission = dies = Dying(times=1)

    async with there.connected() as (reader, writer):
        writer.write(request("POST /v1/jobs/j1/cancel", *headers) + b"{}"[: int(headers[0][-1])])
        said = await answer(reader)

    assert said.status == 502
    assert said.problem()["type"] == "/problems/unanswered"
    assert "retry-after" not in said.headers
    assert dies.asked == 1


async def test_a_question_is_asked_again_when_its_service_dies_over_it(there: House) -> None:
    there.admission = dies = Dying(times=2)

    said = await there.ask("GET /v1/jobs")

    assert (said.status, dies.asked) == (202, 3)


async def test_a_stop_ends_open_streams_and_they_do_not_look_complete(tmp_path: Path) -> None:
    async with house(tmp_path) as there:
        there.notifier = endless
        async with there.connected() as (reader, writer):
            writer.write(request("GET /v1/stream"))
            await reader.readuntil(b"data: 1\n\n")
            await there.caddy.stop()
            await there.caddy.stop()

            assert b"0\r\n\r\n" not in await reader.read()


async def test_clients_wait_at_the_door_while_the_gateway_is_started_again(tmp_path: Path) -> None:
    async with house(tmp_path) as there:
        await there.caddy.kill()
        asking = [asyncio.create_task(there.ask("POST /v1/jobs", body=b"{}")) for _ in range(50)]
        await asyncio.wait(asking, timeout=0.1)
        await there.caddy.start()

        said = await asyncio.gather(*asking)

    assert {each.status for each in said} == {202}


def test_the_port_is_nobody_elses(there: House) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        with pytest.raises(OSError, match="in use"):
            other.bind((HOST, there.port))


# --- what ends ---


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nHost: h\r\nHost: g\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nHost: h\r\nA b: c\r\n\r\n", 400),
        (b"GET /\x00 HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        (b"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        (b"POST /v1/jobs HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
        (b"POST /v1/jobs HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /v1/jobs HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST /v1/jobs HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nHost: h\r\nA: " + b"a" * 20_000 + b"\r\n\r\n", 431),
        (b"POST /v1/jobs HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"GET /livez HTTP/3.7\r\nHost: h\r\n\r\n", 505),
    ],
)
async def test_what_is_no_request_is_refused_and_the_connection_closed(there: House, raw: bytes, status: int) -> None:
    said = await there.send(raw)

    assert said.split(b" ")[1] == str(status).encode()


async def test_an_old_client_that_names_no_host_is_answered_and_forgotten(there: House) -> None:
    before = there.descriptors()

    assert (await there.send(b"GET /livez HTTP/1.0\r\n\r\n")).endswith(b"alive\n")

    await eventually(lambda: there.descriptors() <= before)


async def test_a_body_that_is_larger_than_any_route_takes_is_refused(hasty: House) -> None:
    hasty.admission = taking
    chunk = b"80000\r\n" + b"x" * 0x80000 + b"\r\n"

    async with hasty.connected() as (reader, writer):
        writer.write(request("POST /v1/jobs", "Transfer-Encoding: chunked") + chunk * 3)
        said = await answer(reader)

    assert (said.status, said.problem()["type"]) == (413, "/problems/too-large")


@pytest.mark.parametrize("head", [b"", b"GET /livez HT", b"GET /livez HTTP/1.1\r\nHost: h\r\nA: b"])
async def test_a_head_that_does_not_end_is_cut_off(hasty: House, head: bytes) -> None:
    async with asyncio.timeout(60):
        said = await hasty.send(head)

    assert b"alive" not in said


@pytest.mark.parametrize("sent", [b"", b"a", b"a" * 50])
async def test_a_body_that_does_not_end_is_cut_off_and_its_service_told(hasty: House, sent: bytes) -> None:
    cut = asyncio.Event()

    async def waiting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await heard(reader)
        finally:
            cut.set()

    hasty.admission = waiting
    async with asyncio.timeout(60):
        said = await hasty.send(request("POST /v1/jobs", "Content-Length: 100") + sent)
        await cut.wait()

    assert said.split(b" ")[1] in {b"408", b"499"}  # the second where the end of its time met Caddy elsewhere


async def test_a_client_that_takes_nothing_is_cut_off(hasty: House) -> None:
    left = asyncio.Event()

    async def pouring(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        try:
            while True:
                writer.write(b"data: x\n\n" * 1000)
                await writer.drain()
        finally:
            left.set()

    hasty.notifier = pouring
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect((HOST, hasty.port))
        deaf.sendall(request("GET /v1/stream"))

        async with asyncio.timeout(60):
            await left.wait()


# --- what it says of itself ---


async def test_no_secret_is_in_anything_that_it_writes(tmp_path: Path) -> None:
    secret = (f"Authorization: Bearer {SECRET}", f"Cookie: token={SECRET}", f"Referer: http://h/#token={SECRET}")
    paths = (f"/v1/stream?ticket={SECRET}", f"/#token={SECRET}", f"/v1/stream%3Fticket={SECRET}", f"/x?y={SECRET}")
    async with house(tmp_path, bounds=HASTY) as there:
        there.admission = Dying(times=1)  # so that faults are told as well
        for path in (*paths, f"/v1/jobs?q={SECRET}"):
            await there.ask(f"POST {path}", *secret, "Content-Length: 0")
        there.notifier = endless
        async with there.connected() as (reader, writer):
            writer.write(request(f"GET /v1/stream?ticket={SECRET}", *secret))
            await reader.readuntil(b"data: 1\n\n")
        await eventually(lambda: there.logged().count("handled request") == 6)
        written = there.logged()

    assert '"uri":"/v1/stream"' in written
    assert SECRET not in written


async def test_a_problem_is_found_in_the_log_by_its_id_and_says_what_was_wrong(there: House) -> None:
    there.admission = Dying(times=1)

    said = await there.ask("POST /v1/jobs", body=b"{}")

    await eventually(lambda: said.problem()["debug_id"] in there.logged())
    [line] = [line for line in there.logged().splitlines() if said.problem()["debug_id"] in line]
    assert json.loads(line)["problem"] == "EOF"


def test_it_listens_at_its_door_and_nowhere_else(there: House) -> None:
    pid = there.caddy.pid
    held = {str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()}
    tables = [Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6", "udp", "udp6")]
    rows = [line.split() for table in tables for line in table]

    listening = {
        int(row[1].rpartition(":")[2], 16) for row in rows if row[3] in {"0A", "07"} and f"socket:[{row[9]}]" in held
    }

    assert listening == {there.port}


# --- the parts that are played ---


class Dying:
    """Ends its connection over the first requests, after it has read them."""

    def __init__(self, *, times: int) -> None:
        self._times = times
        self.asked = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked += 1
        if self.asked > self._times:
            await echo(reader, writer)
        else:
            await heard(reader)


def named(name: str) -> Part:
    async def part(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await heard(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(name), name.encode()))

    return part


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def taking(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(2**16):
        pass
