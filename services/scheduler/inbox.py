"""The log, read ahead of the cycle: pages wait here until they are taken.

Owns the one reader of the log in this process, and the knowledge of how far the log went when it was last looked at.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import aclosing

from libs.eventlog.values import Page
from services.scheduler.ports import Log

PAGES_AHEAD = 8  # a reader that starts from nothing must not hold the whole log in memory


class Inbox:
    """Pages in order. `arrived` is set with each: somebody should take it."""

    def __init__(self, log: Log, *, after: int, arrived: asyncio.Event) -> None:
        self._log = log
        self._arrived = arrived
        self._pages = deque[Page]()
        self._room = asyncio.Event()
        self.reached = after  # all up to here was taken
        self.ends_at: int | None = None  # as far as anybody has told; null: nobody has

    @property
    def caught_up(self) -> bool:
        """Whether all was taken that the log is known to have."""
        return self.ends_at is not None and self.reached >= self.ends_at

    def expect(self, seq: int) -> None:
        """The log is known to go this far."""
        self.ends_at = max(seq, self.ends_at or 0)

    def take(self) -> Page | None:
        """The next page, where there is one."""
        if not self._pages:
            return None
        page = self._pages.popleft()
        self._room.set()
        self.reached = page.records[-1].seq if page.records else page.last_seq
        self.expect(page.last_seq)
        return page

    async def run(self, stopping: asyncio.Event) -> None:
        """Read until cancelled. A hole in the log, or another log in its place, ends the process."""
        async with aclosing(self._log.follow(after=self.reached)) as pages:
            async for page in pages:
                self._pages.append(page)
                self._arrived.set()
                while len(self._pages) >= PAGES_AHEAD:
                    self._room.clear()
                    await self._room.wait()
