"""How a stage ended: the words in which its process says it, and by which the worker decides.

A failure has three types on its way: `StageFailed` or another exception is what the author raises, `Failed` what the
process makes of it and the worker decides on, `JobError` what the log, the folded job and the API say. Owns the one in
the middle, with its bounds, which are checked where a process says it. Texts are fit for the job's user.
"""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, StringConstraints

from headgate_contracts.questions import Question
from headgate_contracts.vocabulary import Fault
from headgate_pipeline.rules import PauseSeconds

Summary = Annotated[str, StringConstraints(max_length=500)]
Detail = Annotated[str, StringConstraints(max_length=4096)]
_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Finished:
    """The stage did its work; of the last one: its checks passed."""

    __pydantic_config__: ClassVar = _STRICT
    kind: Literal["finished"] = field(default="finished", kw_only=True)


@dataclass(frozen=True, slots=True)
class ChecksFailed:
    """The stage ran as it should, and its checks found the work wanting."""

    __pydantic_config__: ClassVar = _STRICT
    summary: Summary
    detail: Detail = ""
    kind: Literal["checks_failed"] = field(default="checks_failed", kw_only=True)


@dataclass(frozen=True, slots=True)
class Failed:
    """The stage cannot go on. With `again_after_s` it may go well another time, which is not to come before so long."""

    __pydantic_config__: ClassVar = _STRICT
    summary: Summary
    detail: Detail = ""
    fault: Fault = Fault.JOB
    again_after_s: PauseSeconds | None = None
    kind: Literal["failed"] = field(default="failed", kw_only=True)


@dataclass(frozen=True, slots=True)
class GaveOut:
    """The machine did, under a job that did nothing wrong: no memory, no room on the disk. The attempt is left to its
    lease, and so given back as one whose worker was lost: as often as policy says, and then failed with a refund."""

    __pydantic_config__: ClassVar = _STRICT
    why: Summary
    kind: Literal["gave_out"] = field(default="gave_out", kw_only=True)


@dataclass(frozen=True, slots=True)
class LeftOpen:
    """The process says: the stage ended with its last question, which has no answer yet."""

    __pydantic_config__: ClassVar = _STRICT
    kind: Literal["asks"] = field(default="asks", kw_only=True)


@dataclass(frozen=True, slots=True)
class StageAsks:
    """The stage wants to know something of its job's user, and ends here until it is answered."""

    question: Question


SaidOutcome = Annotated[Finished | ChecksFailed | Failed | GaveOut | LeftOpen, Field(discriminator="kind")]
StageOutcome = Finished | ChecksFailed | Failed | GaveOut | StageAsks


def name_of(outcome: StageOutcome) -> str:
    """As metrics and spans call it."""
    match outcome:
        case StageAsks():
            return "asked"
        case Failed(again_after_s=float() | int()):
            return "passing"
        case _:
            return outcome.kind


def wrong_in(outcome: StageOutcome) -> str | None:
    """What the span of the stage says went wrong: what its user is told."""
    match outcome:
        case Failed(summary=summary) | ChecksFailed(summary=summary):
            return summary
        case GaveOut():
            return "the worker's machine gave out"
        case Finished() | StageAsks():
            return None
