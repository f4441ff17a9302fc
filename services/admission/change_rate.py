"""How fast one user may change what is in, at this replica: the generic cell rate algorithm, as for submissions.

Owns what users have spent. It is in memory: each replica counts for itself and a restart forgets it, for what is
bounded is how fast one user fills the log, not what anybody may do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

MINUTE_MS: Final = 60_000
MOST_USERS: Final = 10_000  # 1.2 MB; to be counted, each has written an event within the last minute


def early_ms(until_ms: int, *, cost_ms: int, now_ms: int) -> int:
    """By how much it is too early for who has spent their time up to `until_ms`; zero: it may be done now."""
    return max(0, max(until_ms, now_ms) + cost_ms - now_ms - MINUTE_MS)


@dataclass(slots=True)
class ChangeRate:
    """Up to when each user has spent their time. All times are monotonic."""

    until_ms: dict[str, int] = field(default_factory=dict[str, int])

    def spend(self, user: str, cost_ms: int, *, now_ms: int) -> int:
        """Zero, and it is spent; or in how many ms it may be, and nothing is."""
        until_ms = self.until_ms.get(user, now_ms)
        wait_ms = early_ms(until_ms, cost_ms=cost_ms, now_ms=now_ms)
        if wait_ms == 0:
            self._make_room(user, now_ms)
            self.until_ms[user] = max(until_ms, now_ms) + cost_ms
        return wait_ms

    def _make_room(self, user: str, now_ms: int) -> None:
        """Those who owe nothing any more go first, then whoever owes least."""
        if user in self.until_ms or len(self.until_ms) < MOST_USERS:
            return
        self.until_ms = {each: until_ms for each, until_ms in self.until_ms.items() if until_ms > now_ms}
        if len(self.until_ms) >= MOST_USERS:
            del self.until_ms[min(self.until_ms, key=self.until_ms.__getitem__)]
