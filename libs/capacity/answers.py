"""What the view is asked, and what it answers. Outcomes are values; a lost view is an exception.

Days are days since 1970 in UTC, times are milliseconds since 1970 by the store's own clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from libs.capacity.rooms import Room
from libs.capacity.rows import Pause


@dataclass(frozen=True, slots=True)
class Grant:
    """A waiter got its slots: the caller sends this to `reply`."""

    lease: str
    owner: str | None
    reply: str
    expires_ms: int


# ── fold ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Folded:
    """Every change was applied."""

    applied: int
    grants: tuple[Grant, ...] = ()


@dataclass(frozen=True, slots=True)
class StaleView:
    """The view is not where the first refused change continues: it stands at `applied`."""

    applied: int
    grants: tuple[Grant, ...] = ()


# ── entering the queue ────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A place in the queue, a place of a day and one of the places under the cap, all or none."""

    job: str
    user: str
    project: str
    pool: str
    class_number: int
    boost: int
    workflow: str | None = None
    takes_day: bool = True
    first_day: int = 0  # not before this day
    run_at_ms: int | None = None  # of its own: before it a day is held, and a place in the queue is not
    per_day: int
    horizon_days: int
    cap: int
    user_share: int
    passed_bound: int
    lapse_ms: int
    cost_ms: int = 0  # what a new one costs of its user's time; they may be a minute ahead
    inputs: Mapping[str, int] = field(default_factory=dict[str, int])  # job → bytes, of each phase
    digest: str = ""  # of all of them: what is held under the job's id is held for this
    room: Room | None = None  # for the bytes; null: as many as they like
    dry: bool = False  # the same answer, and nothing is held or counted


@dataclass(frozen=True, slots=True)
class Reserved:
    """Held under the job's id until its first event is folded, or until the reservation lapses."""

    arrival: int
    place: int
    passed: tuple[str, ...]
    position: int
    day: int | None


@dataclass(frozen=True, slots=True)
class Deferred:
    """The first day on which the user has a free place; it is held likewise, and no place in the queue is."""

    day: int


@dataclass(frozen=True, slots=True)
class Busy:
    """The cap is reached, or somebody waits for room. `queued` counts towards it, `slots` are those of live workers."""

    queued: int
    slots: int


@dataclass(frozen=True, slots=True)
class TooFast:
    """The user has spent more than a minute ahead: the same would be taken after `retry_ms`."""

    retry_ms: int


@dataclass(frozen=True, slots=True)
class ShareFull:
    """The user holds their share of the queue."""

    held: int


@dataclass(frozen=True, slots=True)
class BytesFull:
    """The user holds `held` bytes of inputs and may hold `most`. The first of them goes after `retry_ms`, if known."""

    held: int
    most: int
    retry_ms: int | None


@dataclass(frozen=True, slots=True)
class Other:
    """The job's id is held for other inputs."""


@dataclass(frozen=True, slots=True)
class HorizonFull:
    """No day up to and with `last_day` has a free place."""

    last_day: int


@dataclass(frozen=True, slots=True)
class Known:
    """The job is in the log already."""

    status: str
    seq: int


ReserveAnswer = Reserved | Deferred | TooFast | BytesFull | Busy | ShareFull | HorizonFull | Known | Other


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A place in the queue for a job of the log that is scheduled or waiting. Its day was taken long ago."""

    job: str
    cap: int
    passed_bound: int
    lapse_ms: int


@dataclass(frozen=True, slots=True)
class NoRoom:
    """The queue is full: the job is first in line for a free place, and admission refuses meanwhile."""


@dataclass(frozen=True, slots=True)
class NotReleasable:
    """The job is neither scheduled nor waiting: there is nothing to release."""

    job: str


ReleaseAnswer = Reserved | NoRoom | NotReleasable


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferral:
    """A place of another day for a queued job that slipped past the daily cap. Its own day is none of them."""

    job: str
    user: str
    first_day: int  # not before this day, nor before today
    per_day: int
    horizon_days: int
    lapse_ms: int


@dataclass(frozen=True, slots=True)
class Between:
    """A number in the class of the neighbour, right before or right after it."""

    class_number: int
    place: int


@dataclass(frozen=True, slots=True)
class NoGap:
    """The two neighbours stand on consecutive numbers: the class has to be spaced first."""

    class_number: int


@dataclass(frozen=True, slots=True)
class NotQueued:
    """The job, or one of the two, is not in the queue."""

    job: str


BetweenAnswer = Between | NoGap | NotQueued
DeferAnswer = Deferred | HorizonFull | NotQueued


# ── planning ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Pick:
    """A job that may run now, seen at this sequence."""

    job: str
    seq: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Who may run now, in order, and the limits and slots that were counted with.

    `more`: the budget of one call ran out before the queue did; ask again.
    """

    applied: int
    picks: tuple[Pick, ...]
    limits: Mapping[str, int]
    slots: Mapping[str, int]
    more: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """Slots of all these groups, for a job that is about to be dispatched as `holder`, where no gate is shut."""

    holder: str
    groups: tuple[str, ...]
    gates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unclaimed:
    """A claim that was refused: how many slots of the group are held by `others`, of whom the log does not tell."""

    holder: str
    group: str
    others: int
    until_ms: int | None  # the group is shut until then, and so is its gate
    quarantined_until_ms: int | None = None  # no slot of any inner group is given until then; gates are open


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """Who holds all they claimed, and who holds nothing. Where the view is not where the caller's fold is: neither."""

    held: tuple[str, ...] = ()
    refused: tuple[Unclaimed, ...] = ()


@dataclass(frozen=True, slots=True)
class DueTimer:
    """A timer that has come due, or a running attempt's lease that has ended (kind `lease`)."""

    kind: str
    job: str
    due_ms: int
    attempt: int | None = None


# ── leases ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRequest:
    """Slots of several groups at once, for a stage (`owner` is its job's holder) or for somebody outside any job."""

    lease: str
    groups: tuple[str, ...]
    owner: str | None
    ttl_ms: int
    wait_ms: int  # 0: do not wait
    reply: str = ""
    user: str | None = None  # whose it is, outside any job
    held_until_ms: int | None = None  # it is to be extended, not to be taken: what its holder was told last, or 0
    most: int | None = None  # outside any job: so many their user may hold and wait for; null: any number


@dataclass(frozen=True, slots=True)
class Granted:
    """Held until `expires_ms`, unless a heartbeat extends it. `again`: it was before this question. `active`: how many
    slots of each group are taken, with these."""

    lease: str
    expires_ms: int
    again: bool = field(default=False, compare=False)
    active: tuple[tuple[str, int], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class WaitsInLine:
    """Holds nothing; the grant is sent to the request's `reply`. `behind` others wait for the same group. `again`: it
    waited before this question."""

    lease: str
    group: str
    behind: int
    until_ms: int | None = None  # the group is shut until then
    again: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Full:
    """The group has no slot, and the request did not want to wait."""

    group: str
    limit: int
    active: int
    until_ms: int | None = None  # the group is shut until then


@dataclass(frozen=True, slots=True)
class NotYours:
    """The attempt that asks is not the one that runs. Outside jobs: there is no such lease, or it is another's."""

    owner: str | None


@dataclass(frozen=True, slots=True)
class LeasesFull:
    """Outside jobs: the user holds or waits for `held` slots, as many as one user may."""

    held: int


LeaseAnswer = Granted | WaitsInLine | Full | NotYours | LeasesFull


@dataclass(frozen=True, slots=True)
class HeldLease:
    """A lease inside a job, as its worker names it in a heartbeat."""

    lease: str
    owner: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """A worker says that it lives, what it runs and what that holds."""

    worker: str
    pool: str
    slots: int
    draining: bool
    holders: tuple[str, ...]
    leases: tuple[HeldLease, ...]
    ttl_ms: int


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """What the view says back: whom to cancel, what is not the worker's any more, who got a slot."""

    kept: tuple[str, ...]
    cancel: tuple[str, ...]
    not_yours: tuple[str, ...]
    lost_leases: tuple[str, ...] = ()
    grants: tuple[Grant, ...] = ()


@dataclass(frozen=True, slots=True)
class Swept:
    """What time alone has changed."""

    grants: tuple[Grant, ...] = ()
    lapsed: tuple[str, ...] = ()
    gone_workers: tuple[str, ...] = ()


# ── reading ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SlotHolder:
    """Who holds a slot. `expires_ms` of a running job is its lease's end; the log alone frees its slot."""

    name: str
    job: str | None
    attempt: int | None
    user: str | None
    worker: str | None
    since_ms: int | None
    expires_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus:
    """One group, as it is now."""

    group: str
    limit: int
    active: int
    waiting: int  # for a lease
    blocked: int  # queued jobs that name it, while it has no slot for the first of them
    holders: tuple[SlotHolder, ...]
    shut_until_ms: int | None  # no job and no lease gets a slot before


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """A group without a free slot for this job, or one that is shut."""

    group: str
    limit: int
    active: int
    since_ms: int | None  # the last of its jobs has started then
    holders: tuple[SlotHolder, ...]
    until_ms: int | None  # shut until then, whatever is free


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Where a job stands that has not started, and all that keeps it from running now."""

    position: int | None  # null: scheduled or waiting, so not in the queue yet
    score: int | None
    passed: int
    room: bool  # it waits for a free place in the queue
    pauses: tuple[Pause, ...]
    obstacles: tuple[Obstacle, ...]
    pool_slots: int
    pool_active: int
    quarantined: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus:
    """A worker that was heard, and what it said of itself."""

    worker: str
    pool: str
    slots: int
    draining: bool
    heard_ms: int
    until_ms: int  # unless it is heard again
    holders: tuple[str, ...]  # those it has named that still run


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEntry:
    """One line of the queue, in order."""

    job: str
    score: int
    reserved: bool
    passed: int


@dataclass(frozen=True, slots=True)
class ViewMark:
    """Which life of the view this is, and how far it was folded."""

    epoch: str
    generation: str
    applied: int
    open: bool
