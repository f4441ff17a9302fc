"""Waiting for what another process does. Whether it was in time is the outcome: what that means, its caller says."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final

LOOK_EVERY_S: Final = 0.005


async def until(check: Callable[[], bool], *, within_s: float = math.inf, every_s: float = LOOK_EVERY_S) -> bool:
    """Whether it became true within that time."""
    time = asyncio.get_running_loop().time
    give_up_at = time() + within_s
    while not check():
        if time() >= give_up_at:
            return False
        await asyncio.sleep(every_s)
    return True
