"""Which streams are open at this replica, and whose. Owns the two limits; refuses to know what flows."""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class TooMany:
    """One more would be too many: of this user, or of this replica."""

    limit: int
    of_user: bool


class Openings:
    """Counted from the moment of the decision, so that two requests at once are not both the last that fits."""

    def __init__(self, *, per_user: int, per_replica: int) -> None:
        self._per_user = per_user
        self._per_replica = per_replica
        self._open = Counter[str]()
        self.total = 0

    def open(self, user: str) -> TooMany | None:
        """Count one more, or say why not. The caller closes what it has opened."""
        if self._open[user] >= self._per_user:
            return TooMany(self._per_user, of_user=True)
        if self.total >= self._per_replica:
            return TooMany(self._per_replica, of_user=False)
        self._open[user] += 1
        self.total += 1
        return None

    def close(self, user: str) -> None:
        self.total -= 1
        self._open[user] -= 1
        if self._open[user] <= 0:
            del self._open[user]


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
