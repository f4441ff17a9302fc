"""What the worker and the process of an attempt say to each other: one JSON object a line, over a socket of their own.

Owns the words and their bounds. The process runs code that nobody vouches for, so whatever it says is read as a
stranger's: unknown words, unknown fields, or a line above the bound end the attempt. It names slots by their last part
and leases by a number; what they are called outside is the worker's to say.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

from headgate_contracts import Stage
from headgate_contracts.tokens import Token
from headgate_contracts.vocabulary import Fault

MAX_LINE_CHARS: Final = 8192  # of one line of a job's log, as the contract has it
MAX_MESSAGE_BYTES: Final = 128 * 1024  # a log line at its bound, each character escaped, fits
MAX_WAIT_MS: Final = 7 * 86_400_000

LeaseNumber = Annotated[int, Field(ge=1, le=10**9)]
Milliseconds = Annotated[int, Field(ge=0, le=MAX_WAIT_MS)]


class Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def encoded(self) -> bytes:
        return self.model_dump_json().encode() + b"\n"


class Begin(Message):
    """To the process, once: what the attempt is about."""

    kind: Literal["begin"] = "begin"
    job_id: str
    project_id: str
    pipeline: str
    input: str
    workspace: str


class RunStage(Message):
    """To the process: run this stage, then say how it ended."""

    kind: Literal["run"] = "run"
    stage: Stage
    iteration: int


class Pack(Message):
    """To the process: put the result into this file, then say how large it is."""

    kind: Literal["pack"] = "pack"
    target: str
    max_bytes: int


class LeaseTold(Message):
    """To the process: how a lease it asked for stands."""

    kind: Literal["lease"] = "lease"
    lease: LeaseNumber
    state: Literal["granted", "full", "lost"]


class Line(Message):
    """From the process: a line for the job's log."""

    kind: Literal["line"] = "line"
    line: Annotated[str, StringConstraints(max_length=MAX_LINE_CHARS)]


class Acquire(Message):
    """From the process: a slot of each of these, all or none. Without `wait_ms` it waits as long as it takes."""

    kind: Literal["acquire"] = "acquire"
    lease: LeaseNumber
    providers: Annotated[tuple[Token, ...], Field(max_length=4)] = ()
    groups: Annotated[tuple[Token, ...], Field(max_length=8)] = ()
    wait_ms: Milliseconds | None = None
    ttl_ms: Annotated[Milliseconds, Field(ge=1)] | None = None


class GiveUp(Message):
    """From the process: the slots are free again, or no longer waited for."""

    kind: Literal["give_up"] = "give_up"
    lease: LeaseNumber


class Extend(Message):
    """From the process: let what it holds last a whole lease from now."""

    kind: Literal["extend"] = "extend"


class Ended(Message):
    """From the process: how the stage ended."""

    kind: Literal["ended"] = "ended"
    outcome: Literal["finished", "checks_failed", "failed"]
    summary: Annotated[str, StringConstraints(max_length=500)] = ""
    detail: Annotated[str, StringConstraints(max_length=4096)] = ""
    fault: Literal[Fault.JOB, Fault.SYSTEM] = Fault.JOB


class Packed(Message):
    """From the process: the result is in the file, or there is none."""

    kind: Literal["packed"] = "packed"
    size: Annotated[int, Field(ge=0)] | None = None


ToChild = Begin | RunStage | Pack | LeaseTold
FromChild = Line | Acquire | GiveUp | Extend | Ended | Packed

_TO_CHILD: Final = TypeAdapter[ToChild](Annotated[ToChild, Field(discriminator="kind")])
_FROM_CHILD: Final = TypeAdapter[FromChild](Annotated[FromChild, Field(discriminator="kind")])


def read_by_child(line: bytes) -> ToChild:
    return _TO_CHILD.validate_json(line)


def read_by_parent(line: bytes) -> FromChild:
    """Raises pydantic's ValidationError where it is none of the words."""
    return _FROM_CHILD.validate_json(line)


def cut(line: str, *, max_chars: int = MAX_LINE_CHARS) -> str:
    """The line, or as much of it as is allowed with a mark that says how much is missing."""
    if len(line) <= max_chars:
        return line
    mark = f" … [cut: the line has {len(line)} characters]"
    return line[: max_chars - len(mark)] + mark
