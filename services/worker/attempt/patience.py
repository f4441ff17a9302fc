"""What is asked of the buckets is asked again while they are away, or full. Owns how often, and what is said of it.

Work slows down, it never halts: what ends the asking is the end of the attempt, by its lease or its deadline.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from libs.eventlog import LogFull, LogUnavailable
from libs.runtime.clock import Clock

logger = logging.getLogger(__name__)

AGAIN_AFTER_MS: Final = 200
T = TypeVar("T")


async def insist(ask: Callable[[], Awaitable[T]], clock: Clock, *, about: str) -> T:
    """The answer, however long it takes."""
    said = False
    while True:
        try:
            return await ask()
        except (LogUnavailable, LogFull) as away:
            if not said:
                logger.warning("%s waits: %s", about, away)
            said = True
            await clock.sleep_ms(AGAIN_AFTER_MS)
