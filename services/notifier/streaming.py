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

Whatever a follower lags behind its leader, nothing is sent twice and nothing is left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from libs.eventlog import LogUnavailable
from services.notifier.fanout import Closed, Tap, TokenOver, Told, TooSlow
from services.notifier.frames import comment, retry
from services.notifier.rendering import END, line_told
from services.notifier.said import Said

PIECE_BYTES: Final = 64 * 1024  # of what has been, at once: a client has a time for each piece to be taken in


class Watch(Protocol):
    """Who counts what becomes of streams."""

    def delivered(self, told: Sequence[Told]) -> None: ...

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


async def stream(
    tap: Tap, opening: Opening, *, pace: Pace, watch: Watch, ends: bool, said: Said | None = None
) -> AsyncGenerator[bytes]:
    """The bytes of one stream; each piece holds all that was due. `ends`: with its job, whose lines are `said`."""
    seen, over = opening.seen, opening.complete
    try:
        async with aclosing(_in_pieces(_begun(opening, said, pace), pace)) as pieces:
            async for piece in pieces:
                yield piece
        del opening  # a snapshot is long, and streams are many and live for hours
        while not over and (left_s := pace.left_s()) > 0:
            items = await tap.take(within_s=min(pace.comment_s, left_s))
            fresh = [told for told in items if _is_new(told, seen, said)]
            last = next((n for n, told in enumerate(fresh) if ends and told.ends), len(fresh))
            over = last < len(fresh)
            if fresh[:last] or not items:
                yield _joined(fresh[:last], said)
                watch.delivered(fresh[:last])
            if over:
                async with aclosing(_in_pieces(_ended(fresh[last:], said), pace)) as pieces:
                    async for piece in pieces:
                        yield piece
                watch.delivered(fresh[last:])
    except (TooSlow, Closed, TokenOver, LogUnavailable) as why:
        over = False
        watch.ended(why)
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


async def _ended(last: Sequence[Told], said: Said | None) -> AsyncGenerator[bytes]:
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
                yield Moment(line.at, line_told(line).frames)


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


def _is_new(told: Told, seen: int, said: Said | None) -> bool:
    if told.line is not None:
        return said is None or told.line > said.heard
    return told.seq is None or told.seq > seen


def _joined(fresh: Sequence[Told], said: Said | None) -> bytes:
    if said is not None:
        said.heard = max((told.line for told in fresh if told.line is not None), default=said.heard)
    return b"".join(told.frames for told in fresh) or comment("still here")
