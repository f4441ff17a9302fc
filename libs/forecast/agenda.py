"""What comes due on a virtual clock: in order, and at the same moment in the order in which it was set. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that comes due about a job: `what` is its user's word."""

    what: str
    job: str


@dataclass(slots=True)
class Agenda:
    """All that is still to come."""

    _due: list[tuple[int, int, Happening]] = field(default_factory=list[tuple[int, int, Happening]])
    _count: int = 0

    def set(self, at_ms: int, happening: Happening) -> None:
        """This comes due then."""
        self._count += 1
        heappush(self._due, (at_ms, self._count, happening))

    @property
    def next_ms(self) -> int | None:
        """The next moment at which something is due; null where nothing is to come."""
        return self._due[0][0] if self._due else None

    def take(self, now_ms: int) -> Happening | None:
        """The next one that is due by then."""
        return heappop(self._due)[2] if self._due and self._due[0][0] <= now_ms else None
