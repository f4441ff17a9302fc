"""A stream as a response: opened before its first byte, then a task of its own on a connection of its own, and cut off
where nobody takes it.

    opened ──► refused: a problem, as from any route             nothing has been sent yet
          ├──► the client goes meanwhile                         what is half open is closed
          └──► 200 ──► the request is over, its connection handed over; piece by piece ──► it ends by itself: complete
                                 ├──► the client goes      what was opened is closed
                                 └──► the client takes nothing, or is gone without a word: its connection is cut

Streams are many and live for hours, so nothing of the request stays: neither the frames of what it came through, nor
what was parsed of it. A client that takes nothing holds up its own stream, where no queue can cut it off: so each piece
has a time to be taken in. The kernel keeps the same time for what it still holds, so that a closed connection is gone
too, and holds little. Of what a client sends meanwhile, which is not wanted, a little is passed over. A client that is
cut off comes back with the last id and misses nothing.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

from fastapi import Response
from starlette.types import Receive, Scope, Send

from libs.runtime.sockets import limit_unread
from services.notifier.frames import LAST_CHUNK, chunk
from services.notifier.streaming import Stream

HEADERS: Final = {"X-Accel-Buffering": "no", "Connection": "close"}  # no other request can follow on it
UNWANTED_BYTES: Final = 16 * 1024  # a request or two that came too early
LAST_BYTES_S: Final = 0.5  # for what a stream is sent when this replica stops
OPENINGS: Final = 200  # streams, between two looks of the garbage collector: 20 ms of a processor each
CLOSINGS: Final = 20_000  # 20 MiB of rings at most
logger = logging.getLogger(__name__)


class RequestConnection(Protocol):
    """By which a request came."""

    def hand_over(self, taker: asyncio.Protocol, /) -> asyncio.Transport | None: ...


@dataclass(slots=True)
class OpenStreams:
    """Those of one replica. `context` is that of their tasks, so that none keeps what its request had in its own."""

    taken_within_s: float
    cut_off: Callable[[str], None]
    context: Context = field(default_factory=copy_context)
    streams: set[OpenStream] = field(default_factory=set["OpenStream"])

    async def end(self) -> None:
        """They have been told to. A client that does not take its last bytes in time is cut off."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + LAST_BYTES_S
        while self.streams and (left_s := until_s - loop.time()) > 0:
            await asyncio.wait([stream.task for stream in self.streams], timeout=left_s)
        for late in tuple(self.streams):
            late.cut()


class Collecting:
    """Keeps the garbage collector from streams that last: noticed of each that begins and ends."""

    def __init__(self, *, openings: int = OPENINGS, closings: int = CLOSINGS) -> None:
        self._openings = openings
        self._closings = closings
        self._opened = 0
        self._closed = 0

    def opened(self) -> None:
        self._opened += 1
        if self._opened >= self._openings:
            self._opened = 0
            self.put_aside()

    def closed(self) -> None:
        self._closed += 1
        if self._closed >= self._closings:
            self._closed = 0
            gc.unfreeze()

    def put_aside(self) -> None:
        """Whatever is still there after a look."""
        gc.collect()
        gc.freeze()


class EventStream(Response):
    """What `open_stream` gives: pieces as they come, or another answer."""

    media_type = "text/event-stream"

    def __init__(
        self, open_stream: Callable[[], AbstractAsyncContextManager[Stream | Response]], among: OpenStreams
    ) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._open_stream = open_stream
        self._among = among

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as leaving:
            opening, opened = self._open_stream(), None
            async with _while_there(receive):
                opened = await leaving.enter_async_context(opening)
            if opened is None:
                return
            if isinstance(opened, Response):
                await opened(scope, receive, send)
                return
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            connection = cast("RequestConnection", scope["state"]["connection"])
            stream = OpenStream(opened, opening, self._among)
            if stream.begin(connection, chunked=scope["http_version"] == "1.1"):  # 1.0 has no chunks
                leaving.pop_all()  # the stream's to leave


class OpenStream(asyncio.Protocol):
    """One that has begun. While its task waits, others may write to its connection, in chunks."""

    __slots__ = ("_among", "_chunked", "_free", "_is_over", "_opened", "_pieces", "_transport", "_unwanted", "task")

    task: asyncio.Task[None]
    _transport: asyncio.Transport

    def __init__(self, pieces: Stream, opened: AbstractAsyncContextManager[Any], among: OpenStreams) -> None:
        self._pieces = pieces
        self._opened = opened
        self._among = among
        self._free: asyncio.Future[None] | None = None  # while more is under way than should be
        self._chunked = self._is_over = False
        self._unwanted = 0  # bytes that were sent to us

    def begin(self, connection: RequestConnection, *, chunked: bool) -> bool:
        """False where the client has gone."""
        transport = connection.hand_over(self)
        if transport is None:
            return False
        self._transport, self._chunked = transport, chunked
        limit_unread(transport, within_s=self._among.taken_within_s)
        if chunked:
            self._pieces.through(self)
        self._among.streams.add(self)
        self.task = asyncio.get_running_loop().create_task(self._send(), context=self._among.context.copy())
        return True

    def cut(self) -> None:
        """At once, with all that was not taken yet."""
        self._transport.abort()

    # ── for other writers, while the task waits ────────────────────────────────

    @property
    def is_free(self) -> bool:
        return not self._transport.is_closing() and self._transport.get_write_buffer_size() == 0

    def write(self, chunk: bytes) -> None:
        self._transport.write(chunk)

    # ── what the connection tells ─────────────────────────────────────────────

    def data_received(self, data: bytes) -> None:
        before, self._unwanted = self._unwanted, self._unwanted + len(data)
        if before <= UNWANTED_BYTES < self._unwanted:
            logger.info("a stream was cut off: its client sends %d bytes and more", self._unwanted)
            self._among.cut_off("sends")
            self.cut()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._is_over:
            self.task.cancel()
        self.resume_writing()

    def pause_writing(self) -> None:
        self._free = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        free, self._free = self._free, None
        if free is not None and not free.done():
            free.set_result(None)

    # ── the task ──────────────────────────────────────────────────────────────

    async def _send(self) -> None:
        try:
            async for piece in self._pieces:
                await self._give(chunk(piece) if self._chunked else piece)
                del piece  # or it would be kept until the next one comes
            await self._give(LAST_CHUNK if self._chunked else b"")
            self._transport.close()
        except TimeoutError:
            logger.info("a stream was cut off: nothing was taken for %g s", self._among.taken_within_s)
            self._among.cut_off("nothing taken")
        except Exception:
            logger.exception("a stream fell over, and is cut off")
        finally:
            await self._leave()

    async def _leave(self) -> None:
        self._is_over = True
        if not self._transport.is_closing():
            self._transport.abort()  # so that it does not look complete
        self._among.streams.discard(self)
        await self._pieces.aclose()
        await self._opened.__aexit__(None, None, None)

    async def _give(self, piece: bytes) -> None:
        if self._free is not None:
            async with asyncio.timeout(self._among.taken_within_s):
                await self._free
        self._transport.write(piece)


@asynccontextmanager
async def _while_there(receive: Receive) -> AsyncGenerator[None]:
    """What is inside is left when the client goes."""
    inside, gone = cast("asyncio.Task[None]", asyncio.current_task()), False

    async def watch() -> None:
        nonlocal gone
        while (await receive())["type"] != "http.disconnect":
            pass
        gone = True
        inside.cancel()

    watching = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if not gone or inside.uncancel() > 0:
            raise
    finally:
        watching.cancel()
