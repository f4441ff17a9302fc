"""One client's stream of one job: attached first, then history, then live, joined by sequence.

      attach ──► everything from here on waits in the tap
        │
      read the job from the log's leader ──► snapshot, or what follows the client's last id      … up to sequence S
        │
      take from the tap; what is not past S was sent already                                    … S + 1 and on

Whatever the follower lags behind the leader, no sequence is sent twice and none is left out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from headgate_contracts import Job
from headgate_contracts.commands import LogLine, PositionChanged
from headgate_contracts.shown import ShownJob
from libs.eventlog import Record
from services.notifier.domain import (
    Begin,
    EventId,
    Resume,
    is_last,
    question,
    shows_status,
    status_data,
)
from services.notifier.fanout import Closed, Item, Tap, TooSlow
from services.notifier.frames import comment, frame, retry

END: Final = frame("end", {})  # the stream is complete: nothing can follow


@dataclass(frozen=True, slots=True)
class History:
    """A job as the log's leader has it: folded, and its records."""

    job: Job
    records: tuple[Record, ...]

    @property
    def last_status_seq(self) -> int:
        return max((record.seq for record in self.records if shows_status(record.event)), default=0)


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a silent stream says that it lives, and when a client should come back."""

    comment_s: float
    retry_ms: int


async def stream(
    tap: Tap,
    *,
    epoch: str,
    begin: Begin | Resume,
    history: History,
    show: Callable[[Job], Awaitable[ShownJob]],
    pace: Pace,
) -> AsyncIterator[bytes]:
    """The bytes of one stream. Each piece holds all that was due."""
    yield retry(pace.retry_ms)
    if isinstance(begin, Begin):
        yield await _snapshot(history, epoch=epoch, resync=begin.resync, show=show)
    else:
        later = [record for record in history.records if record.seq > begin.after]
        yield b"".join(_record_frames(record, epoch=epoch) for record in later)
    if history.job.status.is_end:
        yield END
        return
    async for piece in _live(tap, epoch=epoch, seen=history.job.seq, pace=pace):
        yield piece


async def _snapshot(history: History, *, epoch: str, resync: bool, show: Callable[[Job], Awaitable[ShownJob]]) -> bytes:
    shown = await show(history.job)
    first = frame("resync", {"reason": "the id is not of this log"}) if resync else b""
    snapshot = frame("snapshot", shown, id=str(EventId(epoch, history.job.seq)))
    return first + snapshot + b"".join(_question_frames(history))


def _question_frames(history: History) -> list[bytes]:
    """The open question, for a client that was not there when it was asked."""
    if history.job.expires_at is None:
        return []
    asked = [question(record.event) for record in history.records]
    return [frame("confirmation", one) for one in asked if one][-1:]


async def _live(tap: Tap, *, epoch: str, seen: int, pace: Pace) -> AsyncIterator[bytes]:
    while True:
        try:
            items = await tap.take(within_s=pace.comment_s)
        except (TooSlow, Closed):
            yield retry(pace.retry_ms)
            return
        if not items:
            yield comment("still here")
            continue
        fresh = [item for item in items if not (isinstance(item, Record) and item.seq <= seen)]
        piece = b"".join(_frames(item, epoch=epoch) for item in fresh)
        if piece:
            yield piece
        ended = next((item for item in fresh if isinstance(item, Record) and is_last(item.event)), None)
        if ended is not None:
            yield END
            return


def _frames(item: Item, *, epoch: str) -> bytes:
    match item:
        case LogLine():
            return frame("log", {"stage": item.stage, "line": item.line, "ts": item.ts})
        case PositionChanged():
            return frame("position", {"queue": item.queue, "waiting_on": item.waiting_on})
        case Record():
            return _record_frames(item, epoch=epoch)


def _record_frames(record: Record, *, epoch: str) -> bytes:
    pieces: list[bytes] = []
    if shows_status(record.event):
        pieces.append(frame("status", status_data(record.event), id=str(EventId(epoch, record.seq))))
    asked = question(record.event)
    if asked is not None:
        pieces.append(frame("confirmation", asked))
    return b"".join(pieces)
