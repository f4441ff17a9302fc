"""From one follower of the log to many connections.

    log ──► follow ──┐
    log lines ───────┼──► Fanout ──► Tap ──► connection        one bounded queue each
    positions ───────┘          └──► Tap ──► connection

One follower a replica, however many connections. A connection that cannot keep up is cut off, never skipped: its client
comes back with its last id and misses nothing. Refuses to know what a connection does with what it gets.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from typing import Final, Protocol

from headgate_contracts.commands import LogLine, PositionChanged
from libs.eventlog import Page, Record
from services.notifier.domain import job_of

TAP_DEPTH: Final = 1000  # a job has about ten events a cycle; log lines are what fills it

Item = Record | LogLine | PositionChanged


class FollowedLog(Protocol):
    def follow(self, *, after: int) -> AsyncGenerator[Page, None]: ...


class TooSlow(Exception):
    """The client did not take what it was sent. It is cut off, and comes back with its last id."""


class Closed(Exception):
    """This replica stops. The client comes back to another one with its last id."""


class Tap:
    """What one connection is still to be sent."""

    def __init__(self, depth: int = TAP_DEPTH) -> None:
        self._items: deque[Item] = deque()
        self._depth = depth
        self._stirred = asyncio.Event()
        self._end: Exception | None = None

    def offer(self, item: Item) -> None:
        if len(self._items) >= self._depth:
            self.end(TooSlow())
        else:
            self._items.append(item)
            self._stirred.set()

    def end(self, why: Exception) -> None:
        self._end = self._end or why
        self._stirred.set()

    async def take(self, *, within_s: float) -> list[Item]:
        """All there is; nothing, if nothing came in time. Raises what ended the tap, once it is empty or too full."""
        if not self._items and self._end is None:
            self._stirred.clear()
            try:
                async with asyncio.timeout(within_s):
                    await self._stirred.wait()
            except TimeoutError:
                return []
        if isinstance(self._end, TooSlow) or (self._end is not None and not self._items):
            raise self._end
        items = list(self._items)
        self._items.clear()
        return items


class Fanout:
    """Who listens to which job."""

    def __init__(self) -> None:
        self._taps: defaultdict[str, set[Tap]] = defaultdict(set)
        self._closed = False

    @property
    def connections(self) -> int:
        return sum(len(taps) for taps in self._taps.values())

    @contextmanager
    def attached(self, job_id: str) -> Iterator[Tap]:
        """A tap that gets everything about the job from now on."""
        tap = Tap()
        if self._closed:
            tap.end(Closed())
        self._taps[job_id].add(tap)
        try:
            yield tap
        finally:
            self._taps[job_id].discard(tap)
            if not self._taps[job_id]:
                del self._taps[job_id]

    def spread(self, job_id: str | None, item: Item) -> None:
        for tap in self._taps.get(job_id or "", ()):
            tap.offer(item)

    async def follow(self, log: FollowedLog, *, after: int) -> None:
        """Spread every record of the log, for ever."""
        async with aclosing(log.follow(after=after)) as pages:
            async for page in pages:
                for record in page.records:
                    self.spread(job_of(record.event), record)

    def close(self) -> None:
        """End every connection, now and from now on."""
        self._closed = True
        for taps in self._taps.values():
            for tap in taps:
                tap.end(Closed())
