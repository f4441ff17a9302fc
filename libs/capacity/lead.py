"""Who leads: a lease beside the view, for liveness alone. That two leaders do no harm is the log's doing.

Owns the question and its answer, on Redis and as a twin in memory. The lead is no part of the view: a rebuilt view
keeps it. Data that were flushed take it along, and the first replica that asks leads then.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from libs.capacity.scripts import ScriptRunner


@dataclass(frozen=True, slots=True)
class Led:
    """Who leads now, and what time it is by the store's own clock, which all replicas share."""

    by: str
    now_ms: int


class Lead(Protocol):
    """Raises `ViewUnavailable` where the store does not answer. Each question may be asked twice."""

    async def hold(self, name: str, *, ttl_ms: int) -> Led:
        """Take the lead where it is free; keep it for `ttl_ms` from now where `name` has it."""
        ...

    async def drop(self, name: str) -> None:
        """Let another lead at once. Where `name` does not lead, nothing happens."""
        ...


class RedisLead:
    """On the store's server. `scripts` is made for `keys.lead_key`."""

    def __init__(self, scripts: ScriptRunner) -> None:
        self._scripts = scripts

    async def hold(self, name: str, *, ttl_ms: int) -> Led:
        by, now_ms = await self._scripts.run("hold_lead_v1", name, "", ttl_ms)
        return Led(by, now_ms)

    async def drop(self, name: str) -> None:
        await self._scripts.run("drop_lead_v1", name)


class MemoryLead:
    """The twin, shared by the replicas of one process."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._name = ""
        self._until_ms = 0

    async def hold(self, name: str, *, ttl_ms: int) -> Led:
        now_ms = self._clock()
        if self._name == name or self._until_ms <= now_ms:
            self._name, self._until_ms = name, now_ms + ttl_ms
        return Led(self._name, now_ms)

    async def drop(self, name: str) -> None:
        if self._name == name:
            self.lose()

    def lose(self) -> None:
        """What FLUSHALL does."""
        self._until_ms = 0
