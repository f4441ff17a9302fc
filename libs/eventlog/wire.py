"""What the far end of a log does, told honestly: it may answer, contradict, decline, stay silent or be out of reach.

Owns the seam between the one way of appending (`settling`) and the two far ends (`jetstream`, `memory`).
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

from libs.eventlog.errors import LogError
from libs.eventlog.expectation import Message
from libs.eventlog.values import Fill, Mark, Page, Record, Wanted


@dataclass(frozen=True, slots=True)
class Accepted:
    """The messages are stored, now or by an earlier copy; the last of them stands here."""

    last_seq: int


@dataclass(frozen=True, slots=True)
class Contradicted:
    """This copy was not stored: an expectation does not hold, or an id is known. Perhaps because of an earlier copy."""

    reason: str


@dataclass(frozen=True, slots=True)
class Declined:
    """This copy was not stored, for a reason that has nothing to do with other writers."""

    error: LogError

    @property
    def reason(self) -> str:
        return str(self.error)


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The messages may be stored, be under way, or be lost."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unsent:
    """This copy is stored nowhere and never will be; another may be tried."""

    reason: str


WireAnswer = Accepted | Contradicted | Declined | Unanswered | Unsent


class Wire(Protocol):
    """One message is published, several are one atomic batch; no answer `within_s` is `Unanswered`. Reads come from the
    leader or raise `LogUnavailable`."""

    async def send(self, messages: Sequence[Message], *, within_s: float) -> WireAnswer: ...
    async def next(self, subject_filter: str, *, after: int) -> Record | None: ...
    async def last(self, subject_filter: str) -> Record | None: ...
    async def mark(self) -> Mark: ...
    async def fill(self) -> Fill: ...
    def follow(self, *, after: int, wanted: Wanted | None) -> AsyncGenerator[Page, None]: ...
