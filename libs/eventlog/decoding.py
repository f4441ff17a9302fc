"""From a stored message to a record, and from a job's records to the job. Owns both shapes in which the server hands
messages out.

A message that is no event, or does not belong where it stands, becomes `Unreadable`: one bad message halts no reader. A
job is not made of such records: a reader that must not halt steps over them.
"""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from headgate_contracts import (
    ContractError,
    Event,
    IllegalTransition,
    Job,
    JobEvent,
    UnknownEvent,
    advance,
    parse_event,
    step_over,
)
from headgate_contracts.envelope import AnyEvent
from headgate_contracts.subjects import job_and_user
from libs.eventlog.expectation import TRACEPARENT
from libs.eventlog.values import Record, Unreadable

DELIVERED: Final = "$JS.ACK."  # begins the reply subject of what a consumer delivers; status messages have none
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the reply subject of a delivered message says of it."""

    tries: int  # with this one
    seq: int
    nth: int  # of all that this consumer has sent
    at: datetime
    pending: int  # how many more the stream held when it was sent


def delivery_of(reply: str) -> Delivery:
    """`$JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<tries>.<seq>.<consumer seq>.<ns>.<pending>[.<random>]`."""
    tokens = reply.split(".")
    skipped = 5 if len(tokens) == 9 else 7
    tries, seq, nth, at_ns, pending = tokens[skipped - 1 : skipped + 4]
    return Delivery(int(tries), int(seq), int(nth), _EPOCH + timedelta(microseconds=int(at_ns) // 1000), int(pending))


def delivered(subject: str, payload: bytes, *, delivery: Delivery, headers: Mapping[str, str] | None) -> Record:
    """A message that a consumer delivered."""
    event = event_in(subject, payload)
    return Record(delivery.seq, delivery.at, event, headers.get(TRACEPARENT) if headers else None)


def fetched(message: Mapping[str, Any]) -> Record:
    """A message that the stream's leader was asked for."""
    payload = base64.b64decode(message.get("data", ""))
    event = event_in(message["subject"], payload)
    at = datetime.fromisoformat(message["time"])
    return Record(message["seq"], at, event, _header(TRACEPARENT, base64.b64decode(message.get("hdrs", ""))))


def event_in(subject: str, payload: bytes) -> AnyEvent | UnknownEvent | Unreadable:
    """The event in a message's data, if it belongs to the message's subject."""
    try:
        event = parse_event(payload)
        placed = _placed(event, subject)
    except ContractError as error:
        return Unreadable(subject, str(error))
    return placed or Unreadable(subject, f"subject: {event.type} {event.id} does not belong here")


def _placed(event: AnyEvent | UnknownEvent, subject: str) -> AnyEvent | UnknownEvent | None:
    """The event, if it belongs to the subject. One of a newer type is of the user whom the subject names, whether or
    not its data says so."""
    if isinstance(event, Event):
        return event if event.subject == subject else None
    if event.job_id is None:
        return event
    job_id, user_id = job_and_user(subject) or (None, None)
    if event.job_id != job_id or event.user_id not in (None, user_id):
        return None
    return replace(event, user_id=user_id)


def _header(name: str, block: bytes) -> str | None:
    for line in block.decode(errors="replace").split("\r\n"):
        key, colon, value = line.partition(":")
        if colon and key == name:
            return value.strip()
    return None


def job_in(records: Iterable[Record], *, onto: Job | None = None) -> Job | None:
    """The job that these records add up to; null where there is none."""
    job = onto
    for record in records:
        match record.event:
            case Event() as event:
                job = advance(job, cast("JobEvent", event), seq=record.seq, at=record.at)
            case UnknownEvent() as event:
                job = step_over(job, event, seq=record.seq, at=record.at)
            case unreadable:
                raise IllegalTransition("event", f"record {record.seq} cannot be read: {unreadable.reason}")
    return job
