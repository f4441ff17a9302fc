"""The life of a job: what its state is after an event, or why the event is none of its life.

`advance` is the only way a job changes. It accepts exactly `table.TABLE`, and of that nothing that contradicts the
job it is about (another owner, another attempt, a gap in the sequence, a stage run twice). A reader that follows the
log with `advance` holds the same job as every other. `step_over` takes an event of a newer version, and only what
every event says.

Refuses to know policy: how many iterations, how many lost workers, how long a question stays open.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from headgate_contracts.changes import changes_of
from headgate_contracts.envelope import Event, JobEvent, UnknownEvent
from headgate_contracts.errors import IllegalTransition
from headgate_contracts.events import (
    JobAwaitingConfirmation,
    JobData,
    JobDispatched,
    JobGivenBack,
    JobMoved,
    JobQueued,
    JobReprioritized,
    JobScheduled,
    JobStage,
    JobWaiting,
)
from headgate_contracts.job import Job
from headgate_contracts.table import NEW, TABLE, Row
from headgate_contracts.vocabulary import (
    ChangeReason,
    EventName,
    GivenBackReason,
    QuestionKind,
    QueuedWhy,
    Status,
    Writer,
)

__all__ = ["NEW", "TABLE", "Row", "advance", "fold", "step_over"]

_ROWS: Final[dict[tuple[EventName, Writer, Status | None], tuple[Row, ...]]] = {
    (event, writer, source): tuple(
        row for row in TABLE if (row.event, row.writer) == (event, writer) and source in row.sources
    )
    for event in EventName
    for writer in Writer
    for source in (NEW, *Status)
}


def advance(job: Job | None, event: JobEvent, *, seq: int = 0, at: datetime | None = None) -> Job:
    """The job after this event, or `IllegalTransition`.

    `seq` and `at` are the event's sequence and time in the log. The log's clock is one clock; writers' clocks are many.
    """
    data, at = event.data, at or event.time
    status = _status_after(job and job.status, event)
    if job is None:
        _check_chain(event, sequence=1, attempt=0)
        job = _born(data, at)
    else:
        attempt = job.attempt + 1 if isinstance(data, JobDispatched) else job.attempt
        _check_chain(event, sequence=job.sequence + 1, attempt=attempt)
        _check_same_job(job, data)
    return job.model_copy(
        update={
            **changes_of(job, data, at),
            "status": status,
            "attempt": data.attempt,
            "sequence": event.sequence,
            "first_seq": job.first_seq or seq,
            "seq": seq,
            "updated_at": at,
        }
    )


def fold(events: Iterable[JobEvent | UnknownEvent]) -> Job:
    """One job from all its events in order. What a newer writer added is stepped over, its status kept."""
    job: Job | None = None
    for event in events:
        job = advance(job, event) if isinstance(event, Event) else step_over(job, event)
    if job is None:
        raise IllegalTransition("event", "a job needs at least one event")
    return job


def step_over(job: Job | None, event: UnknownEvent, *, seq: int = 0, at: datetime | None = None) -> Job:
    """The job after an event that this reader does not know: only what every event says is taken from it. Where the
    status is what it does not know, the job keeps the one before."""
    if job is None:
        raise IllegalTransition("event", f"a job cannot begin with {event.type}, which this reader does not know")
    if event.job_id != job.id:
        raise IllegalTransition("data.job_id", f"the event is about {event.job_id!r}, the job is {job.id!r}")
    if event.sequence != job.sequence + 1:
        raise IllegalTransition("sequence", f"the job's next event is number {job.sequence + 1}, not {event.sequence}")
    if job.status.is_end and event.status is not job.status:
        raise IllegalTransition("data.status", f"the job is {job.status.value} for good, not {event.status}")
    update = {
        "status": event.status if isinstance(event.status, Status) else job.status,
        "attempt": job.attempt if event.attempt is None else event.attempt,
        "sequence": event.sequence,
        "seq": seq,
        "updated_at": at or event.time,
    }
    return job.model_copy(update=update)


def _status_after(source: Status | None, event: JobEvent) -> Status:
    data = event.data
    row = next((row for row in _ROWS[data.EVENT, event.writer, source] if _fits(row, data)), None)
    if row is None:
        raise IllegalTransition("event", _refusal(source, event))
    status = row.then or source
    if data.status is not status:
        raise IllegalTransition("data.status", f"{data.EVENT.value} makes the job {status}, not {data.status}")
    return data.status


def _fits(row: Row, data: JobData) -> bool:
    if isinstance(data, JobStage):
        return data.status is row.then
    return row.causes is None or _cause(data) in row.causes


def _cause(data: JobData) -> QueuedWhy | GivenBackReason | ChangeReason | QuestionKind | None:
    match data:
        case JobQueued():
            return data.why
        case JobGivenBack() | JobReprioritized() | JobMoved():
            return data.reason
        case JobAwaitingConfirmation(question=question):
            return QuestionKind.CONTINUE if question is None else question.kind
        case _:
            return None


def _refusal(source: Status | None, event: JobEvent) -> str:
    what = event.data.stage if isinstance(event.data, JobStage) else event.data.EVENT.value
    cause = _cause(event.data)
    because = f" ({cause.value})" if cause else ""
    state = "new" if source is None else source.value
    return f"{event.writer.value} cannot write {what}{because} about a job that is {state}"


def _check_chain(event: JobEvent, *, sequence: int, attempt: int) -> None:
    if event.sequence != sequence:
        raise IllegalTransition("sequence", f"the job's next event is number {sequence}, not {event.sequence}")
    if event.data.attempt != attempt:
        name = event.data.EVENT.value
        raise IllegalTransition("data.attempt", f"{name} belongs to attempt {attempt}, not {event.data.attempt}")


def _check_same_job(job: Job, data: JobData) -> None:
    if data.job_id != job.id:
        raise IllegalTransition("data.job_id", f"the event is about {data.job_id!r}, the job is {job.id!r}")
    if data.user_id != job.user_id:
        raise IllegalTransition("data.user_id", f"the job belongs to {job.user_id!r}, not {data.user_id!r}")
    if data.project_id != job.project_id:
        raise IllegalTransition("data.project_id", f"the job is in {job.project_id!r}, not {data.project_id!r}")
    if isinstance(data, JobQueued | JobScheduled | JobWaiting) and data.submission is not None:
        raise IllegalTransition("data.submission", "only the first event of a job carries its submission")


def _born(data: JobData, at: datetime) -> Job:
    if not isinstance(data, JobQueued | JobScheduled | JobWaiting) or data.submission is None:
        raise IllegalTransition("data.submission", "the first event of a job carries its submission")
    return Job(
        id=data.job_id,
        user_id=data.user_id,
        project_id=data.project_id,
        submission=data.submission,
        status=data.status,
        priority=data.submission.priority,
        finished_stages=data.submission.finished_stages,
        checkpoint=data.submission.checkpoint,
        sequence=0,
        created_at=at,
        updated_at=at,
    )
