"""What goes into the log and what comes out of it. Plain data: no decision is made here."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from headgate_contracts import Job
from headgate_contracts.envelope import AnyEvent, UnknownEvent

Wanted = Callable[[str], bool]  # asked of a record's subject: what is not wanted is not decoded

MAX_BATCH = 50  # entries; the scheduler's batches hold 21, a workflow's 20, and the server would take 1,000


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a log that somebody has seen."""

    epoch: str
    seq: int


@dataclass(frozen=True, slots=True)
class Fill:
    """How full a log is, in bytes. A full one takes no more. The limit is null where there is none."""

    held: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What stands in the log and is no event. Readers step over it and complain; none halts on it."""

    subject: str
    reason: str


@dataclass(frozen=True, slots=True)
class Record:
    """One message of the log, decoded. `at` is the stream's own time: one clock for all writers."""

    seq: int
    at: datetime
    event: AnyEvent | UnknownEvent | Unreadable
    traceparent: str | None = None

    @property
    def event_id(self) -> str | None:
        return None if isinstance(self.event, Unreadable) else self.event.id


@dataclass(frozen=True, slots=True)
class Page:
    """Records in order without a gap but for what was not wanted. A reader who wants all has caught up where the last
    one is `last_seq`, or none is there."""

    records: tuple[Record, ...]
    last_seq: int


@dataclass(frozen=True, slots=True)
class Entry:
    """An event and what it comes after: its job as the writer knows it, or the sequence its subjects must end at.

    0, and null for a job's event: nothing stands there yet. Null for an operator's act: no expectation at all, but
    for a reload of the policy, which follows the one before it. `over`: the sequence that the whole log must end at
    besides, for an entry that is appended alone.
    """

    event: AnyEvent
    after: Job | int | None
    traceparent: str | None = None
    over: int | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """An event of ours and where it stands. The server does not say when it stored it; `follow` and `read` do."""

    seq: int
    event: AnyEvent


@dataclass(frozen=True, slots=True)
class Appended:
    """What was stored, in order, with consecutive sequences."""

    records: tuple[Stored, ...]


@dataclass(frozen=True, slots=True)
class Conflicted:
    """Nothing was stored, and never will be: another event stands where this entry's wanted to.

    `winner` is null where the log ends before the sequence that the entry expects: the writer must read again.
    """

    entry: Entry
    winner: Record | None
