"""One client's stream: attached first, then history, then live, joined by sequence.

      attach ──► everything from here on waits in the tap
        │
      read from the log's leader ──► snapshot, or what follows the client's last id             … up to sequence S
        │
      take from the tap; what is not past S was sent already                                    … S + 1 and on

Whatever the follower lags behind the leader, no sequence is sent twice and none is left out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from services.notifier.fanout import Closed, Tap, Told, TooSlow
from services.notifier.frames import comment, retry
from services.notifier.rendering import END


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a silent stream says that it lives, when a client should come back, and for how long it may listen."""

    comment_s: float
    retry_ms: int
    left_s: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Opening:
    """What a stream begins with: all up to the sequence `seen`. `complete`: nothing can follow it."""

    first: bytes
    seen: int
    complete: bool = False


async def stream(tap: Tap, opening: Opening, *, pace: Pace, ends: bool) -> AsyncIterator[bytes]:
    """The bytes of one stream; each piece holds all that was due. `ends`: with the end of its job."""
    seen, complete = opening.seen, opening.complete
    yield retry(pace.retry_ms) + opening.first + (END if complete else b"")
    if complete:
        return
    del opening  # a snapshot is long, and streams are many and live for hours
    while (left_s := pace.left_s()) > 0:
        try:
            items = await tap.take(within_s=min(pace.comment_s, left_s))
        except (TooSlow, Closed):
            break
        fresh = [told for told in items if told.seq is None or told.seq > seen]
        over = ends and any(told.ends for told in fresh)
        if fresh or not items:
            yield _joined(fresh) + (END if over else b"")
        if over:
            return
    yield retry(pace.retry_ms)


def _joined(fresh: list[Told]) -> bytes:
    return b"".join(told.frames for told in fresh) or comment("still here")
