"""What a stream shows of a job's events, and where it begins. Pure.

no id, or an empty one        snapshot, then what follows it
an id of this log             what follows that id: nothing twice, nothing left out
an id of another log          resync, snapshot, then what follows it
one older than what is kept   the same
the id of a finished job's
last status                   nothing at all: the client has everything, but for lines if it says that it has not
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from headgate_contracts import TABLE, Event, Job, UnknownEvent
from headgate_contracts.events import JobAwaitingConfirmation, JobConfirmationReminder, JobData
from headgate_contracts.questions import whether_to_continue
from headgate_contracts.shown import shown_event

EVENT_ID: Final = re.compile(r"([0-9A-Z]{26})-([0-9]{1,15})")
CHANGES_STATUS: Final = frozenset(row.event for row in TABLE if row.then is not None)


@dataclass(frozen=True, slots=True)
class EventId:
    """An SSE id: which log, and the sequence in it."""

    epoch: str
    seq: int

    def __str__(self) -> str:
        return f"{self.epoch}-{self.seq}"


@dataclass(frozen=True, slots=True)
class Known:
    """What a client of one job says that it knows: the last id that it got, and where the last line stood. `replay`: it
    knows nothing, and wants to be told everything as it came."""

    last_event_id: str | None = None
    line: int | None = None
    replay: bool = False


@dataclass(frozen=True, slots=True)
class Begin:
    """From a snapshot on. `resync`: the client's id is of another log."""

    resync: bool = False


@dataclass(frozen=True, slots=True)
class Resume:
    """From the record after this sequence on."""

    after: int


@dataclass(frozen=True, slots=True)
class Complete:
    """The client has seen everything there will ever be."""


@dataclass(frozen=True, slots=True)
class NoJob:
    """There is none of this name that the asker may see."""

    job_id: str


Opening = Begin | Resume | Complete


def opening(last_event_id: str | None, *, epoch: str, job: Job, last_status_seq: int) -> Opening:
    """Where a stream of this job begins for a client that has seen this id."""
    if not last_event_id:
        return Begin()
    found = EVENT_ID.fullmatch(last_event_id)
    if found is None or found[1] != epoch:
        return Begin(resync=True)
    seen = int(found[2])
    if seen > job.seq:  # never given out: the client has it from elsewhere
        return Begin(resync=True)
    return Complete() if job.status.is_end and seen >= last_status_seq else Resume(seen)


def last_seen(last_event_id: str | None, *, epoch: str) -> int | None:
    """The sequence that a client of many jobs has seen last; null where it has seen nothing of this log."""
    found = EVENT_ID.fullmatch(last_event_id or "")
    return int(found[2]) if found is not None and found[1] == epoch else None


def shows_status(event: object) -> bool:
    """Whether the event is a status of its own on the stream."""
    match event:
        case Event(data=JobData() as data):
            return data.EVENT in CHANGES_STATUS
        case UnknownEvent(job_id=str()):
            return True
        case _:
            return False


def is_last(event: object) -> bool:
    """Whether nothing can follow it."""
    match event:
        case Event(data=JobData(status=status)):
            return status.is_end
        case _:
            return False


def status_data(event: object) -> dict[str, Any]:
    """An event as the stream shows it: its data, and which event it was."""
    match event:
        case Event(data=JobData() as data):
            return {"at": event.time, **shown_event(data)}
        case UnknownEvent():
            return {"event": event.type, "at": event.time, "job_id": event.job_id, "status": event.status}
        case _:
            raise TypeError(f"{type(event).__name__} is no event of a job")


def question(event: object) -> dict[str, Any] | None:
    """What the user is asked by this event, and by when it must be answered."""
    match event:
        case Event(data=JobAwaitingConfirmation() as data):
            asked = data.question or whether_to_continue(data.attempt, batch=data.next_batch)
            return {
                "job_id": data.job_id,
                **asked.model_dump(mode="json", exclude={"key"}),
                "iterations_used": data.iterations_used,
                "next_batch": data.next_batch,
                "expires_at": data.expires_at,
            }
        case Event(data=JobConfirmationReminder() as data):
            return {"job_id": data.job_id, "hours_left": data.hours_left}
        case _:
            return None
