"""One request over HTTP and what comes back, as bytes in order, until either end goes.

    notifier ──send──► what is under way ──► what is there ──read──► client
       │ waits while too much of it is not taken        │ may break at any byte
       └── hears that the client has gone

A piece that is sent while there is no way to the client is lost, and all behind it: nobody says so, as with a machine
whose cable was pulled. The client notices the silence, the server that nothing is taken.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import Context
from functools import partial
from typing import Any, Final

from libs.twins.virtual import Process
from tests.simulation.network import Link
from tests.simulation.world import World

WINDOW_BYTES: Final = 1500  # that may be under way or not taken
App = Callable[
    [Any, Callable[[], Awaitable[Any]], Callable[[MutableMapping[str, Any]], Awaitable[None]]], Awaitable[None]
]


class Disconnected(Exception):
    """The connection broke, or nothing came for too long."""


class Connection:
    """Both ends of one. What the notifier uses of a transport is here as well."""

    def __init__(self, world: World, process: Process, link: Link) -> None:
        self.status: int | None = None
        self._world = world
        self._process = process
        self._here, self._there = world.link(process, "http"), link
        self._under_way = 0  # bytes
        self._inbox = bytearray()
        self._ended = self._broken = self._lost = False
        self._on_its_way: deque[Callable[[], None]] = deque()
        self._taker: asyncio.Protocol | None = None  # of the connection, once its request is over
        self._taken, self._gone, self._changed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def open(self, app: App) -> None:
        """The request arrives at its replica."""
        self._world.network.later(self._there.delay_s(), lambda: self._enter(app))

    # ── the client's end ──────────────────────────────────────────────────────

    async def answered(self, *, within_s: float) -> int:
        """The status. Raises Disconnected."""
        while self.status is None:
            await self._change(within_s)
        return self.status

    async def read(self, *, within_s: float, most: int | None = None) -> bytes:
        """What is there, at most so much of it; nothing at the end. Raises Disconnected."""
        while not self._inbox:
            if self._ended:
                return b""
            await self._change(within_s)
        taken = bytes(self._inbox[:most])
        del self._inbox[: len(taken)]
        self._taken.set()
        self._tell_taker(self._go_on)
        return taken

    def hang_up(self) -> None:
        """The client has gone: the other end hears of it, where there is a way."""
        self._broken = True
        if self._here.connected:
            self._world.network.later(self._there.delay_s(), self._go)

    async def _change(self, within_s: float) -> None:
        if self._broken:
            raise Disconnected
        self._changed.clear()
        try:
            async with asyncio.timeout(within_s):
                await self._changed.wait()
        except TimeoutError:
            raise Disconnected from None

    # ── the server's end ──────────────────────────────────────────────────────

    def get_extra_info(self, _: str) -> None:
        """It is no socket."""

    def get_write_buffer_size(self) -> int:
        return max(0, self._under_way + len(self._inbox) - WINDOW_BYTES)

    def is_closing(self) -> bool:
        return self._gone.is_set()

    def hand_over(self, taker: asyncio.Protocol) -> Any:
        """The request is over, and the answer has begun."""
        if self._gone.is_set():
            return None
        self._taker = taker
        return self

    def write(self, chunk: bytes) -> None:
        """By its taker, or by who writes while that waits."""
        self._process.require_life()
        head, _, rest = chunk.partition(b"\r\n")
        body = rest.removesuffix(b"\r\n")
        assert (int(head, 16), self.get_write_buffer_size()) == (len(body), 0), (
            "no chunk, or the connection was not free"
        )
        if not body:
            self._say(self._end)
            return
        self._under_way += len(body)
        self._say(lambda: self._arrive(body))
        if self.get_write_buffer_size() > 0 and self._taker is not None:
            self._taker.pause_writing()

    def close(self) -> None:
        """Once all of it is taken."""
        self._go()

    def abort(self) -> None:
        """With all that is not taken yet."""
        self._go()
        self._say(self._break)

    def _go(self) -> None:
        self._gone.set()
        self._tell_taker(self._lose)

    def _lose(self, taker: asyncio.Protocol) -> None:
        taker.connection_lost(None)

    def _go_on(self, taker: asyncio.Protocol) -> None:
        if self.get_write_buffer_size() == 0:
            taker.resume_writing()

    def _tell_taker(self, what: Callable[[asyncio.Protocol], None]) -> None:
        """In its own process and time."""
        if (taker := self._taker) is not None and self._process.alive:
            self._process.call(lambda: what(taker))

    async def receive(self) -> dict[str, str]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self._process.require_life()
        if self._gone.is_set():
            return
        if message["type"] == "http.response.start":
            self._say(partial(self._begin, message["status"]))
            return
        while self.get_write_buffer_size() > 0 and not self._gone.is_set():
            self._taken.clear()
            await self._taken.wait()
        body: bytes = message.get("body", b"")
        self._under_way += len(body)
        self._say(lambda: self._arrive(body))
        if not message.get("more_body", False):
            self._say(self._end)

    def _enter(self, app: App) -> None:
        def serve() -> None:
            scope = {"type": "http", "path": "/v1/stream", "http_version": "1.1", "state": {"connection": self}}
            task = self._process.start(app(scope, self.receive, self.send))  # type: ignore[arg-type]
            task.add_done_callback(self._over, context=Context())

        if not self._process.alive or not self._here.connected:
            return self._break()
        return self._process.call(serve)

    def _over(self, task: asyncio.Task[Any]) -> None:
        """It has answered, or its process has died, or it fell over."""
        if not task.cancelled() and (fault := task.exception()) is not None:
            self._world.loop.broken.append(f"{self._process.name} answers a stream: {fault!r}")
        if not self._ended and self._taker is None:
            self._say(self._break)

    def _say(self, act: Callable[[], None]) -> None:
        """In order, however long each of them takes."""
        self._lost = self._lost or (self._process.alive and not self._here.connected)
        if not self._lost:
            self._on_its_way.append(act)
            self._world.network.later(self._here.delay_s(), self._hear_next)

    def _hear_next(self) -> None:
        self._on_its_way.popleft()()

    def _begin(self, status: int) -> None:
        self.status = status
        self._changed.set()

    def _arrive(self, body: bytes) -> None:
        self._under_way -= len(body)
        self._inbox += body
        self._changed.set()

    def _end(self) -> None:
        self._ended = True
        self._changed.set()

    def _break(self) -> None:
        if not self._ended:
            self._broken = True
            self._changed.set()
