"""What the garbage collector looks at. Owns its pace in this process; refuses to switch it off.

    opening ──► every so many: collected, and what is left is put aside: gc.freeze()        it lasts
    closing ──► every so many: all that was put aside is looked at again: gc.unfreeze()     what did not last goes

A stream is some 230 objects for hours. By itself the collector looks at all of them whenever there are a quarter more,
and nobody is sent or told anything meanwhile: with 5,000 streams that was 0.7 s of a processor, and on a busy machine
longer than the log's answer is waited for, so that whoever came in that moment was turned away. What is put aside costs
nothing and goes as soon as nobody refers to it; only a ring of objects stays, which is some 1 KiB a stream (asyncio's
own transport), and that not for ever.
"""

from __future__ import annotations

import gc
from typing import Final

OPENINGS: Final = 200  # 20 ms of a processor to look at
CLOSINGS: Final = 20_000  # 20 MiB of rings at most


class Collecting:
    """Told of each stream that begins and ends."""

    def __init__(self, *, openings: int = OPENINGS, closings: int = CLOSINGS) -> None:
        self._openings = openings
        self._closings = closings
        self._opened = 0
        self._closed = 0

    def opened(self) -> None:
        self._opened += 1
        if self._opened >= self._openings:
            self._opened = 0
            self.put_aside()

    def closed(self) -> None:
        self._closed += 1
        if self._closed >= self._closings:
            self._closed = 0
            gc.unfreeze()

    def put_aside(self) -> None:
        """Whatever is still there after a look."""
        gc.collect()
        gc.freeze()
