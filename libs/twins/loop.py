"""The loop of the twins: time jumps as in a simulation, and threads that work for it are waited for.

FastAPI asks plain functions on threads. What they bring back comes in real time, so no time passes while one works.
"""

import threading
from collections.abc import Callable
from contextvars import Context
from typing import Any, Final

from anyio import CapacityLimiter
from anyio.to_thread import current_default_thread_limiter

from libs.twins.virtual import VirtualLoop

LOOKS_EVERY_S: Final = 1.0  # for a thread that has ended without a word


class TwinLoop(VirtualLoop):
    """A loop that is run again and again, as long as somebody waits for something on it."""

    def __init__(self) -> None:
        super().__init__()
        self._called = threading.Event()
        self._arrivals: Callable[[], None] = _nothing
        self._threads: CapacityLimiter | None = None

    def begin(self) -> None:
        """A stretch of it: what came before counts for nothing."""
        self._rounds = 0

    def skip(self, seconds: float) -> None:
        """As where the machine slept: whatever was due meanwhile is due now."""
        self._now_s += seconds

    def hears(self, arrivals: Callable[[], None]) -> None:
        """Asked before time passes: what has come from other threads is begun first."""
        self._arrivals = arrivals

    async def watch_threads(self) -> None:
        """From now on, and from a coroutine: it is this loop's alone."""
        self._threads = current_default_thread_limiter()

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Context | None = None) -> Any:
        call = self.call_soon(callback, *args, context=context)
        self._called.set()
        return call

    def _go_on_in_time(self) -> None:
        while self._threads is not None and self._threads.borrowed_tokens:
            self._called.clear()
            if self._ready:
                return
            self._called.wait(LOOKS_EVERY_S)
        self._arrivals()
        if not self._ready:
            super()._go_on_in_time()


def _nothing() -> None:
    """Nobody else asks."""
