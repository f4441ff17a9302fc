"""Members in order of a score, then of their names: what a Redis ZSET is, on a list kept by bisection.

Owns the order alone. Every question is O(log n). Adding and discarding move the tail of a list, which for the sizes of
a queue costs less than anything else that is done about a job.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

ScoredMember = tuple[float, str]  # a score is a whole number, or infinite
LAST = "\U0010ffff"  # behind every name


class SortedSet:
    """Each member has one score. Equal scores go by name."""

    __slots__ = ("_entries", "_scores")

    def __init__(self) -> None:
        self._scores: dict[str, float] = {}
        self._entries: list[ScoredMember] = []

    def add(self, member: str, score: float) -> None:
        """Put the member at this score, also where it stands elsewhere."""
        known = self._scores.get(member)
        if known == score:
            return
        if known is not None:
            self._remove(member, known)
        self._scores[member] = score
        insort(self._entries, (score, member))

    def discard(self, member: str) -> bool:
        """Whether it was there."""
        known = self._scores.pop(member, None)
        if known is None:
            return False
        self._remove(member, known)
        return True

    def score(self, member: str) -> float | None:
        return self._scores.get(member)

    def first(self) -> str | None:
        return self._entries[0][1] if self._entries else None

    def rank(self, score: float, member: str = "") -> int:
        """How many go before this entry, whether it is there or not."""
        return bisect_left(self._entries, (score, member))

    def after(self, entry: ScoredMember) -> ScoredMember | None:
        """The next one behind this entry, whether it is there or not."""
        index = bisect_right(self._entries, entry)
        return self._entries[index] if index < len(self._entries) else None

    def back_from(self, score: float, floor: float) -> Iterator[ScoredMember]:
        """Those below `score` and not below `floor`, the last one first."""
        for index in range(self.rank(score) - 1, -1, -1):
            if self._entries[index][0] < floor:
                return
            yield self._entries[index]

    def up_to(self, score: float) -> list[str]:
        """Every member with this score or a lower one."""
        return [member for _, member in self._entries[: bisect_right(self._entries, (score, LAST))]]

    def count_above(self, score: float) -> int:
        return len(self._entries) - bisect_right(self._entries, (score, LAST))

    def between(self, low: float, high: float) -> list[str]:
        """Every member with `low <= score < high`."""
        return [member for _, member in self._entries[self.rank(low) : self.rank(high)]]

    def entries(self, start: int = 0, stop: int | None = None) -> list[ScoredMember]:
        return self._entries[start:stop]

    def __contains__(self, member: str) -> bool:
        return member in self._scores

    def __iter__(self) -> Iterator[str]:
        return (member for _, member in self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def _remove(self, member: str, score: float) -> None:
        del self._entries[bisect_left(self._entries, (score, member))]
