"""How long those whom heartbeats need were away, so that leases can be longer by it.

    heard    ●   ●   ●                     ●   ●
                     └──── an outage ──────┘   owed, until leases were prolonged by it

A worker whose heartbeat could not arrive, or could not be written down, is not silent. So before anything is taken away
for silence, all that ends by it is prolonged by the outage; an attempt that ends soon after all the same is given back
because of the outage, which does not count against its job; one that was heard of in the log since then fell silent by
itself. A replica that has just begun to lead does not know what was before: for a few heartbeats it takes nothing away.
While another leads, an outage is that one's to make good.

Owns that arithmetic. A stall of this process is an outage like any other: no worker was heard.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from libs.capacity.patience import Span, joined
from libs.runtime.clock import Clock

SETTLING_BEATS = 3  # two heartbeats may be lost, the third is heard


class Outages:
    """Everybody is heard a few times within `patience_ms` while they are there; longer without is an outage."""

    def __init__(
        self, *whom: str, clock: Clock, patience_ms: int, lease_ms: int, log_ends_at: Callable[[], int]
    ) -> None:
        self.patience_ms = patience_ms
        self._clock = clock
        self._lease_ms = lease_ms
        self._log_ends_at = log_ends_at
        self._heard_ms = dict.fromkeys(whom, clock.monotonic_ms())
        self._owed: tuple[int, int] | None = None  # from when to when, over all of them
        self._leads_since_ms: int | None = None
        self._over_ms: int | None = None  # when the last one was over
        self._over_at = 0  # the log's last record then

    def reached(self, whom: str) -> None:
        """They are there, now."""
        now_ms, since_ms = self._clock.monotonic_ms(), self._heard_ms[whom]
        self._heard_ms[whom] = now_ms
        if now_ms - since_ms > self.patience_ms:
            begin_ms, end_ms = self._owed or (since_ms, now_ms)
            self._owed = min(begin_ms, since_ms), max(end_ms, now_ms)
            self.interrupted()

    def interrupted(self) -> None:
        """What was heard until now may be forgotten: an outage is over, or the view was lost and is there again."""
        self._over_ms, self._over_at = self._clock.monotonic_ms(), self._log_ends_at()

    def leading(self, *, leads: bool) -> None:
        """Whether it is this replica that makes outages good."""
        if not leads:
            self._leads_since_ms = self._owed = None
        elif self._leads_since_ms is None:
            self._leads_since_ms = self._clock.monotonic_ms()

    @property
    def away(self) -> tuple[str, ...]:
        """Those who have been silent for longer than a heartbeat."""
        now_ms = self._clock.monotonic_ms()
        return tuple(whom for whom, at_ms in self._heard_ms.items() if now_ms - at_ms > self.patience_ms)

    @property
    def owed_ms(self) -> int:
        """By how much leases have to be prolonged."""
        return 0 if self._owed is None else self._owed[1] - self._owed[0]

    def settled(self) -> None:
        """The leases were prolonged."""
        self._owed = None

    @property
    def can_judge(self) -> bool:
        """Whether silence is the silent one's own."""
        if self._leads_since_ms is None or self.away or self.owed_ms:
            return False
        return self._clock.monotonic_ms() - self._leads_since_ms >= SETTLING_BEATS * self.patience_ms

    @property
    def excuses(self) -> int:
        """A lease that has ended by now may have been renewed last before an outage was over: that of each attempt of
        which the log has told nothing after this record. 0: none can."""
        if self._over_ms is None or self._clock.monotonic_ms() - self._over_ms > self._lease_ms + self.patience_ms:
            return 0
        return self._over_at


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
