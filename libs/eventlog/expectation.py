"""The expectation that rides on an event: the one place where it, its filter and its headers are built.

Owns the rule that makes writers race fairly: of one job every writer names the same filter, letter by letter.

    headgate.jobs.v1.<job>.>      events of a job
    headgate.sched.v1.<shard>     links of the scheduler's chain
    headgate.ops.v1.policy_reloaded    reloads of the policy: each replaces the whole of it
    (none)                        other acts of operators

An event that goes alone may expect besides where the whole log ends: then it stands right there, or nowhere.

On a replicated stream the server knows writes that are under way by the *text* of their filter: with two texts for one
job, two writers would both be let through. The server checks no filter, so a wrong one would simply not protect.
Refuses whatever could not be an append: a batch in which two events of one job would both be taken for the next.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from headgate_contracts import InvalidEvent, Job, JobEvent, SchedSubject, advance, job_filter
from headgate_contracts.envelope import CONTENT_TYPE, AnyEvent
from headgate_contracts.events import JobData, PolicyReloaded, SchedulerCommitted
from libs.eventlog.errors import LogRefused
from libs.eventlog.values import MAX_BATCH, Entry

TRACEPARENT = "traceparent"
WHOLE_LOG = "headgate.>"
LAST_OF_ALL = "Nats-Expected-Last-Sequence"
_TRACEPARENT_SHAPE = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class Expectation:
    """The last sequence of these subjects, at the moment of the append."""

    subject_filter: str
    last_seq: int

    @property
    def headers(self) -> dict[str, str]:
        return {
            "Nats-Expected-Last-Subject-Sequence": str(self.last_seq),
            "Nats-Expected-Last-Subject-Sequence-Subject": self.subject_filter,
        }


@dataclass(frozen=True, slots=True)
class Message:
    """An entry as it travels: the same bytes under the same id, however often it is sent."""

    entry: Entry
    subject: str
    payload: bytes
    expectation: Expectation | None
    headers: Mapping[str, str]

    @property
    def id(self) -> str:
        return self.entry.event.id


def messages_of(entries: Sequence[Entry]) -> tuple[Message, ...]:
    """The entries as they travel, or an error that names what is wrong with them. Nothing has been sent."""
    if not 0 < len(entries) <= MAX_BATCH:
        raise LogRefused(reason=f"a batch has 1 to {MAX_BATCH} entries, not {len(entries)}")
    messages = tuple(_message_of(entry) for entry in entries)
    if len(messages) > 1 and any(entry.over is not None for entry in entries):
        raise LogRefused(reason="an entry that expects where the whole log ends is appended alone")
    if len(messages) > 1 and messages[0].expectation is None:
        raise LogRefused(
            reason="a batch begins with an entry that has an expectation: it tells what became of the batch"
        )
    _require_different("id", (message.id for message in messages))
    _require_different("filter", (each.expectation.subject_filter for each in messages if each.expectation))
    return messages


def _message_of(entry: Entry) -> Message:
    event = entry.event
    subject, payload = event.subject, event.encode()
    _require_legal(entry)
    expectation = _expectation_of(entry)
    headers = {"Nats-Msg-Id": event.id, "Content-Type": CONTENT_TYPE}
    if expectation:
        headers |= expectation.headers
    if entry.over is not None:
        headers[LAST_OF_ALL] = str(entry.over)
    if entry.traceparent is not None:
        headers[TRACEPARENT] = _traceparent(entry.traceparent)
    return Message(entry, subject, payload, expectation, headers)


def _require_legal(entry: Entry) -> None:
    """The event follows from its job, where the job is known: as it is given, or as a new one. Else the log decides."""
    event, after = entry.event, entry.after
    if isinstance(after, Job) and not isinstance(event.data, JobData):
        raise LogRefused(reason=f"{event.type} is not about a job, so it cannot follow one")
    if isinstance(after, Job) and after.seq == 0:
        raise LogRefused(reason=f"job {after.id} was not folded from this log: it has no sequence")
    if isinstance(event.data, JobData) and (after is None or after == 0 or isinstance(after, Job)):
        advance(after or None, cast("JobEvent", event))


def _expectation_of(entry: Entry) -> Expectation | None:
    subject_filter, last_seq = _filter_of(entry.event), _last_seq_of(entry)
    if subject_filter is None and last_seq is None:
        return None
    if subject_filter is None:
        raise LogRefused(reason=f"{entry.event.type} is an operator's act and has no expectation")
    if last_seq is None or last_seq < 0:
        raise LogRefused(reason=f"{entry.event.type} expects a sequence from 0 on, not {last_seq}")
    return Expectation(subject_filter, last_seq)


def _last_seq_of(entry: Entry) -> int | None:
    if isinstance(entry.after, Job):
        return entry.after.seq
    return 0 if entry.after is None and isinstance(entry.event.data, JobData) else entry.after


def _filter_of(event: AnyEvent) -> str | None:
    match event.data:
        case JobData():
            return job_filter(event.data.job_id)
        case SchedulerCommitted():
            return str(SchedSubject(event.data.shard))
        case PolicyReloaded():
            return event.subject
        case _:
            return None


def _traceparent(value: str) -> str:
    if not _TRACEPARENT_SHAPE.fullmatch(value):
        raise InvalidEvent(TRACEPARENT, f"{value!r} is not version-trace-span-flags in lower-case hexadecimal digits")
    return value


def _require_different(what: str, values: Iterable[str]) -> None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise LogRefused(reason=f"two entries of a batch have the {what} {value}")
        seen.add(value)
