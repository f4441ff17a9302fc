"""When connections are written to: once a moment each, and by one timer for all that are silent.

    spread ──► tap ──┐                   ┌──► its connection is free: written at once, in bytes that all share
    spread ──► tap ──┴──► LoopTurn ──────┤
                      (one callback)     └──► it is not, or this is the last of it: its task wakes, and sends
                          KeepAlive ────────► each in turn says that it lives

So what a thousand listen to wakes none of their thousand tasks, and a fault of one is no other's. Refuses to know what
is said.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

logger = logging.getLogger(__name__)

SLOTS: Final = 16  # a connection has one of them, and all have their turn in the time between two beats

Render = Callable[[Sequence[Any]], bytes]  # the same bytes for all that are sent the same things


class TimedConnection(Protocol):
    """A connection, as it is written to in its moments."""

    def flush(self, share: Render) -> None: ...
    def beat(self) -> None: ...
    def cut(self) -> None: ...


class LoopTurn:
    """Those for whom something came in this turn of the loop. `render`: what they came to, as bytes."""

    def __init__(self, render: Render) -> None:
        self._render = render
        self._due: list[TimedConnection] = []

    def add(self, due: TimedConnection) -> None:
        if not self._due:
            asyncio.get_running_loop().call_soon(self._flush)
        self._due.append(due)

    def _flush(self) -> None:
        due, self._due = self._due, []
        rendered: dict[tuple[int, ...], bytes] = {}

        def share(things: Sequence[Any]) -> bytes:
            key = tuple(map(id, things))  # nobody lets go of them before this turn is over
            piece = rendered.get(key)
            if piece is None:
                piece = rendered[key] = self._render(things)
                held.append(things)
            return piece

        held: list[Sequence[Any]] = []
        for each in due:
            try:
                each.flush(share)
            except Exception:
                logger.exception("a stream could not be written to, and is cut off")
                each.cut()


class KeepAlive:
    """Everybody that joined, again and again, `every_s` apart and never all at once."""

    def __init__(self, every_s: float) -> None:
        self._tick_s = every_s / SLOTS
        self._slots: list[set[TimedConnection]] = [set() for _ in range(SLOTS)]
        self._now = 0
        self._timer: asyncio.TimerHandle | None = None

    def join(self, silent: TimedConnection) -> None:
        self._slots[self._now].add(silent)
        if self._timer is None:
            self._wait()

    def leave(self, silent: TimedConnection) -> None:
        for slot in self._slots:
            slot.discard(silent)
        if self._timer is not None and not any(self._slots):
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._tick_s, self._tick)

    def _tick(self) -> None:
        self._wait()
        self._now = (self._now + 1) % SLOTS
        for each in tuple(self._slots[self._now]):
            try:
                each.beat()
            except Exception:
                logger.exception("a stream could not be told that it lives, and is cut off")
                each.cut()
