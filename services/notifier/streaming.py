"""One client's stream: attached first, then what has been, then live, joined by sequence.

      attach ──► everything from here on waits in the tap
        │
      read from the log's leader ──► snapshot, or what follows the client's last id             … up to sequence S
        │
      read the job's lines ──► each that the client has not, among the statuses of its time     … up to line L
        │
      take from the tap; what is not past S, or not past L, was sent already                    … S + 1, L + 1 and on
        │
      the job ends ──► the lines that nobody has brought yet, then its last status

Whatever a follower lags behind its leader, nothing is sent twice and nothing is left out. Which of what has been a
client is told, by the id that it brings, is decided by `domain.opening`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from libs.eventlog import LogUnavailable
from services.notifier.fanout import Closed, StreamItem, Tap, TokenOver, TooSlow
from services.notifier.frames import chunk, comment, retry
from services.notifier.moments import Render
from services.notifier.rendering import END, line_item
from services.notifier.said import Said

ALIVE: Final = comment("still here")
STILL_HERE: Final = chunk(ALIVE)
PIECE_BYTES: Final = 64 * 1024  # of what has been, at once: a client has a time for each piece to be taken in


class Watch(Protocol):
    """Who counts what becomes of streams."""

    def delivered(self, told: Sequence[StreamItem]) -> None: ...

    def ended(self, why: Exception) -> None: ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a silent stream says that it lives, when a client should come back, and for how long it may listen."""

    comment_s: float
    retry_ms: int
    left_s: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that has been, and when."""

    at: datetime
    frames: bytes


@dataclass(frozen=True, slots=True)
class Opening:
    """What a stream begins with, all up to the sequence `seen`: `past` among the lines of its time, `now` after them.
    `complete`: nothing can follow it."""

    seen: int
    first: bytes = b""
    past: Sequence[Moment] = ()
    now: bytes = b""
    complete: bool = False


class Sink(Protocol):
    """A connection that can be written to by others than its task, while that waits."""

    @property
    def is_free(self) -> bool:
        """Whether all that it was given is gone."""
        ...

    def write(self, chunk: bytes) -> None: ...


class Live:
    """What a stream that has begun is still to be told, and by whom: by its task, or at once, where its connection is
    free and the stream goes on. `ends`: with its job, whose lines are `said`."""

    __slots__ = ("ends", "pace", "said", "seen", "sink", "watch")

    def __init__(self, seen: int, said: Said | None, *, pace: Pace, watch: Watch, ends: bool) -> None:
        self.seen = seen
        self.said = said
        self.pace = pace
        self.watch = watch
        self.ends = ends
        self.sink: Sink | None = None

    def fresh(self, items: Sequence[StreamItem]) -> list[StreamItem]:
        return [told for told in items if _is_new(told, self.seen, self.said)]

    def write(self, items: Sequence[StreamItem], share: Render) -> bool:
        fresh = self.fresh(items)
        if self.sink is None or not self.sink.is_free or (self.ends and any(told.ends for told in fresh)):
            return False
        if fresh:
            self.sink.write(share(fresh))
            _note(fresh, self.said)
            self.watch.delivered(fresh)
        return True

    def say_alive(self) -> bool:
        if self.sink is None or not self.sink.is_free or self.pace.left_s() < self.pace.comment_s:
            return False
        self.sink.write(STILL_HERE)
        return True


class Stream:
    """The bytes of one stream; each piece holds all that was due. `sink`: where the sender of the pieces allows others
    to write between two of them, in chunks."""

    __slots__ = ("_live", "_pieces")

    def __init__(
        self, tap: Tap, opening: Opening, *, pace: Pace, watch: Watch, ends: bool, said: Said | None = None
    ) -> None:
        self._live = Live(opening.seen, said, pace=pace, watch=watch, ends=ends)
        self._pieces = _pieces(tap, opening, self._live)

    def through(self, sink: Sink) -> None:
        self._live.sink = sink

    def __aiter__(self) -> Stream:
        return self

    def __anext__(self) -> Coroutine[Any, Any, bytes]:
        return self._pieces.__anext__()

    async def aclose(self) -> None:
        await self._pieces.aclose()


async def _pieces(tap: Tap, opening: Opening, live: Live) -> AsyncGenerator[bytes]:
    pace, said, over = live.pace, live.said, opening.complete
    try:
        async with aclosing(_in_pieces(_begun(opening, said, pace), pace)) as pieces:
            async for piece in pieces:
                yield piece
        del opening  # a snapshot is long, and streams are many and live for hours
        tap.writer = live
        while not over and (left_s := pace.left_s()) > 0:
            items = await tap.take(within_s=left_s if left_s < pace.comment_s else None)
            fresh = live.fresh(items)
            last = next((n for n, told in enumerate(fresh) if live.ends and told.ends), len(fresh))
            over = last < len(fresh)
            if fresh[:last] or not items:
                yield _joined(fresh[:last], said)
                live.watch.delivered(fresh[:last])
            if over:
                async with aclosing(_in_pieces(_ended(fresh[last:], said), pace)) as pieces:
                    async for piece in pieces:
                        yield piece
                live.watch.delivered(fresh[last:])
    except (TooSlow, Closed, TokenOver, LogUnavailable) as why:
        over = False
        live.watch.ended(why)
    if not over:
        yield retry(pace.retry_ms)


async def _begun(opening: Opening, said: Said | None, pace: Pace) -> AsyncGenerator[bytes]:
    """What has been, in the order of its times."""
    yield retry(pace.retry_ms) + opening.first
    past = deque(opening.past)
    async with aclosing(_lines(said)) as lines:
        async for line in lines:
            while past and past[0].at <= line.at:
                yield past.popleft().frames
            yield line.frames
    for moment in past:
        yield moment.frames
    yield opening.now + (END if opening.complete else b"")


async def _ended(last: Sequence[StreamItem], said: Said | None) -> AsyncGenerator[bytes]:
    """The job's last status. Lines come by another way, so some may not be here yet."""
    async with aclosing(_lines(said)) as lines:
        async for line in lines:
            yield line.frames
    for told in last:
        if told.line is None:
            yield told.frames
    yield END


async def _lines(said: Said | None) -> AsyncGenerator[Moment]:
    if said is not None:
        async with aclosing(said.rest()) as lines:
            async for line in lines:
                yield Moment(line.at, line_item(line).frames)


async def _in_pieces(frames: AsyncGenerator[bytes], pace: Pace) -> AsyncGenerator[bytes]:
    """As few as may be."""
    piece = bytearray()
    async with aclosing(frames):
        async for each in frames:
            piece += each
            if len(piece) >= PIECE_BYTES:
                yield bytes(piece)
                piece.clear()
                if pace.left_s() <= 0:
                    raise TokenOver
    if piece:
        yield bytes(piece)


def _is_new(told: StreamItem, seen: int, said: Said | None) -> bool:
    if told.line is not None:
        return said is None or told.line > said.heard
    return told.seq is None or told.seq > seen


def _joined(fresh: Sequence[StreamItem], said: Said | None) -> bytes:
    _note(fresh, said)
    return b"".join(told.frames for told in fresh) or ALIVE


def _note(fresh: Sequence[StreamItem], said: Said | None) -> None:
    """Which lines the client has."""
    if said is not None:
        said.heard = max((told.line for told in fresh if told.line is not None), default=said.heard)
