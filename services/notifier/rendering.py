"""What is said on a stream about each thing that happens, as bytes. Pure: made once, sent to all who listen."""

from collections.abc import Iterable
from typing import Final

from headgate_contracts import Event, UnknownEvent
from headgate_contracts.commands import JobProgress, PositionChanged
from headgate_contracts.events import JobData
from headgate_contracts.subjects import job_and_user
from libs.eventlog import Record
from libs.eventlog.lines import Line
from services.notifier.domain import EventId, is_last, question, shows_status, status_data
from services.notifier.fanout import Interest, OfJob, OfUser, StreamItem
from services.notifier.frames import frame

END: Final = frame("end", {})  # the stream is complete: nothing can follow


def item_of(record: Record, *, epoch: str) -> StreamItem | None:
    """A record of the log; null where it is nothing that a stream shows."""
    pieces: list[bytes] = []
    asked = question(record.event)
    # Before the id that says that it was seen: a client that is cut off between the two is asked again.
    if asked is not None:
        pieces.append(frame("confirmation", asked))
    if shows_status(record.event):
        pieces.append(frame("status", status_data(record.event), id=str(EventId(epoch, record.seq))))
    at_ms = round(record.at.timestamp() * 1000)
    return StreamItem(b"".join(pieces), record.seq, at_ms=at_ms, ends=is_last(record.event)) if pieces else None


def line_item(line: Line) -> StreamItem:
    """`seq` tells a client that comes back which one it had last."""
    said = {"stage": line.line.stage, "line": line.line.line, "ts": line.line.ts}
    return StreamItem(
        frame("log", {"job_id": line.line.job_id, "attempt": line.line.attempt, "seq": line.seq, **said}), line=line.seq
    )


def position_item(moved: PositionChanged) -> StreamItem:
    where = {"job_id": moved.job_id, "queue": moved.queue, "waiting_on": moved.waiting_on}
    return StreamItem(frame("position", where))


def progress_item(said: JobProgress) -> StreamItem:
    return StreamItem(frame("progress", said.model_dump(mode="json", exclude={"user_id"})))


def concerned(job_id: str, user_id: str) -> tuple[Interest, ...]:
    """The listeners of the job or of its user."""
    return (OfJob(job_id), OfUser(user_id))


def interests_of(subject: str) -> Iterable[Interest]:
    """Whom a record concerns, by where it stands: so much is known of it before anybody looks into it."""
    named = job_and_user(subject)
    return () if named is None else concerned(*named)


def interests_in(record: Record) -> Iterable[Interest]:
    """Whom a record concerns."""
    match record.event:
        case Event(data=JobData() as data):
            return concerned(data.job_id, data.user_id)
        case UnknownEvent(job_id=str(job_id), user_id=str(user_id)):
            return concerned(job_id, user_id)
        case UnknownEvent(job_id=str(job_id)):
            return (OfJob(job_id),)
        case _:
            return ()
