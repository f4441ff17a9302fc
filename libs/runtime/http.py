"""The HTTP side of a service: one server in the service's own loop, probes that always answer, a gate before all else.

    started   1. HttpServer    listens: /livez yes, /readyz no, all else waits
              2. clients, loops
              3. Gate          lets requests in
    stopped   3. Gate          /readyz no, new requests 503, streams see `draining` and end, running requests end;
                               behind a gateway no new connection
              2. loops, clients
              1. HttpServer    closes what is left

So nothing is let in before it can be served, and nothing is taken away from a request that still runs. uvicorn by
itself waits until every response has ended, and tells no application to end one: hence a gate that is closed first.

Owns the server. Refuses signals: those are the service's (`lifecycle`).
"""

import asyncio
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, cast

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from libs.runtime.errors import PortTaken
from libs.runtime.lifecycle import Loop

KEEP_ALIVE_S: Final = 65  # longer than a gateway keeps an idle connection, so that it is the one to close it
BACKLOG: Final = 2048
UNWANTED_S: Final = 10.0
LAST_RESPONSES_S: Final = 1  # behind the closed gate only probes can be left


class HttpServer:
    """uvicorn in the running loop. Port 0 takes a free one: `port` says which.

    It takes no new connection once `leaving` is set: a client that asks then is refused before a word was said, and may
    ask the next process.
    """

    name = "HTTP server"

    def __init__(self, app: ASGIApp, *, host: str, port: int, leaving: asyncio.Event | None = None) -> None:
        self._app = app
        self._host = host
        self._port = port
        self._leaving = leaving or asyncio.Event()
        self._socket: socket.socket | None = None
        self._loop = Loop("HTTP server", self._serve, patience_s=LAST_RESPONSES_S + 1)

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        return f"http://{f'[{self._host}]' if ':' in self._host else self._host}:{self.port}"

    async def start(self) -> None:
        """From here on connections are taken: the first ones wait in the socket until uvicorn has come up."""
        if self._socket is None:
            self._socket = _listening(self._host, self._port)
            self._port = self._socket.getsockname()[1]
        await self._loop.start()

    async def stop(self) -> None:
        await self._loop.stop()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def ended(self) -> None:
        await self._loop.ended()

    async def _serve(self, stopping: asyncio.Event) -> None:
        config = uvicorn.Config(
            self._app,
            http=_Connection,
            lifespan="off",  # the parts of the service have a life, the application has none
            ws="none",
            log_config=None,
            log_level="warning",
            access_log=False,  # spans and metrics say it
            server_header=False,
            proxy_headers=False,  # nothing here depends on who a proxy says the client is
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=LAST_RESPONSES_S,
        )
        assert self._socket is not None
        server = _Uvicorn(config, stopping)
        refusing = asyncio.create_task(self._refuse_from_the_end_on(server))
        try:
            await server.serve(sockets=[self._socket])
        finally:
            refusing.cancel()

    async def _refuse_from_the_end_on(self, server: uvicorn.Server) -> None:
        await self._leaving.wait()
        for listening in getattr(server, "servers", ()):  # none where it has not come up yet
            listening.close()


class _Connection(H11Protocol):
    """Shows a request the connection it came by, as `scope["state"]["connection"]`: ASGI has no word to cut one off,
    nor to take it over.

    What is left of an unwanted body is thrown away for a while, so that a client that still sends gets the
    whole refusal. By itself uvicorn does so for ever where the connection is kept; where it is not, it closes at once,
    which takes the answer from a client in the midst of sending: a gateway says 502 then.
    """

    _cutting: asyncio.TimerHandle | None = None
    _leaving: "_Leaving | None" = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._leaving = _Leaving(transport, self._sends_a_body)
        super().connection_made(cast("asyncio.Transport", self._leaving))
        self.app_state = {**self.app_state, "connection": self}

    def hand_over(self, taker: asyncio.Protocol) -> asyncio.Transport | None:
        """The connection itself, in the midst of an answer whose head was sent: `taker` writes the rest of it, closes
        it, and hears what becomes of it. Nothing of the request is kept for it. Null where it has gone already."""
        self.cycle.disconnected = True  # its application may return: nothing here ends the answer
        if self._leaving is None or self._leaving.is_closing():
            return None
        if self._cutting is not None:
            self._cutting.cancel()  # of a request before this one
        self.connections.discard(self)
        self.flow.resume_reading()  # or it would not be heard that the client has gone
        transport = self._leaving.transport
        transport.set_protocol(taker)
        vars(self).clear()  # these refer to each other, and would wait for the garbage collector
        return transport

    def data_received(self, data: bytes) -> None:
        if self._leaving is None or not self._leaving.is_half_closed:
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._cutting is not None:
            self._cutting.cancel()  # or it would keep what was sent, long after its sender has gone
        if self._leaving is not None:
            self._leaving.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._still_sends(self.cycle):
            self._cutting = self.loop.call_later(UNWANTED_S, self._cut_off, self.cycle)

    def _cut_off(self, refused: RequestResponseCycle) -> None:
        if self._still_sends(refused):
            self.transport.abort()

    def _still_sends(self, refused: RequestResponseCycle) -> bool:
        """Both sides are in one state as soon as all was heard, and in the next request there is another cycle."""
        return self.cycle is refused and self.conn.their_state is not self.conn.our_state

    def _sends_a_body(self) -> bool:
        return self.conn.their_state is h11.SEND_BODY


class _Leaving:
    """A connection that closes by half while its client still sends, and wholly once that has gone or after a while."""

    def __init__(self, transport: asyncio.Transport, still_sends: Callable[[], bool]) -> None:
        self.is_half_closed = False
        self.transport = transport
        self._still_sends = still_sends
        self._end: asyncio.TimerHandle | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)

    def is_closing(self) -> bool:
        return self.is_half_closed or self.transport.is_closing()

    def close(self) -> None:
        if self.is_closing() or not self._still_sends():
            self.transport.close()
            return
        self.is_half_closed = True
        self.transport.write_eof()
        self.transport.resume_reading()
        self._end = asyncio.get_running_loop().call_later(UNWANTED_S, self.transport.abort)

    def cancel(self) -> None:
        if self._end is not None:
            self._end.cancel()


class _Uvicorn(uvicorn.Server):
    """Without signals of its own, and told to stop by an event."""

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._stopping.is_set()


def _listening(host: str, port: int) -> socket.socket:
    """What is sent waits for no acknowledgement: else a body comes 40 ms after its head where a connection is kept.
    Connections have it from here: asyncio sees to it only where a socket names its protocol; this one does not."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as fault:
        raise PortTaken(host=host, port=port) from fault
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
