"""Which streams are open at this replica, and whose. Owns the two limits; refuses to know what flows."""

from collections import Counter
from dataclasses import dataclass


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
