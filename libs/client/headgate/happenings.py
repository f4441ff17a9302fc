"""What a stream tells, typed. Each says in words what it is (`print` it), and has the stream's own `data` beside."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from headgate.sse import Frame
from headgate.values import Hindrance, JobState, Question, QueuePlace, StageTitle


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a stream tells. Of a kind that this client does not know yet it is this class itself. `id` is null
    for those that cannot be resumed from."""

    kind: str
    data: Any
    id: str | None = None

    @property
    def job_id(self) -> str | None:
        return self.data.get("job_id") if isinstance(self.data, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - of anything

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True, slots=True)
class Snapshot(Event):
    """How things stand: one job, or all of one's own that have not ended or ended lately."""

    jobs: tuple[JobState, ...] = ()

    @property
    def job(self) -> JobState:
        """The one that the stream is about."""
        return self.jobs[0]

    def __str__(self) -> str:
        return "\n".join(f"{job.status}: {job.message}" for job in self.jobs)


@dataclass(frozen=True, slots=True)
class StatusChanged(Event):
    """A job has another status, or is in another stage. `event` is what brought it there; what that says besides is in
    `data`. The first stage of an attempt says what all `stages` are; else that is empty."""

    status: str = ""
    event: str = ""
    stage: str | None = None
    stages: tuple[StageTitle, ...] = ()

    def __str__(self) -> str:
        why = self.data.get("summary") or self.data.get("reason") or ""
        where = self.stage or self.status
        return f"{where}: {why}" if why else where


@dataclass(frozen=True, slots=True)
class PositionChanged(Event):
    """A waiting job stands elsewhere, or waits for something else."""

    queue: QueuePlace | None = None
    waiting_on: tuple[Hindrance, ...] = ()

    def __str__(self) -> str:
        return self.queue.position_message if self.queue else "not in the queue"


@dataclass(frozen=True, slots=True)
class LogLine(Event):
    """The job said a line."""

    stage: str = ""
    line: str = ""

    def __str__(self) -> str:
        return f"{self.stage} │ {self.line}"


@dataclass(frozen=True, slots=True)
class Asked(Event):
    """The job asks its user something, or reminds of it: then `question` is null. `next_batch`: how many iterations a
    yes to "Continue?" grants."""

    next_batch: int | None = None
    iterations_used: int | None = None
    question: Question | None = None

    def __str__(self) -> str:
        if self.question is None:
            return "asks whether to continue" if self.next_batch else "still asks"
        reason = self.question.reason
        return f"asks: {self.question.text}" + (f" ({reason.summary})" if reason else "")


@dataclass(frozen=True, slots=True)
class Progressed(Event):
    """How far the job is, by its own account."""

    fraction: float = 0.0
    message: str = ""

    def __str__(self) -> str:
        return f"{self.fraction:.0%} {self.message}".rstrip()


@dataclass(frozen=True, slots=True)
class Resync(Event):
    """What was told before is of another log: a snapshot follows."""


@dataclass(frozen=True, slots=True)
class End(Event):
    """The stream is complete: nothing can follow."""


def typed(frame: Frame) -> Event:
    """By its name. What does not read as its name promises is an event of no known kind."""
    make = KINDS.get(frame.name)
    try:
        return make(frame) if make else Event(frame.name, frame.data, frame.id)
    except (ValidationError, AttributeError, KeyError, TypeError):
        return Event(frame.name, frame.data, frame.id)


def _snapshot(frame: Frame) -> Event:
    shown: list[Mapping[str, Any]] = frame.data.get("jobs", [frame.data])
    return Snapshot(frame.name, frame.data, frame.id, tuple(map(JobState.model_validate, shown)))


def _status(frame: Frame) -> Event:
    status, event, stage = frame.data["status"], frame.data["event"], frame.data.get("stage")
    stages = tuple(map(StageTitle.model_validate, frame.data.get("stages") or ()))
    return StatusChanged(frame.name, frame.data, frame.id, status, event, stage, stages)


def _position(frame: Frame) -> Event:
    queue = frame.data["queue"] and QueuePlace.model_validate(frame.data["queue"])
    waiting_on = tuple(map(Hindrance.model_validate, frame.data.get("waiting_on") or ()))
    return PositionChanged(frame.name, frame.data, frame.id, queue or None, waiting_on)


def _line(frame: Frame) -> Event:
    return LogLine(frame.name, frame.data, frame.id, frame.data["stage"], frame.data["line"])


def _asked(frame: Frame) -> Event:
    used = frame.data.get("iterations_used")
    question = Question.model_validate(frame.data) if "text" in frame.data else None
    return Asked(frame.name, frame.data, frame.id, frame.data.get("next_batch"), used, question)


def _progressed(frame: Frame) -> Event:
    return Progressed(frame.name, frame.data, frame.id, frame.data["fraction"], frame.data.get("message") or "")


KINDS: Final[Mapping[str, Callable[[Frame], Event]]] = {
    "snapshot": _snapshot,
    "status": _status,
    "position": _position,
    "log": _line,
    "confirmation": _asked,
    "progress": _progressed,
    "resync": lambda frame: Resync(frame.name, frame.data, frame.id),
    "end": lambda frame: End(frame.name, frame.data, frame.id),
}
