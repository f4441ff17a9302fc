"""Whether the view has come as far as the log: asked before something is decided by the view that a client was told."""

from __future__ import annotations

from typing import Final, Protocol

from libs.capacity.answers import ViewMark
from libs.capacity.errors import ViewLost, ViewUnavailable
from libs.runtime.clock import Clock

LOOKS: Final = 100  # for the view to come up with the log, this often at most
LOOK_EVERY_MS: Final = 20


class Marked(Protocol):
    async def mark(self) -> ViewMark | None: ...


async def has_folded(view: Marked, seq: int, *, clock: Clock) -> bool:
    """Whether the view has come as far as this record of the log, or comes there within two seconds."""
    try:
        for _ in range(LOOKS):
            mark = await view.mark()
            if mark is None or not mark.open:
                return False
            if mark.applied >= seq:
                return True
            await clock.sleep_ms(LOOK_EVERY_MS)
    except (ViewLost, ViewUnavailable):
        pass
    return False
