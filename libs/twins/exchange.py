"""One request to an application on the loop of the twins, and its answer piece by piece."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final
from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Scope

LOOKS_EVERY_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class TwinRequest:
    """A request, as it would stand on the wire. `target`: path and query, as they were written."""

    method: str
    target: bytes
    headers: Sequence[tuple[bytes, bytes]]
    content: bytes

    @property
    def path(self) -> str:
        return unquote(self.target.partition(b"?")[0].decode("ascii"))

    @property
    def takes_slot(self) -> bool:
        """One outside any job, at once or in its turn."""
        return self.method == "POST" and self.path.endswith("/leases")

    def scope(self, connection: object) -> Scope:
        raw, _, query = self.target.partition(b"?")
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.0",  # whose streams are no chunks
            "method": self.method,
            "scheme": "http",
            "path": self.path,
            "raw_path": raw,
            "query_string": query,
            "root_path": "",
            "headers": [(name.lower(), value) for name, value in self.headers],
            "server": ("twins", 80),
            "client": ("127.0.0.1", 1),
            "state": {"connection": connection},
        }


class Silence(Enum):
    """No piece has come, and none will before somebody does something."""

    NOTHING_LEFT = auto()


class Exchange:
    """What the application says, as it says it. To who answers it is the connection too, also once it is handed over:
    what is written is there at once."""

    def __init__(self, app: ASGIApp, asked: TwinRequest) -> None:
        self.status: int | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self._pieces: list[bytes] = []
        self._content: bytes | None = asked.content
        self._ended = False
        self._taker: asyncio.Protocol | None = None
        self._changed, self._gone = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._answer(app, asked.scope(self)), name=f"{asked.method} {asked.path}")

    async def begun(self) -> None:
        """Once its head is there, however much time that takes."""
        while self.status is None and not self._task.done():
            await self._change()
        if self._task.done():
            await self._task
        assert self.status is not None, "an application that answers nothing"

    async def piece(self, nothing_left: Callable[[], bool]) -> bytes | Silence | None:
        """What has come; null at the end, and once nobody reads any more: for them no time is to pass."""
        while not self._pieces:
            if self._ended or self._gone.is_set():
                return None
            if nothing_left():
                return Silence.NOTHING_LEFT
            await self._change()
        pieces, self._pieces = b"".join(self._pieces), []
        return pieces

    async def hang_up(self) -> None:
        """Who asked has gone, or has read all."""
        self._gone.set()
        self._changed.set()
        if self._taker is not None and not self._ended:
            self._taker.connection_lost(None)
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.exception()  # what became of it nobody asks any more

    async def _answer(self, app: ASGIApp, scope: Scope) -> None:
        try:
            await app(scope, self._receive, self._send)
        finally:
            self._ended = self._taker is None
            self._changed.set()

    # ── the connection ────────────────────────────────────────────────────────

    def hand_over(self, taker: asyncio.Protocol) -> Exchange | None:
        """The head was sent: the rest is written here."""
        if self._gone.is_set():
            return None
        self._taker = taker
        return self

    def write(self, piece: bytes) -> None:
        self._pieces += [piece] if piece else []
        self._changed.set()

    def close(self) -> None:
        self._ended = True
        self._changed.set()

    abort = close

    def is_closing(self) -> bool:
        return self._ended or self._gone.is_set()

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, _: str) -> None:
        """It is no socket."""

    async def _change(self) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(LOOKS_EVERY_S):
                await self._changed.wait()
        except TimeoutError:
            pass

    async def _receive(self) -> Message:
        content, self._content = self._content, None
        if content is not None:
            return {"type": "http.request", "body": content, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message.get("headers", []))
        elif body := message.get("body", b""):
            self._pieces.append(body)
        self._changed.set()
