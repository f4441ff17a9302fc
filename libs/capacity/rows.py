"""What the view keeps of one job, and what one record of the log changes.

Owns the values that cross from the fold to the stores. Plain data: no decision is made here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

CLASS_STEP = 2**46  # a score is class × 2^46 + place: classes up to 127 stay exact in a double
ARRIVAL_STEP = 2**16  # arrivals are this far apart, so that boosted jobs and moves find a number between


def score_of(class_number: int, place: int) -> int:
    """Where a job stands among all: a lower number goes first."""
    return class_number * CLASS_STEP + place


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Everything the view knows of a job. Folding puts the new row in the place of the old one."""

    id: str
    status: str
    seq: int  # of its last event in the log
    first_seq: int  # of its first event
    attempt: int
    user: str
    project: str
    workflow: str | None
    pool: str
    tier: str
    class_number: int
    boost: int
    arrival: int | None  # null: has never been in the queue
    place: int | None  # null: is not in the queue now
    entered_ms: int | None
    groups: tuple[str, ...]  # every group it needs a slot of, `user:` and `project:` first; the pool is not among them
    gates: tuple[str, ...] = ()  # groups that must not be shut when it starts; it takes no slot of them
    limits: Mapping[str, int] = field(default_factory=dict[str, int])  # those its submission brings
    holder: str | None = None  # `<job>:<attempt>` while it holds its slots
    started_ms: int | None = None  # since when it holds them
    worker: str | None = None
    cancelling: bool = False
    quota_day: int | None = None  # days since 1970; null: takes no place of a day
    timers: Mapping[str, int] = field(default_factory=dict[str, int])  # kind → due ms
    input_bytes: int = 0  # what its input takes of the bucket; 0: nothing is known of it
    input_until_ms: int | None = None  # when its input goes; null: the job is unfinished
    job: str = ""  # the folded Job as JSON, for readers

    @property
    def score(self) -> int | None:
        return None if self.place is None else score_of(self.class_number, self.place)


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing in this scope is started."""

    scope: str
    by: str
    reason: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class Resume:
    """The scope may start again."""

    scope: str


@dataclass(frozen=True, slots=True)
class SetLimit:
    """The group has this many slots."""

    group: str
    limit: int


@dataclass(frozen=True, slots=True)
class UnsetLimit:
    """No operator and no job says any more how many slots the group has: policy does."""

    group: str


@dataclass(frozen=True, slots=True)
class FreeLease:
    """This lease inside a job or outside any is over. A job's own slot is freed by `given_back` alone."""

    group: str
    lease: str


OperatorOrder = Pause | Resume | SetLimit | UnsetLimit | FreeLease


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What the record `seq` of the log does to a view that was folded up to `prev`."""

    seq: int
    prev: int
    row: Row | None = None
    passed: tuple[str, ...] = ()  # the jobs that this one was placed ahead of, by boost
    passed_before: int = 0  # of a first row: how often the log says it was passed before its own first event
    unused: tuple[str, ...] = ()  # groups whose limit was brought, and which no job names any more
    order: OperatorOrder | None = None
    gone: tuple[str, ...] = ()  # jobs that ended a while ago: no reader need know them any more. They go first
    complaint: str | None = None  # why the record was stepped over


@dataclass(frozen=True, slots=True)
class Seed:
    """A job as a snapshot or a ledger holds it: its row, and how often it was passed."""

    row: Row
    passed: int


@dataclass(frozen=True, slots=True)
class StandingOrders:
    """What operators, submissions and policy have ordered, beside the jobs: part of every rebuild."""

    arrivals: int = 0
    tiers: Mapping[str, str] = field(default_factory=dict[str, str])
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    defaults: Mapping[str, int] = field(default_factory=dict[str, int])  # of policy: `user/<tier>`, `llm:ollama`
    pauses: tuple[Pause, ...] = ()
    used: Mapping[tuple[str, int], int] = field(
        default_factory=dict[tuple[str, int], int]
    )  # user, day → gone jobs' places
    leaving: Mapping[tuple[str, int], int] = field(
        default_factory=dict[tuple[str, int], int]
    )  # user, hour → their bytes
