"""Numbers by hash: each depends on the seed and on what it is for, never on how many were asked for elsewhere."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from struct import unpack
from typing import Final, TypeVar

T = TypeVar("T")
SPAN: Final = 1 << 53
EIGHT: Final = "<8Q"  # numbers in a digest


class Dice:
    """One seed's."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._hashed: Counter[str] = Counter()
        self._ahead: dict[str, list[float]] = {}  # numbers to come, the next one last

    def throw(self, what: str) -> float:
        """From 0 to below 1: the next one for this."""
        ahead = self._ahead.get(what)
        if not ahead:
            ahead = self._ahead[what] = [(number >> 11) / SPAN for number in unpack(EIGHT, self._digest(what))]
        return ahead.pop()

    def entropy(self, what: str) -> bytes:
        """Ten bytes for an id."""
        return self._digest(what)[:10]

    def between(self, what: str, low: float, high: float) -> float:
        return low + (high - low) * self.throw(what)

    def whole(self, what: str, low: int, high: int) -> int:
        """Both may be thrown."""
        return low + int((high - low + 1) * self.throw(what))

    def chance(self, what: str, share: float) -> bool:
        return self.throw(what) < share

    def one_of(self, what: str, choices: Sequence[T]) -> T:
        return choices[int(len(choices) * self.throw(what))]

    def some_of(self, what: str, choices: Sequence[T], count: int) -> tuple[T, ...]:
        """Different ones, in the order of the choices."""
        ranked = sorted(range(len(choices)), key=lambda place: self.throw(what))
        return tuple(choices[place] for place in sorted(ranked[:count]))

    def _digest(self, what: str) -> bytes:
        self._hashed[what] += 1
        return hashlib.blake2b(f"{self._seed}/{what}/{self._hashed[what]}".encode()).digest()
