"""A stream as a response: opened before its first byte, cut off where nobody takes it.

    opened ──► refused: a problem, as from any route             nothing has been sent yet
          └──► 200, then piece by piece ──► it ends by itself     the answer is complete
                                       ├──► the client goes      what was opened is closed
                                       └──► the client takes nothing, or is gone without a word: its connection is cut

A client that takes nothing holds up its own stream in `send`, where no queue can cut it off: so each piece has a time
to be taken in. The kernel keeps the same time for what it still holds, so that a closed connection is gone too, and
holds little. Whoever is cut off comes back with the last id and misses nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Final, cast

from fastapi import Response
from starlette.types import Message, Receive, Scope, Send

from libs.runtime.sockets import limit_unread
from services.notifier.streaming import Stream

HEADERS: Final = {"X-Accel-Buffering": "no"}
logger = logging.getLogger(__name__)


class Chunks:
    """A connection in the midst of an answer of unknown length. Its server notes nothing of a chunk, so that one may
    come from here too, while nobody sends there."""

    __slots__ = ("_connection",)

    def __init__(self, connection: asyncio.Transport) -> None:
        self._connection = connection

    @property
    def is_free(self) -> bool:
        return not self._connection.is_closing() and self._connection.get_write_buffer_size() == 0

    def write(self, chunk: bytes) -> None:
        self._connection.write(chunk)


class EventStream(Response):
    """What `opened` gives: pieces as they come, or another answer. Stands in `among` while it is open."""

    media_type = "text/event-stream"

    def __init__(
        self,
        opened: AbstractAsyncContextManager[Stream | Response],
        *,
        taken_within_s: float,
        among: set[EventStream],
        cut_off: Callable[[str], None],
    ) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._opened = opened
        self._taken_within_s = taken_within_s
        self._among = among
        self._cut_off = cut_off
        self._connection: asyncio.Transport | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._connection = scope.get("state", {}).get("connection")
        self._among.add(self)
        try:
            async with _while_there(receive), self._opened as opened:
                if isinstance(opened, Response):
                    await opened(scope, receive, send)
                else:
                    if self._connection is not None and scope.get("http_version") == "1.1":  # 1.0 has no chunks
                        opened.through(Chunks(self._connection))
                    async with aclosing(opened) as pieces:
                        await self._send(pieces, send)
        finally:
            self._among.discard(self)

    def cut(self) -> None:
        """At once, with all that was not taken yet."""
        if self._connection is not None:
            self._connection.abort()

    async def _send(self, pieces: AsyncIterator[bytes], send: Send) -> None:
        if self._connection is not None:
            limit_unread(self._connection, within_s=self._taken_within_s)
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            async for piece in pieces:
                await self._give(send, {"type": "http.response.body", "body": piece, "more_body": True})
                del piece  # or it would be kept until the next one comes
            await self._give(send, {"type": "http.response.body", "body": b""})
        except TimeoutError:
            logger.info("a stream was cut off: nothing was taken for %g s", self._taken_within_s)
            self._cut_off("nothing taken")
            self.cut()

    async def _give(self, send: Send, message: Message) -> None:
        if self._connection is not None and self._connection.get_write_buffer_size() == 0:
            await send(message)  # which then waits for nobody: a timer would cost more than the sending
            return
        async with asyncio.timeout(self._taken_within_s):
            await send(message)


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
