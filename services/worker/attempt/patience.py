"""What is asked of the log and of the buckets is asked again while they are away, or full. Owns how often, and what is
said of it.

Work slows down, it never halts: what ends the asking is the end of the attempt, by its lease or its deadline.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar, cast

from libs.eventlog import LogFull, LogUnavailable, OutcomeUnknown
from libs.runtime.clock import Clock

logger = logging.getLogger(__name__)

AGAIN_AFTER_MS: Final = 200
AWAY: Final = (LogUnavailable, OutcomeUnknown, LogFull)
T = TypeVar("T")


async def insist(ask: Callable[[], Awaitable[T]], clock: Clock, *, about: str) -> T:
    """The answer, however long it takes."""
    return cast("T", await insist_while(lambda: True, ask, clock, said=f"{about} waits"))


async def insist_while(
    wanted: Callable[[], bool], ask: Callable[[], Awaitable[T]], clock: Clock, *, said: str
) -> T | None:
    """The answer; null once it is wanted no more. `said` goes to the log, once, where it has to wait."""
    was_said = False
    while wanted():
        try:
            return await ask()
        except AWAY as away:
            if not was_said:
                logger.warning("%s: %s", said, away)
            was_said = True
            await clock.sleep_ms(AGAIN_AFTER_MS)
    return None
