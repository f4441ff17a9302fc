"""What a command has started, where no system adopts what is let go: its group, and what was seen to descend from it.

A process that leaves both its group and its parents between two looks is lost here: the level `trusted` says so.
Everything else is found, and ended.
"""

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from services.worker.sandbox.listing import Listed, descending, living
from services.worker.sandbox.tree import ProcessTree

LOOK_EVERY_S: Final = 1.0
BETWEEN_ENDS_S: Final = 0.05
ENDED_WITHIN_S: Final = 10.0  # what does not end by then is not ours to end


class ProcessGroup(ProcessTree):
    """A process group; `first` leads it."""

    between_looks_s = BETWEEN_ENDS_S

    def __init__(self, first: int) -> None:
        super().__init__(first)
        self._known: dict[int, Listed] = {}
        self._next_s = 0.0

    def members(self) -> list[int]:
        """As they were found a moment ago."""
        if time.monotonic() >= self._next_s:
            self._look()
        return list(self._known)

    def reap(self) -> bool:
        return super().reap() or self._look()

    def ask(self, *, spared: Iterable[int] = ()) -> None:
        self._look()
        super().ask(spared=spared)

    def kill(self) -> None:
        until = time.monotonic() + ENDED_WITHIN_S
        while self.reap() and time.monotonic() < until:
            with suppress(ProcessLookupError, PermissionError):  # the latter: they are dead already, on some systems
                os.killpg(self.first, signal.SIGKILL)
            for pid in self._known:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(self.between_looks_s)

    def _look(self) -> bool:
        """Whether anything of it lives."""
        self._known = followed(self.first, self._known, living())
        self._next_s = time.monotonic() + LOOK_EVERY_S
        return bool(self._known)


def followed(first: int, known: dict[int, Listed], now: dict[int, Listed]) -> dict[int, Listed]:
    """Those of the group, those that were known, and whatever descends from either."""
    is_known = {(each.pid, each.began) for each in known.values()}
    return descending(now, lambda each: each.group == first or (each.pid, each.began) in is_known)
