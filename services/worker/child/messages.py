"""What the worker and the process of an attempt say to each other: one JSON object a line, over a socket of their own.

Owns the words and their bounds. The process runs code that is not trusted, so whatever it says is read as a
stranger's: unknown words, unknown fields, or a line above the bound end the attempt. It names slots by their last part
and leases by a number; what they are called outside is the worker's to say.
"""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, field_validator

from headgate_contracts.questions import MOST_SCHEMA_BYTES, Choices
from headgate_contracts.tokens import Token
from headgate_contracts.vocabulary import Fault
from headgate_pipeline.context import CallOutcome
from services.worker.outcomes import Failed, SaidOutcome
from services.worker.sandbox.command import CommandBounds, EndedBy, Level

MAX_LINE_CHARS: Final = 8192  # of one line of a job's log, as the contract has it
MAX_MESSAGE_BYTES: Final = 128 * 1024  # a log line at its bound, each character escaped, fits
MAX_FAILURE_CHARS: Final = 16_000  # what failed checks say to the next iteration; the same bound with escapes
MAX_WAIT_MS: Final = 7 * 86_400_000
MOST_TOKENS: Final = 10**9
MAX_SHUT_MS: Final = 86_400_000

LeaseNumber = Annotated[int, Field(ge=1, le=10**9)]
TokenCount = Annotated[int, Field(ge=0, le=MOST_TOKENS)]
ToolName = Literal["python", "pytest", "ruff", "uv", "other"]
WaitMs = Annotated[int, Field(ge=0, le=MAX_WAIT_MS)]


class ChildMessage(BaseModel):
    """A word to or from a process without a credential."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64")

    def encoded(self) -> bytes:
        return self.model_dump_json().encode() + b"\n"


class ProviderEndpoint(ChildMessage):
    """Where a provider is called, with which model, and as whom."""

    url: str
    model: str
    key: Annotated[str | None, Field(repr=False)] = None


class Begin(ChildMessage):
    """To the process, before all else: what the attempt is about.

    `folder` is its own, with the workspace and what is kept beside it. `store` is the file it packs all that into where
    that is large, in its home.
    Commands have their other files in `area`, and are contained as `level` says, within `bounds`. `providers` have
    keys: this is the one message with secrets in it.
    """

    kind: Literal["begin"] = "begin"
    job_id: str
    project_id: str
    pipeline: str
    input: str
    folder: str
    store: str
    store_bytes: int
    area: str
    level: Level
    bounds: CommandBounds
    command_s: float
    providers: dict[str, ProviderEndpoint] = {}


class Restore(ChildMessage):
    """To the process, before its first stage: begin with what is in its `store`."""

    kind: Literal["restore"] = "restore"


class RunStage(ChildMessage):
    """To the process: run this stage, which has failed so often before, then say how it ended."""

    kind: Literal["run"] = "run"
    stage: str
    iteration: int
    tries: int = 0


class Pack(ChildMessage):
    """To the process: say what the result is, or put it into this file where it is large."""

    kind: Literal["pack"] = "pack"
    target: str
    max_bytes: int


class Leave(ChildMessage):
    """To the process, after the last stage of an attempt: let go of it, and wait for the next one's `Begin`."""

    kind: Literal["leave"] = "leave"


class LeaseNotice(ChildMessage):
    """To the process: how a lease it asked for stands."""

    kind: Literal["lease"] = "lease"
    lease: LeaseNumber
    state: Literal["granted", "full", "lost"]


class StoreTaken(ChildMessage):
    """To the process: what it has packed is stored, and its file is free again."""

    kind: Literal["stored"] = "stored"


class OutputLine(ChildMessage):
    """From the process: a line for the job's log."""

    kind: Literal["line"] = "line"
    line: Annotated[str, StringConstraints(max_length=MAX_LINE_CHARS)]


class Acquire(ChildMessage):
    """From the process: a slot of each of these, all or none. Without `wait_ms` it waits as long as it takes.

    With `stage_limit` also one of the stage that runs, which at most so many jobs run at once.
    """

    kind: Literal["acquire"] = "acquire"
    lease: LeaseNumber
    providers: Annotated[tuple[Token, ...], Field(max_length=4)] = ()
    groups: Annotated[tuple[Token, ...], Field(max_length=8)] = ()
    stage_limit: Annotated[int, Field(ge=1, le=10**6)] | None = None
    wait_ms: WaitMs | None = None
    ttl_ms: Annotated[WaitMs, Field(ge=1)] | None = None


class GiveUp(ChildMessage):
    """From the process: the slots are free again, or no longer waited for."""

    kind: Literal["give_up"] = "give_up"
    lease: LeaseNumber


class Shut(ChildMessage):
    """From the process: the provider, of which it holds a slot by this lease, wants no call for so long. With that the
    lease is given up."""

    kind: Literal["shut"] = "shut"
    lease: LeaseNumber
    provider: Token
    for_ms: Annotated[int, Field(ge=0, le=MAX_SHUT_MS)] | None = None


class Extend(ChildMessage):
    """From the process: let what it holds last a whole lease from now."""

    kind: Literal["extend"] = "extend"


class StoreReady(ChildMessage):
    """From the process: all that is to outlive the attempt; null where it is in the `store`. It waits for `Stored`."""

    kind: Literal["kept"] = "kept"
    content: bytes | None = None


class Restored(ChildMessage):
    """From the process: it begins with what was in its `store`."""

    kind: Literal["restored"] = "restored"


class ModelCalled(ChildMessage):
    """From the process: a call to a provider is over. Of its words nothing is told, only how many tokens they were."""

    kind: Literal["called"] = "called"
    provider: Token
    model: Annotated[str, StringConstraints(max_length=200)]
    took_ms: WaitMs
    outcome: CallOutcome
    input_tokens: TokenCount | None = None
    output_tokens: TokenCount | None = None
    cached_tokens: TokenCount | None = None


class CommandEnded(ChildMessage):
    """From the process: a command in its sandbox is over. `program` is a name of few, not what it was called with."""

    kind: Literal["ran"] = "ran"
    program: ToolName
    took_ms: WaitMs
    network: bool
    ended_by: EndedBy
    exit_code: Annotated[int, Field(ge=-(2**31), lt=2**31)] | None = None


class Ask(ChildMessage):
    """From the process: what its stage wants to know, once under each key. `answer_schema` is JSON, or empty."""

    kind: Literal["ask"] = "ask"
    number: LeaseNumber
    key: Token
    text: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    choices: Choices = ()
    answer_schema: Annotated[str, StringConstraints(max_length=MOST_SCHEMA_BYTES)] = ""


class AnswerNotice(ChildMessage):
    """To the process: the answer as JSON; `open`, where its user is to be asked and the stage ends here; or why nobody
    can be asked that."""

    kind: Literal["answer"] = "answer"
    number: LeaseNumber
    state: Literal["answered", "open", "wrong"]
    words: str = ""


class Progressed(ChildMessage):
    """From the process: how far its stage is."""

    kind: Literal["progress"] = "progress"
    fraction: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    message: Annotated[str, StringConstraints(max_length=200)] = ""


class StageEnded(ChildMessage):
    """From the process: how the stage ended. A failure is its job's fault or the system's: limits and deadlines are the
    worker's to judge."""

    kind: Literal["ended"] = "ended"
    outcome: SaidOutcome

    @field_validator("outcome")
    @classmethod
    def _is_its_own(cls, outcome: SaidOutcome) -> SaidOutcome:
        if isinstance(outcome, Failed) and outcome.fault not in (Fault.JOB, Fault.SYSTEM):
            raise ValueError(f"a process cannot say that it failed by a {outcome.fault}")
        return outcome


class Packed(ChildMessage):
    """From the process: the result; its size, where it is in the file; or null, where there is none."""

    kind: Literal["packed"] = "packed"
    result: bytes | Annotated[int, Field(ge=0)] | None = None


class Left(ChildMessage):
    """From the process: nothing of the attempt is left in it, and it says nothing more of that."""

    kind: Literal["left"] = "left"


ChildOrder = Begin | Restore | RunStage | Pack | Leave
ChildAnswer = StageEnded | Packed | Restored | Left
ToChild = ChildOrder | LeaseNotice | StoreTaken | AnswerNotice
_InStage = OutputLine | Acquire | GiveUp | Shut | Extend | StoreReady | ModelCalled | CommandEnded | Ask | Progressed
FromChild = _InStage | ChildAnswer

_TO_CHILD: Final = TypeAdapter[ToChild](Annotated[ToChild, Field(discriminator="kind")])
_FROM_CHILD: Final = TypeAdapter[FromChild](Annotated[FromChild, Field(discriminator="kind")])


def read_by_child(line: bytes) -> ToChild:
    return _TO_CHILD.validate_json(line)


def read_by_parent(line: bytes) -> FromChild:
    """Raises pydantic's ValidationError where it is none of the words."""
    return _FROM_CHILD.validate_json(line)


def sayable(text: str) -> str:
    """The text with a mark for what is none: names of files may be any bytes."""
    return text.encode(errors="replace").decode()


def cut(line: str, *, max_chars: int = MAX_LINE_CHARS) -> str:
    """The line, or as much of it as is allowed with a mark that says how much is missing."""
    if len(line) <= max_chars:
        return line
    mark = f" … [cut: the line has {len(line)} characters]"
    return line[: max_chars - len(mark)] + mark
