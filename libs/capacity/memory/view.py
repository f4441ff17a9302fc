"""`MemoryView`: the interface of the view over a state in memory, one class for each part of `ports.View`.

Owns the check that comes before every question: is there a view, is it open, is it of the log that the caller reads?
Deterministic: time comes with the question or from the clock it is given.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from libs.capacity.answers import (
    BetweenAnswer,
    Claim,
    ClaimAnswer,
    DeferAnswer,
    Deferral,
    DueTimer,
    Folded,
    Grant,
    GroupStatus,
    Heartbeat,
    HeartbeatAnswer,
    LeaseAnswer,
    LeaseRequest,
    Outlook,
    QueueEntry,
    Release,
    ReleaseAnswer,
    Request,
    ReserveAnswer,
    StaleView,
    Swept,
    ViewMark,
    WorkerStatus,
)
from libs.capacity.errors import ViewLost
from libs.capacity.keys import check_digest
from libs.capacity.memory import claims as claiming
from libs.capacity.memory import entering, inputs, life, places, reading, slots, workers
from libs.capacity.memory.state import State
from libs.capacity.rows import Change, Pause, Seed, StandingOrders


@dataclass(slots=True)
class MemoryStore:
    """What a server would hold: the current generation, which several views of one process may share, or nothing."""

    state: State | None = None
    tickets: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])  # text and end, in ms
    given: defaultdict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))  # of a user, with ends

    def lose(self) -> None:
        """What FLUSHALL does."""
        self.state = None
        self.tickets.clear()
        self.given.clear()


class _Kept:
    """A store as readers of the log `epoch` see it."""

    def __init__(self, epoch: str, *, clock: Callable[[], int], store: MemoryStore | None = None) -> None:
        self._epoch = epoch
        self._clock = clock
        self._store = store or MemoryStore()

    def _now(self, now_ms: int | None) -> int:
        return self._clock() if now_ms is None else now_ms

    def _open(self) -> State:
        state = self._store.state
        if state is None:
            raise ViewLost("there is no view")
        if state.epoch != self._epoch:
            raise ViewLost(f"the view is of the log {state.epoch}, not of {self._epoch}")
        if not state.is_open:
            raise ViewLost(f"the view is being folded: generation {state.generation}")
        return state

    def _generation(self, generation: str) -> State:
        state = self._store.state
        if state is None or (state.epoch, state.generation) != (self._epoch, generation):
            raise ViewLost(f"generation {generation} of the log {self._epoch} is not the current one")
        return state


class _Life(_Kept):
    async def mark(self) -> ViewMark | None:
        state = self._store.state
        return None if state is None else reading.mark(state)

    async def begin(self, epoch: str, *, generation: str, applied: int, standing: StandingOrders) -> None:
        state = self._store.state
        if state is None or state.generation != generation:  # else it is a repeat, and seeds may be in it
            self._store.state = life.begin(epoch, generation=generation, applied=applied, standing=standing)

    async def seed(self, seeds: Sequence[Seed], *, generation: str, lease_ms: int, now_ms: int | None = None) -> None:
        state = self._generation(generation)
        if state.is_open:
            raise ViewLost("this generation is open: it is folded, not seeded")
        life.seed(state, seeds, lease_ms=lease_ms, now_ms=self._now(now_ms))

    async def open(
        self,
        *,
        generation: str,
        quarantine_ms: int,
        leased: Sequence[str] = (),
        leased_ms: int = 0,
        now_ms: int | None = None,
    ) -> None:
        state, at_ms = self._generation(generation), self._now(now_ms)
        life.open_(state, quarantine_ms=quarantine_ms, leased=leased, leased_ms=leased_ms, now_ms=at_ms)

    async def fold(self, changes: Sequence[Change], *, lease_ms: int, now_ms: int | None = None) -> Folded | StaleView:
        return life.fold(self._open(), changes, lease_ms=lease_ms, now_ms=self._now(now_ms))

    async def configure(self, defaults: Mapping[str, int], *, now_ms: int | None = None) -> None:
        life.configure(self._open(), defaults, now_ms=self._now(now_ms))

    async def prolong(self, by_ms: int) -> None:
        life.prolong(self._open(), by_ms)


class _Entrance(_Kept):
    async def reserve(self, request: Request, *, now_ms: int | None = None) -> ReserveAnswer:
        return entering.reserve(self._open(), request, now_ms=self._now(now_ms))

    async def release(self, request: Release, *, now_ms: int | None = None) -> ReleaseAnswer:
        return entering.release(self._open(), request, now_ms=self._now(now_ms))

    async def defer(self, deferral: Deferral, *, now_ms: int | None = None) -> DeferAnswer:
        return entering.defer(self._open(), deferral, now_ms=self._now(now_ms))

    async def between(self, job: str, *, before: str | None = None, after: str | None = None) -> BetweenAnswer:
        return places.between(self._open(), job, before=before, after=after)


class _Starting(_Kept):
    async def claim(
        self,
        claims: Sequence[Claim],
        *,
        applied: int,
        lapse_ms: int,
        drop: Sequence[str] = (),
        now_ms: int | None = None,
    ) -> ClaimAnswer:
        return claiming.claim(
            self._open(), claims, applied=applied, drop=drop, lapse_ms=lapse_ms, now_ms=self._now(now_ms)
        )

    async def due(self, limit: int, *, now_ms: int | None = None) -> tuple[DueTimer, ...]:
        return reading.due(self._open(), limit, now_ms=self._now(now_ms))


class _Leases(_Kept):
    async def acquire(self, request: LeaseRequest, *, now_ms: int | None = None) -> LeaseAnswer:
        return slots.acquire(self._open(), request, now_ms=self._now(now_ms))

    async def shut(self, group: str, until_ms: int, *, now_ms: int | None = None) -> tuple[Grant, ...]:
        return slots.shut(self._open(), group, until_ms, now_ms=self._now(now_ms))

    async def give_up(
        self, lease: str, *, user: str | None = None, wait_only: bool = False, now_ms: int | None = None
    ) -> tuple[Grant, ...]:
        return slots.give_up(self._open(), lease, user=user, wait_only=wait_only, now_ms=self._now(now_ms))

    async def beat(self, heartbeat: Heartbeat, *, now_ms: int | None = None) -> HeartbeatAnswer:
        return workers.beat(self._open(), heartbeat, now_ms=self._now(now_ms))

    async def sweep(self, *, now_ms: int | None = None) -> Swept:
        return workers.sweep(self._open(), now_ms=self._now(now_ms))


class _Readings(_Kept):
    async def job(self, job: str) -> str | None:
        row = self._open().rows.get(job)
        return None if row is None else row.job

    async def outlook(self, job: str, *, now_ms: int | None = None) -> Outlook | None:
        return reading.outlook(self._open(), job, now_ms=self._now(now_ms))

    async def outlooks(self, jobs: Sequence[str], *, now_ms: int | None = None) -> tuple[Outlook | None, ...]:
        state, at_ms = self._open(), self._now(now_ms)
        return tuple(reading.outlook(state, job, now_ms=at_ms) for job in jobs)

    async def group(self, group: str, *, tier: str | None = None, now_ms: int | None = None) -> GroupStatus:
        return reading.group(self._open(), group, tier=tier, now_ms=self._now(now_ms))

    async def jobs_of(self, user: str, *, before: int | None = None, count: int = 50) -> tuple[tuple[str, int], ...]:
        return reading.jobs_of(self._open(), user, before=before, count=count)

    async def day_used(self, user: str, day: int) -> int:
        return entering.day_used(self._open(), user, day)

    async def stored(self, user: str = "") -> int:
        return inputs.stored(self._open(), user)

    async def queue(self, *, offset: int = 0, count: int = 100) -> tuple[QueueEntry, ...]:
        return reading.queue(self._open(), offset=offset, count=count)

    async def groups(self, *, now_ms: int | None = None) -> tuple[str, ...]:
        return reading.groups(self._open(), now_ms=self._now(now_ms))

    async def workers(self, *, now_ms: int | None = None) -> tuple[WorkerStatus, ...]:
        return reading.workers(self._open(), now_ms=self._now(now_ms))

    async def pauses(self) -> tuple[Pause, ...]:
        return reading.pauses(self._open())

    async def tiers_queued(self) -> Mapping[str, int]:
        return reading.tiers_queued(self._open())


class _Refusals(_Kept):
    async def count_refused(self, reason: str, *, now_ms: int | None = None) -> None:
        entering.count_refused(self._open(), reason, now_ms=self._now(now_ms))

    async def refused(self, *, now_ms: int | None = None) -> Mapping[tuple[int, str], int]:
        return entering.refused(self._open(), now_ms=self._now(now_ms))


class _Tickets(_Kept):
    async def keep_ticket(
        self, digest: str, text: str, *, user: str, most: int, ttl_ms: int, now_ms: int | None = None
    ) -> int | None:
        check_digest(digest)
        at_ms, kept = self._now(now_ms), self._store.tickets
        for old in [name for name, (_, end_ms) in kept.items() if end_ms <= at_ms]:
            del kept[old]
        given = {name: end_ms for name, end_ms in self._store.given[user].items() if end_ms > at_ms}
        if digest not in given and len(given) >= most:
            return min(given.values()) - at_ms
        self._store.given[user] = given | {digest: at_ms + ttl_ms}
        kept[digest] = (text, at_ms + ttl_ms)
        return None

    async def take_ticket(self, digest: str) -> str | None:
        check_digest(digest)
        text, end_ms = self._store.tickets.pop(digest, (None, 0))
        return text if self._clock() < end_ms else None


class _Board(_Kept):
    async def publish(self, name: str, text: str) -> None:
        self._open().published[name] = text

    async def published(self, name: str) -> str | None:
        return self._open().published.get(name)


class MemoryView(_Life, _Entrance, _Starting, _Leases, _Readings, _Refusals, _Tickets, _Board):
    """The view for readers of the log `epoch`."""
