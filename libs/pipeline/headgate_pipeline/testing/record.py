"""What a run in a test tells: how it ended, and all that its stages did on the way there."""

from dataclasses import dataclass, field
from typing import Any, Literal

from headgate_pipeline.context import ModelCall

RunStatus = Literal["ready", "failed", "awaiting_confirmation"]


@dataclass(frozen=True, slots=True)
class SlotsAsked:
    """A stage asked for these slots, all at once. `stage_limit` is the stage's own `max_concurrent`."""

    stage: str
    providers: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    stage_limit: int | None = None


@dataclass(frozen=True, slots=True)
class ProviderPause:
    """A stage was told by a provider to come back later: in so many seconds, or in null as policy says."""

    stage: str
    provider: str
    for_s: float | None


@dataclass(frozen=True, slots=True)
class FailedTry:
    """A stage failed by something that passes, for this many times now, and was run again. The pause was not waited."""

    stage: str
    tries: int
    summary: str
    pause_s: float


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """What a stage sent to a provider of the test. `body` is JSON as it was read, or text."""

    provider: str
    path: str
    body: Any


@dataclass(slots=True)
class PipelineRun:
    """How it went. `stages` are those that ended well, in order, through all iterations and attempts."""

    status: RunStatus = "ready"
    stages: list[str] = field(default_factory=list[str])
    iterations: int = 1
    attempts: int = 1
    lines: list[str] = field(default_factory=list[str])
    tries: list[FailedTry] = field(default_factory=list[FailedTry])
    slots: list[SlotsAsked] = field(default_factory=list[SlotsAsked])
    pauses: list[ProviderPause] = field(default_factory=list[ProviderPause])
    commands: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    requests: list[ProviderRequest] = field(default_factory=list[ProviderRequest])
    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    progress: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    questions: list[str] = field(default_factory=list[str])
    result: dict[str, bytes] = field(default_factory=dict[str, bytes])
    summary: str = ""  # of a failure, as the job's user reads it
    detail: str = ""
    error: BaseException | None = None  # what a stage raised in the end; not from an isolated run
