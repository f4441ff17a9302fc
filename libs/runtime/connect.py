"""Reaching a server that may not be there yet: said once, waited for as long as it takes, said once when it is there.

Owns the pace of attempts. Knows no server: what connects, and which faults mean "away", come from the caller.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from libs.runtime.clock import Clock
from libs.runtime.eventually import cancellable
from libs.runtime.lifecycle import Health

ATTEMPT_S: Final = 5.0  # a server that takes a connection and then says nothing counts as away
FIRST_PAUSE_MS: Final = 100
LONGEST_PAUSE_MS: Final = 2_000  # so a server that comes back is found within two seconds

Connected = TypeVar("Connected")


async def wait_for(
    what: str,
    connect: Callable[[], Awaitable[Connected]],
    *,
    away: tuple[type[Exception], ...],
    health: Health,
    clock: Clock,
    attempt_s: float = ATTEMPT_S,
    longest_pause_ms: int = LONGEST_PAUSE_MS,
) -> Connected:
    """The first connection that works. Never gives up: it ends by being cancelled, when the service stops.

    `away` are the faults that time may heal (a time-out is one always); any other passes through.
    """
    attempt = 0
    while True:
        try:
            async with asyncio.timeout(attempt_s):
                with cancellable():
                    connected = await connect()
        except (TimeoutError, *away) as fault:
            health.is_missing(what, str(fault) or type(fault).__name__)
        else:
            health.is_there(what)
            return connected
        await clock.sleep_ms(min(pause_ms(attempt, luck=random.random()), longest_pause_ms))
        attempt += 1


def pause_ms(attempt: int, *, luck: float) -> int:
    """Doubles up to the longest; `luck` (0 to 1) takes up to half of it away, so that not all come back at once."""
    pause = min(FIRST_PAUSE_MS * 2 ** min(attempt, 10), LONGEST_PAUSE_MS)
    return round(pause * (1 - luck / 2))
