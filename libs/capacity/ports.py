"""The view as others ask it, in the parts that have users of their own. `store.RedisView` and `memory.MemoryView` keep
all of it, and one conformance suite holds both.

Every method but `mark`, `begin`, `seed` and `open` raises `ViewLost` unless the view is open and of the epoch the
caller was made for. `now_ms` is for tests and for simulations; without it the store's own clock counts.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

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
from libs.capacity.rows import Change, Pause, Seed, StandingOrders


class ViewReadings(Protocol):
    """How all stands. Changes nothing."""

    async def mark(self) -> ViewMark | None: ...
    async def job(self, job: str) -> str | None: ...
    async def outlook(self, job: str, *, now_ms: int | None = None) -> Outlook | None: ...
    async def outlooks(self, jobs: Sequence[str], *, now_ms: int | None = None) -> tuple[Outlook | None, ...]: ...
    async def group(self, group: str, *, tier: str | None = None, now_ms: int | None = None) -> GroupStatus:
        """For a job of this tier; for nobody's, with the limit of the most generous tier where a tier decides."""
        ...

    async def jobs_of(
        self, user: str, *, before: int | None = None, count: int = 50
    ) -> tuple[tuple[str, int], ...]: ...
    async def day_used(self, user: str, day: int) -> int: ...
    async def stored(self, user: str = "") -> int:
        """Bytes of inputs that are kept, reserved ones too: of this user, or of all."""
        ...

    async def queue(self, *, offset: int = 0, count: int = 100) -> tuple[QueueEntry, ...]: ...
    async def groups(self, *, now_ms: int | None = None) -> tuple[str, ...]: ...
    async def workers(self, *, now_ms: int | None = None) -> tuple[WorkerStatus, ...]: ...
    async def pauses(self) -> tuple[Pause, ...]: ...
    async def tiers_queued(self) -> Mapping[str, int]: ...
    async def refused(self, *, now_ms: int | None = None) -> Mapping[tuple[int, str], int]:
        """Submissions that were refused, by hour and reason, of the last 24 hours."""
        ...

    async def published(self, name: str) -> str | None:
        """What the leader has worked out for all replicas to show: no fact, gone with its generation."""
        ...


class Tickets(Protocol):
    """Tickets for streams, beside every generation: also while the view is lost."""

    async def keep_ticket(
        self, digest: str, text: str, *, user: str, most: int, ttl_ms: int, now_ms: int | None = None
    ) -> int | None:
        """Null where it is kept; else after how many ms one more of this user is."""
        ...

    async def take_ticket(self, digest: str) -> str | None: ...


class View(ViewReadings, Tickets, Protocol):
    """What the log says, in the shape decisions need, and what is decided by it."""

    # ── how the view begins and follows the log ───────────────────────────────

    async def begin(self, epoch: str, *, generation: str, applied: int, standing: StandingOrders) -> None: ...
    async def seed(
        self, seeds: Sequence[Seed], *, generation: str, lease_ms: int, now_ms: int | None = None
    ) -> None: ...
    async def open(
        self,
        *,
        generation: str,
        quarantine_ms: int,
        leased: Sequence[str] = (),
        leased_ms: int = 0,
        now_ms: int | None = None,
    ) -> None:
        """`leased`: groups whose slots may be held outside jobs, nobody knows by whom: shut for `leased_ms`."""
        ...

    async def fold(
        self, changes: Sequence[Change], *, lease_ms: int, now_ms: int | None = None
    ) -> Folded | StaleView: ...
    async def configure(self, defaults: Mapping[str, int], *, now_ms: int | None = None) -> None: ...
    async def prolong(self, by_ms: int) -> None: ...

    # ── who enters the queue, and where they stand in it ──────────────────────

    async def reserve(self, request: Request, *, now_ms: int | None = None) -> ReserveAnswer: ...
    async def release(self, request: Release, *, now_ms: int | None = None) -> ReleaseAnswer: ...
    async def defer(self, deferral: Deferral, *, now_ms: int | None = None) -> DeferAnswer: ...
    async def between(self, job: str, *, before: str | None = None, after: str | None = None) -> BetweenAnswer: ...

    # ── what a start takes of that which leases want too, and what is due ─────

    async def claim(
        self,
        claims: Sequence[Claim],
        *,
        applied: int,
        lapse_ms: int,
        drop: Sequence[str] = (),
        now_ms: int | None = None,
    ) -> ClaimAnswer:
        """For a fold that stands at `applied`. `drop`: holders whose claims came to nothing."""
        ...

    async def due(self, limit: int, *, now_ms: int | None = None) -> tuple[DueTimer, ...]: ...

    # ── slots inside jobs and outside any, and the workers that hold them ─────

    async def acquire(self, request: LeaseRequest, *, now_ms: int | None = None) -> LeaseAnswer: ...
    async def shut(self, group: str, until_ms: int, *, now_ms: int | None = None) -> tuple[Grant, ...]: ...
    async def give_up(
        self, lease: str, *, user: str | None = None, wait_only: bool = False, now_ms: int | None = None
    ) -> tuple[Grant, ...]: ...
    async def beat(self, heartbeat: Heartbeat, *, now_ms: int | None = None) -> HeartbeatAnswer: ...
    async def sweep(self, *, now_ms: int | None = None) -> Swept: ...

    # ── what is told to all replicas ──────────────────────────────────────────

    async def count_refused(self, reason: str, *, now_ms: int | None = None) -> None: ...
    async def publish(self, name: str, text: str) -> None: ...
