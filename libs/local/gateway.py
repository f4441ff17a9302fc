"""One port in front of admission and notifier, for one machine and for compose.

    */stream, /, /assets/*   →  notifier
    everything else          →  admission

Owns the routing and the copying of bytes: as they come, unbuffered, with no limit on how long a response may take.
Refuses to know what is inside. While the service behind is away it is waited for (nothing was sent yet, so any
method may wait), then the client is told 503 with `Retry-After`. A client that leaves has left the service behind too.
`headgate up` and the compose file run it; in Kubernetes a Gateway does this work.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, cast

import h11

from libs.runtime.unread import limit_unread

logger = logging.getLogger(__name__)

CHUNK: Final = 65_536
CONNECT_PATIENCE_S: Final = 3.0  # a service that died is back within a second, and ready within another
HEAD_TIMEOUT_S: Final = 60.0  # an idle keep-alive connection, or one that never finishes its request's head
LAST_BODY_S: Final = 5.0
LAST_BODY_BYTES: Final = 32 * 1024 * 1024  # whoever sends more may find the connection closed before the answer
LAST_BYTES_S: Final = 2.0
STREAM_TAKEN_WITHIN_S: Final = 10.0  # as the notifier's own clients; a download may rest for longer
EVENT_STREAM: Final = b"text/event-stream"
HOP_BY_HOP: Final = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"te", b"upgrade"})
NOTIFIER_PATHS: Final = re.compile(r"/(assets/.*|v1/stream|v1/jobs/[^/]+/stream)?")


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where a service listens."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Routes:
    """Who answers what."""

    admission: Upstream
    notifier: Upstream

    def choose(self, target: str) -> Upstream:
        path = target.partition("?")[0]
        return self.notifier if NOTIFIER_PATHS.fullmatch(path) else self.admission


class Gateway:
    """Listens, and copies. `start` and `stop` may be called twice."""

    def __init__(self, routes: Routes, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._routes = routes
        self._host = host
        self._port = port
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The real one, where 0 was asked for."""
        if self._server is None:
            raise RuntimeError("the gateway has not been started")
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def start(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, self._host, self._port)

    async def stop(self) -> None:
        """Takes no new connection and ends the open ones: streams are resumed by their clients."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await Exchange(h11.Connection(h11.SERVER, max_incomplete_event_size=CHUNK), reader, writer).run(
                self._routes
            )
        except (OSError, h11.RemoteProtocolError, asyncio.CancelledError):
            pass  # either side went away in mid-sentence: the other one notices by the closed connection
        finally:
            self._open.discard(task)
            await _closed(writer)


class Exchange:
    """One client's connection: requests one after another, each with a connection of its own to the service behind."""

    def __init__(self, client: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._client = client
        self._reader = reader
        self._writer = writer

    async def run(self, routes: Routes) -> None:
        while True:
            async with asyncio.timeout(HEAD_TIMEOUT_S):
                request = await self._next()
            if not isinstance(request, h11.Request):
                return
            await self._forward(request, routes.choose(request.target.decode("latin-1")))
            if self._client.our_state is not h11.DONE or self._client.their_state is not h11.DONE:
                return
            self._client.start_next_cycle()

    async def _forward(self, request: h11.Request, upstream: Upstream) -> None:
        try:
            behind = await Behind.connect(upstream)
        except OSError:
            await self._send_away()
            return
        sending = asyncio.create_task(self._send_request(behind, request))
        try:
            async for event in behind.answer():
                if isinstance(event, h11.Response) and _is_stream(event):
                    limit_unread(self._writer.transport, within_s=STREAM_TAKEN_WITHIN_S)
                await self._send(event)
        finally:
            sending.cancel()
            behind.close()
            await asyncio.gather(sending, return_exceptions=True)
        await self._pass_over()

    async def _pass_over(self) -> None:
        """What the client still sends after its answer. Most read no answer before they have sent everything, and a
        connection that is closed under them takes the answer along."""
        passed, client = 0, self._client
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_BODY_S):
                while client.their_state is h11.SEND_BODY and passed <= LAST_BODY_BYTES:
                    if client.they_are_waiting_for_100_continue:
                        return
                    event = await self._next()
                    passed += len(event.data) if isinstance(event, h11.Data) else 0

    async def _send_request(self, behind: Behind, request: h11.Request) -> None:
        # Not told to close: a service that answers early would, and what is still under way would cut its answer off.
        headers = [(name, value) for name, value in request.headers if name not in HOP_BY_HOP]
        await behind.send(h11.Request(method=request.method, target=request.target, headers=headers))
        while isinstance(event := await self._next(), h11.Data | h11.EndOfMessage):
            await behind.send(event)
            if isinstance(event, h11.EndOfMessage):
                break
        if await self._left():
            behind.close()  # nobody is there any more to hear its answer

    async def _left(self) -> bool:
        """Until the client goes. What it sends before its answer is its next request, and is kept: so much, no more."""
        while len(self._client.trailing_data[0]) < CHUNK:
            try:
                data = await self._reader.read(CHUNK)
            except OSError:
                return True
            self._client.receive_data(data)
            if not data:
                return True
        return False

    async def _next(self) -> Any:
        while (event := self._client.next_event()) is h11.NEED_DATA:
            if self._client.they_are_waiting_for_100_continue:
                await self._send(h11.InformationalResponse(status_code=100, headers=[]))
            self._client.receive_data(await self._reader.read(CHUNK))
        return event

    async def _send(self, event: Any) -> None:
        self._writer.write(_bytes_of(self._client, event))
        await self._writer.drain()

    async def _send_away(self) -> None:
        debug_id = secrets.token_hex(16)
        logger.info("a service behind the gateway is away: debug_id %s", debug_id)
        body = _away(debug_id)
        headers = [
            ("content-type", "application/problem+json"),
            ("content-length", str(len(body))),
            ("retry-after", "1"),
            ("connection", "close"),
        ]
        await self._send(h11.Response(status_code=503, headers=headers))
        await self._send(h11.Data(data=body))
        await self._send(h11.EndOfMessage())


class Behind:
    """One request to the service behind, on a connection of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._http = h11.Connection(h11.CLIENT)
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, upstream: Upstream) -> Behind:
        give_up_at = time.monotonic() + CONNECT_PATIENCE_S
        while True:
            try:
                return cls(*await asyncio.open_connection(upstream.host, upstream.port))
            except OSError:
                if time.monotonic() >= give_up_at:
                    raise
                await asyncio.sleep(0.05)

    async def send(self, event: Any) -> None:
        self._writer.write(_bytes_of(self._http, event))
        await self._writer.drain()

    async def answer(self) -> AsyncIterator[Any]:
        """The response as the client is to see it, event by event, as soon as each is there."""
        while True:
            event = self._http.next_event()
            match event:
                case h11.NEED_DATA:
                    self._http.receive_data(await self._reader.read(CHUNK))
                case h11.Response():
                    headers = [(name, value) for name, value in event.headers if name not in HOP_BY_HOP]
                    yield h11.Response(status_code=event.status_code, headers=headers)
                case h11.Data():
                    yield event
                case h11.EndOfMessage():
                    yield event
                    return
                case _:  # 1xx: each hop says its own
                    pass

    def close(self) -> None:
        self._writer.close()


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Also where the client takes nothing any more."""
    writer.close()
    try:
        async with asyncio.timeout(LAST_BYTES_S):
            await writer.wait_closed()
    except OSError:
        pass
    finally:
        writer.transport.abort()


def _is_stream(answer: h11.Response) -> bool:
    return any(name == b"content-type" and value.startswith(EVENT_STREAM) for name, value in answer.headers)


def _away(debug_id: str) -> bytes:
    problem = {
        "type": "/problems/away",
        "title": "Service away",
        "status": 503,
        "detail": "the service behind is starting again, try again in a second",
        "debug_id": debug_id,
    }
    return json.dumps(problem).encode()


def _bytes_of(http: h11.Connection, event: Any) -> bytes:
    return cast("bytes | None", http.send(event)) or b""
