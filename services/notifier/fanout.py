"""From one follower of the log to many connections.

    log ──► follow ──┐
    log lines ───────┼──► Fanout ──► Tap ──► connection        one bounded queue each
    positions ───────┘          └──► Tap ──► connection

One follower a replica, however many connections, and each thing is rendered once, and only if somebody listens. A
connection that cannot keep up is cut off, never skipped: its client comes back with its last id and misses nothing.
Refuses to know what a connection does with what it gets.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from services.notifier.frames import chunk
from services.notifier.moments import KeepAlive, LoopTurn, Render

TAP_DEPTH: Final = 1000  # a job has about ten events an iteration; log lines are what fills it
TAP_BYTES: Final = 1024 * 1024  # so many lines may be long
BEAT_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class StreamItem:
    """What is sent of one thing that happened. `seq` is its place in the log, `line` a line's among the lines; null
    where it has none. `at_ms`: since when the log has it."""

    frames: bytes
    seq: int | None = None
    line: int | None = None
    at_ms: int | None = None
    ends: bool = False  # it is the last that will ever be said of its job


@dataclass(frozen=True, slots=True)
class OfJob:
    """The interest in everything about one job."""

    job_id: str


@dataclass(frozen=True, slots=True)
class OfUser:
    """Everything about all jobs of one user, log lines aside."""

    user_id: str


@dataclass(frozen=True, slots=True)
class OfToken:
    """Nothing that happens: the token that a connection was opened with, and ends with."""

    token_id: str


Interest = OfJob | OfUser | OfToken


class TooSlow(Exception):
    """The client did not take what it was sent. It is cut off (`streaming` says how), and comes back with its last
    id."""


class TokenOver(Exception):
    """The client may not listen any more: its token is over, or was taken back. It comes back, and is refused."""


class Closed(Exception):
    """This replica stops. The client comes back to another one with its last id."""


class DirectWriter(Protocol):
    """A connection whose task waits. Each may decline, and then the task does it."""

    def write(self, items: Sequence[StreamItem], share: Render) -> bool: ...
    def say_alive(self) -> bool: ...


class Tap:
    """What one connection is still to be sent. While its task waits for that, `writer` may send it."""

    __slots__ = ("_bytes", "_depth", "_end", "_items", "_most_bytes", "_turn", "_waiter", "writer")

    def __init__(self, *, depth: int = TAP_DEPTH, most_bytes: int = TAP_BYTES, turn: LoopTurn | None = None) -> None:
        self.writer: DirectWriter | None = None
        self._turn = turn
        self._items: list[StreamItem] = []
        self._bytes = 0
        self._depth = depth
        self._most_bytes = most_bytes
        self._waiter: asyncio.Future[None] | None = None
        self._end: Exception | None = None

    def offer(self, told: StreamItem) -> None:
        if self._end is not None:
            return
        self._bytes += len(told.frames)
        if len(self._items) >= self._depth or self._bytes > self._most_bytes:
            self.cut()
        else:
            self._items.append(told)
            if self._turn is None or self.writer is None:
                self._stir()
            elif len(self._items) == 1:
                self._turn.add(self)

    def flush(self, share: Render) -> None:
        """The turn of the loop is over in which something came."""
        if not (self._items and self._is_awaited) or self._end is not None:
            return  # the task is awake, and takes what is there
        if self.writer is not None and self.writer.write(self._items, share):
            self._items, self._bytes = [], 0
        else:
            self._stir()

    def beat(self) -> None:
        """It is time to say something. A tap that is not awaited is saying it."""
        if self._is_awaited and (self._items or self.writer is None or not self.writer.say_alive()):
            self._stir()

    def cut(self) -> None:
        """None of what is here will be sent."""
        self._items = []
        self.end(TooSlow())

    def end(self, why: Exception) -> None:
        self._end = self._end or why
        self._stir()

    async def take(self, *, within_s: float | None = None) -> list[StreamItem]:
        """All there is; nothing, if nothing came in time, or until the next beat. Raises what ended the tap, once it is
        empty."""
        if not self._items and self._end is None:
            await self._stirred(within_s)
        if self._end is not None and not self._items:
            raise self._end
        items, self._items, self._bytes = self._items, [], 0
        return items

    @property
    def _is_awaited(self) -> bool:
        return self._waiter is not None and not self._waiter.done()

    async def _stirred(self, within_s: float | None) -> None:
        """Or the time is over."""
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        alarm = None if within_s is None else loop.call_later(within_s, self._stir)
        try:
            await self._waiter
        finally:
            if alarm is not None:
                alarm.cancel()
            self._waiter = None

    def _stir(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Fanout:
    """Who listens to what. `depth`, `most_bytes`: what one connection may have before it. `beat_s`: how often each is
    stirred though nothing came."""

    def __init__(self, *, beat_s: float = BEAT_S, depth: int = TAP_DEPTH, most_bytes: int = TAP_BYTES) -> None:
        self._turn = LoopTurn(lambda told: chunk(b"".join(each.frames for each in told)))
        self._beat = KeepAlive(beat_s)
        self._taps: defaultdict[Interest, set[Tap]] = defaultdict(set)
        self._depth = depth
        self._most_bytes = most_bytes
        self._new: set[Interest] = set()
        self._closed = False
        self.connections = 0

    @contextmanager
    def attached(self, interests: Collection[Interest]) -> Iterator[Tap]:
        """A tap that gets everything of these interests from now on."""
        tap = Tap(depth=self._depth, most_bytes=self._most_bytes, turn=self._turn)
        if self._closed:
            tap.end(Closed())
        for interest in interests:
            if interest not in self._taps:
                self._new.add(interest)
            self._taps[interest].add(tap)
        self.connections += 1
        self._beat.join(tap)
        try:
            yield tap
        finally:
            self._beat.leave(tap)
            self.connections -= 1
            for interest in interests:
                self._taps[interest].discard(tap)
                if not self._taps[interest]:
                    del self._taps[interest]

    def is_wanted(self, interests: Iterable[Interest]) -> bool:
        """Whether anybody is interested. A client that comes a moment later reads it from the log: it is there
        already."""
        return any(interest in self._taps for interest in interests)

    @property
    def interests(self) -> Collection[Interest]:
        """All that somebody listens to."""
        return self._taps.keys()

    def take_new(self) -> Collection[Interest]:
        """What somebody has begun to listen to since the last call."""
        new, self._new = self._new, set()
        return new & self._taps.keys()

    def spread(self, interests: Iterable[Interest], render: Callable[[], StreamItem | None]) -> None:
        """To everybody who is interested."""
        listening = [tap for interest in interests for tap in self._taps.get(interest, ())]
        told = render() if listening else None
        if told is not None:
            for tap in listening:
                tap.offer(told)

    def end(self, token: OfToken) -> None:
        """End what was opened with this token."""
        for tap in self._taps.get(token, ()):
            tap.end(TokenOver())

    def close(self) -> None:
        """End every connection, now and from now on."""
        self._closed = True
        for taps in self._taps.values():
            for tap in taps:
                tap.end(Closed())
