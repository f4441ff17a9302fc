"""The log, read ahead of the cycle: pages wait here until they are taken.

Owns the one reader of the log in this process, and the knowledge of how far the log went when it was last looked at. So
it knows too when the reader no longer brings what is there: a replica like that must not keep the lead from another.
And it says so where records were gone by age before they were read.
"""

import asyncio
import logging
from collections import deque
from contextlib import aclosing
from typing import Final

from headgate_contracts import Event
from headgate_contracts.events import JobStage, JobStarted
from libs.eventlog.ports import EventLog
from libs.eventlog.values import Page
from libs.runtime.clock import Clock

logger = logging.getLogger(__name__)

PAGES_AHEAD = 8  # a reader that starts from nothing must not hold the whole log in memory
STALLED_AFTER_MS = 10_000  # a reader finds a restarted server again within four seconds
UNHURRIED: Final = (JobStarted, JobStage)  # they free nothing and bring nothing: no plan is another for them
UNHURRIED_MS: Final = 25  # such records wait to be folded together, unless something else comes


class Inbox:
    """Pages in order. `arrived` is set with each, a moment later where its records are in no hurry: somebody should
    take it."""

    def __init__(self, log: EventLog, *, after: int, arrived: asyncio.Event, clock: Clock) -> None:
        self._log = log
        self._arrived = arrived
        self._clock = clock
        self._pages = deque[Page]()
        self._room = asyncio.Event()
        self.reached = after  # all up to here was taken
        self.ends_at: int | None = None  # as far as it was told; null: not yet
        self._moved_ms: int | None = None  # when it last came nearer to the end; null: it has never caught up
        self._soon: asyncio.TimerHandle | None = None

    @property
    def caught_up(self) -> bool:
        """Whether all was taken that the log is known to have."""
        return self.ends_at is not None and self.reached >= self.ends_at

    @property
    def is_at_the_end(self) -> bool:
        """Whether all was taken that is known here, pages included that wait."""
        return self.caught_up and not self._pages

    @property
    def keeps_up(self) -> bool:
        """Whether it is at the end of the log, or was and is on its way there again."""
        if self.caught_up or self._moved_ms is None:
            return self.caught_up
        return self._clock.monotonic_ms() - self._moved_ms <= STALLED_AFTER_MS

    def expect(self, seq: int) -> None:
        """The log is known to go this far."""
        if self.caught_up:
            self._moved_ms = self._clock.monotonic_ms()
        self.ends_at = max(seq, self.ends_at or 0)

    def take(self) -> Page | None:
        """The next page, where there is one."""
        if not self._pages:
            return None
        page = self._pages.popleft()
        self._room.set()
        if page.records and page.records[0].seq > self.reached + 1:
            gone = f"{self.reached + 1} to {page.records[0].seq - 1}"
            logger.error("records %s of the log are gone by age, and no snapshot reaches up to them", gone)
        self.reached = page.records[-1].seq if page.records else page.last_seq
        self.expect(page.last_seq)
        if self._moved_ms is not None or self.caught_up:
            self._moved_ms = self._clock.monotonic_ms()
        return page

    async def run(self, stopping: asyncio.Event) -> None:
        """Read until cancelled. A hole in the log, or another log in its place, ends the process."""
        async with aclosing(self._log.follow(after=self.reached)) as pages:
            async for page in pages:
                self._pages.append(page)
                self._tell(page)
                while len(self._pages) >= PAGES_AHEAD:
                    self._room.clear()
                    await self._room.wait()

    def _tell(self, page: Page) -> None:
        if not is_unhurried(page) or len(self._pages) >= PAGES_AHEAD:
            self._tell_now()
        elif self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(UNHURRIED_MS / 1000, self._tell_now)

    def _tell_now(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
        self._soon = None
        self._arrived.set()


def is_unhurried(page: Page) -> bool:
    """Whether nothing that is decided depends on when the page is taken. An empty one tells that the end is reached."""
    events = (record.event for record in page.records)
    return bool(page.records) and all(isinstance(each, Event) and isinstance(each.data, UNHURRIED) for each in events)
