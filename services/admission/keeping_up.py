"""Whether the view has come as far as the log: asked before something is decided by it that a client was told, and
before a client is told from it what came of a change.
"""

from typing import Final

from libs.capacity.errors import ViewLost, ViewUnavailable
from libs.capacity.ports import ViewReadings
from libs.runtime.clock import Clock

WITHIN_MS: Final = 2000  # the time that the view gets to come up with the log
LOOK_EVERY_MS: Final = 20


async def has_folded(view: ViewReadings, seq: int, *, clock: Clock, within_ms: int = WITHIN_MS) -> bool:
    """Whether the view has come as far as this record of the log, or comes there in time."""
    try:
        for _ in range(within_ms // LOOK_EVERY_MS):
            mark = await view.mark()
            if mark is None or not mark.open:
                return False
            if mark.applied >= seq:
                return True
            await clock.sleep_ms(LOOK_EVERY_MS)
    except (ViewLost, ViewUnavailable):
        pass
    return False
