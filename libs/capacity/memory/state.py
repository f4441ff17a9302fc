"""Everything the view in memory holds, and what each decision asks first: how many slots are held, and there.

Owns the shape. A field is one kind of key of the Redis store, under the same name where it has one, or for plans alone.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from libs.capacity.answers import Deferred, Grant, Reserved
from libs.capacity.memory.sorted_set import SortedSet
from libs.capacity.projection import is_inner
from libs.capacity.rows import Pause, Row
from libs.capacity.scopes import owners_of, taking_aside

GATE = "shut:"  # before a group that blocks by being shut alone, as no slot of it is wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """What the queue has to know of one of its entries, reserved or folded."""

    job: str
    user: str
    project: str
    workflow: str | None
    pool: str
    class_number: int
    boost: int
    score: int
    names: tuple[str, ...]  # under which its membership is kept: its scopes, and of a row also its groups and gates

    @property
    def owners(self) -> tuple[str, ...]:
        return owners_of(self.user, self.project, self.workflow)


@dataclass(slots=True)
class Reservation:
    """What is held under a job's id until its event is folded. `spot` is null for a day alone."""

    answer: Reserved | Deferred
    spot: Spot | None
    quota: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class CountedInput:
    """A job's input, or room that is held for it. `digest` is that of all that its submission asked room for."""

    user: str
    size: int
    until_ms: int | None  # null: as long as its job is unfinished
    digest: str | None = None  # null: in the log
    ended: bool = False


@dataclass(frozen=True, slots=True)
class HeldClaim:
    """Slots of a job that is about to be dispatched, under the name by which it will hold them."""

    holder: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SlotLease:
    """Slots held by somebody who is no running job, or inside one (`owner`)."""

    groups: tuple[str, ...]
    owner: str | None
    ttl_ms: int
    since_ms: int
    user: str | None = None  # outside any job


@dataclass(slots=True)
class Waiter:
    """Somebody who holds nothing and wants all of `groups`. It stands in line for `group`."""

    groups: tuple[str, ...]
    owner: str | None
    ttl_ms: int
    reply: str
    ticket: int
    group: str
    user: str | None = None


@dataclass(frozen=True, slots=True)
class Worker:
    pool: str
    slots: int
    draining: bool
    heard_ms: int
    holders: tuple[str, ...]  # that it named


@dataclass(slots=True)
class State:
    """One generation of the view."""

    epoch: str
    generation: str
    applied: int
    arrivals: int
    is_open: bool = False

    rows: dict[str, Row] = field(default_factory=dict[str, Row])
    jobs: defaultdict[str, SortedSet] = field(default_factory=lambda: defaultdict(SortedSet))  # of a user, by age
    spots: dict[str, Spot] = field(default_factory=dict[str, Spot])
    reservations: dict[str, Reservation] = field(default_factory=dict[str, Reservation])
    lapses: SortedSet = field(default_factory=SortedSet)
    passed: Counter[str] = field(default_factory=Counter[str])  # counted by the log
    passing: Counter[str] = field(default_factory=Counter[str])  # how many reservations name a job now

    queue: SortedSet = field(default_factory=SortedSet)
    line: defaultdict[str, SortedSet] = field(default_factory=lambda: defaultdict(SortedSet))
    members: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    room: SortedSet = field(default_factory=SortedSet)
    quota: defaultdict[tuple[str, int], set[str]] = field(default_factory=lambda: defaultdict(set))
    used: Counter[tuple[str, int]] = field(
        default_factory=Counter[tuple[str, int]]
    )  # user, day → of jobs that are gone
    timers: SortedSet = field(default_factory=SortedSet)
    inputs: dict[str, CountedInput] = field(
        default_factory=dict[str, CountedInput]
    )  # of jobs; user:hour, of those gone
    stored: Counter[str] = field(default_factory=Counter[str])  # user → bytes of their inputs
    input_ends: SortedSet = field(default_factory=SortedSet)
    spent: SortedSet = field(default_factory=SortedSet)  # user → up to when their time is spent

    # What only a plan looks at: the store keeps none of it.
    eligible: defaultdict[str, SortedSet] = field(default_factory=lambda: defaultdict(SortedSet))
    parked: defaultdict[str, SortedSet] = field(default_factory=lambda: defaultdict(SortedSet))
    parked_in: dict[str, str] = field(default_factory=dict[str, str])
    buckets: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    debts: dict[str, int] = field(default_factory=dict[str, int])

    held: defaultdict[str, SortedSet] = field(default_factory=lambda: defaultdict(SortedSet))
    running: SortedSet = field(default_factory=SortedSet)  # the key `leases`
    claims: dict[str, HeldClaim] = field(default_factory=dict[str, HeldClaim])  # by job
    claim_lapses: SortedSet = field(default_factory=SortedSet)  # the key `claims`
    leases: dict[str, SlotLease] = field(default_factory=dict[str, SlotLease])
    ends: SortedSet = field(default_factory=SortedSet)
    inner: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    freed: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    given_up: SortedSet = field(default_factory=SortedSet)  # lease → until when no stage holds it again
    waiters: defaultdict[str, SortedSet] = field(default_factory=lambda: defaultdict(SortedSet))
    waiting: dict[str, Waiter] = field(default_factory=dict[str, Waiter])
    deadlines: SortedSet = field(default_factory=SortedSet)
    asking: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    tickets: int = 0
    untold: list[Grant] = field(default_factory=list[Grant])

    limits: dict[str, int] = field(default_factory=dict[str, int])
    defaults: dict[str, int] = field(default_factory=dict[str, int])
    tiers: dict[str, str] = field(default_factory=dict[str, str])
    paused: dict[str, Pause] = field(default_factory=dict[str, Pause])
    workers: dict[str, Worker] = field(default_factory=dict[str, Worker])
    expiries: SortedSet = field(default_factory=SortedSet)  # the key `workers`

    shut: SortedSet = field(default_factory=SortedSet)  # group → until when
    refused: Counter[tuple[int, str]] = field(default_factory=Counter[tuple[int, str]])  # by start of the hour, reason
    published: dict[str, str] = field(default_factory=dict[str, str])

    quarantine_until_ms: int = 0  # 0: none
    unheard: set[str] = field(default_factory=set[str])


def times_passed(state: State, job: str) -> int:
    return state.passed[job] + state.passing[job]


def is_aside(state: State, spot: Spot) -> bool:
    """Whether a pause keeps it out of its pool's line."""
    return not state.paused.keys().isdisjoint(taking_aside(spot.class_number, spot.owners))


# ── how many ────────────────────────────────────────────


def active(state: State, group: str, now_ms: int) -> int:
    held = state.held.get(group)
    return held.count_above(now_ms) if held else 0


def slots_of(state: State, pool: str, now_ms: int) -> int:
    """Slots of the pool's live workers, whether the silent ones were swept or not."""
    return sum(
        worker.slots
        for name, worker in state.workers.items()
        if worker.pool == pool and not worker.draining and (state.expiries.score(name) or 0) > now_ms
    )


def live_pools(state: State, now_ms: int) -> set[str]:
    """The pools that have a worker which may be given work."""
    return {
        worker.pool
        for name, worker in state.workers.items()
        if not worker.draining and (state.expiries.score(name) or 0) > now_ms
    }


def shut_until(state: State, group: str, now_ms: int) -> int | None:
    """No job and no lease may take a slot of this group before, as a worker said."""
    until_ms = int(state.shut.score(group) or 0)
    return until_ms if until_ms > now_ms else None


def is_quarantined(state: State, group: str, now_ms: int) -> bool:
    """Whether no job and no lease may take a slot of this group until the running jobs have said what they hold of
    it."""
    return now_ms < state.quarantine_until_ms and bool(state.unheard) and is_inner(group)
