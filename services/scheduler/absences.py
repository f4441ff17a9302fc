"""When a pool could not be served, whoever's fault it was: that time does not count against the time to live of a job.

    heard    ●   ●   ●                 ●   ●        a worker of the pool, by this replica
    begins to lead ──┘   └── absence ──┘

A worker is heard only where NATS carries its heartbeat, and there is a look only where the store answers, so one tells
of all three. Only the replica that leads looks, so only it knows, in memory: what was before it began to lead counts as
absence. A change of the lead gives each job its whole time again, and takes none from any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from libs.capacity.patience import Span, joined


@dataclass(slots=True)
class Absences:
    """Of all pools, since this replica leads."""

    patience_ms: int  # a few heartbeats
    seen: dict[str, int] = field(default_factory=dict[str, int])  # pool → when a worker of it was heard last
    over: dict[str, list[Span]] = field(default_factory=dict[str, list[Span]])

    def forget(self) -> None:
        """Another leads."""
        self.seen.clear()
        self.over.clear()

    def look(self, heard: Mapping[str, int]) -> None:
        """When a worker of each pool was heard last."""
        for pool, at_ms in heard.items():
            last_ms = self.seen.get(pool, 0)
            if at_ms - last_ms > self.patience_ms:
                self.over[pool] = joined([*self.over.get(pool, ()), (last_ms, at_ms)])
            self.seen[pool] = max(at_ms, last_ms)

    def spans(self, pool: str, *, now_ms: int) -> list[Span]:
        """When it could not be served, up to now."""
        last_ms = self.seen.get(pool, 0)
        lately = [(last_ms, now_ms)] if now_ms - last_ms > self.patience_ms else []
        return [*self.over.get(pool, ()), *lately]
