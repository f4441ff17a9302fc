"""The tokens that were taken back, by their `jti`, for as long as any of them could be good.

A set in memory, asked at each request. Owns what is remembered and for how long. Refuses to know where it comes from:
the log, which every replica follows (`libs/foundation/revoking`).
"""

from collections.abc import Callable
from typing import Final

from libs.runtime.clock import Clock

LAPSES_AFTER_MS: Final = 60_000  # beyond the end of the longest life: clocks differ, and a token is good for its leeway


class Revocations:
    """What this replica knows of them."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._until_ms: dict[str, int] = {}
        self._watchers: list[Callable[[str], None]] = []

    def __contains__(self, token_id: str | None) -> bool:
        return token_id in self._until_ms

    def until_ms(self, token_id: str) -> int | None:
        """How long it is remembered; null where it was not taken back."""
        return self._until_ms.get(token_id)

    def take_back(self, token_id: str, *, until_ms: int) -> None:
        """From now on it opens nothing. Heard again it changes nothing; what has lapsed is forgotten meanwhile."""
        now_ms = self._clock.now_ms()
        known = {each: until for each, until in self._until_ms.items() if until + LAPSES_AFTER_MS > now_ms}
        self._until_ms = {**known, token_id: max(until_ms, known.get(token_id, 0))}
        for told in self._watchers:
            told(token_id)

    def watch(self, told: Callable[[str], None]) -> None:
        """Be told of each that is taken back: what it had opened is to be ended."""
        self._watchers.append(told)
