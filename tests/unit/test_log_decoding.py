"""From a stored message to a record."""

import json
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.aio.msg import Msg

from headgate_contracts import Event, UnknownEvent
from headgate_contracts.commands import LogLine, logs_subject
from libs.eventlog.decoding import Delivery, delivery_of, event_in
from libs.eventlog.following import page_of, unbroken
from libs.eventlog.lines import _page
from libs.eventlog.values import Record, Unreadable
from services.notifier.fanout import OfUser
from services.notifier.rendering import interests_in
from tests.fixtures.lives import queued

AT = datetime(2026, 11, 18, 14, 29, 16, 578923, tzinfo=UTC)


@pytest.mark.parametrize(
    "reply",
    [
        "$JS.ACK.JOBS.c1.1.42.7.1795012156578923484.58",
        "$JS.ACK.hub.Acc0untHash.JOBS.c1.1.42.7.1795012156578923484.58",
        "$JS.ACK._.Acc0untHash.JOBS.c1.1.42.7.1795012156578923484.58.rand0m",
    ],
)
def test_what_a_consumer_delivers_says_where_it_stood(reply: str) -> None:
    assert delivery_of(reply) == Delivery(tries=1, seq=42, nth=7, at=AT, pending=58)


class Sealed:
    """A delivered message that notes when somebody looks into it."""

    headers = None

    def __init__(self, number: int) -> None:
        event = queued(f"job-{number}")
        self.subject, self._payload, self.is_read = event.subject, event.encode(), False
        self.reply = f"$JS.ACK.JOBS.c1.1.{number}.{number}.1795012156578923484.0"

    @property
    def data(self) -> bytes:
        self.is_read = True
        return self._payload


def test_what_nobody_wants_is_not_looked_into() -> None:
    messages = [Sealed(number) for number in range(1, 5)]

    page = page_of(unbroken(cast("Any", messages), after=0), lambda subject: "job-3" in subject)

    assert [record.seq for record in page.records] == [3]
    assert [message.is_read for message in messages] == [False, False, True, False]


def test_an_event_is_read_where_it_belongs() -> None:
    event = queued("job-1")

    assert event_in(event.subject, event.encode()) == event


@pytest.mark.parametrize(
    "subject",
    [
        "headgate.jobs.v1.job-2.user-1.project-1.queued",
        "headgate.jobs.v1.job-1.user-2.project-1.queued",
        "headgate.jobs.v1.job-1.user-1.project-1.ready",
        "headgate.ops.v1.paused",
    ],
)
def test_an_event_under_anothers_subject_is_unreadable(subject: str) -> None:
    event = queued("job-1")

    reason = f"subject: dev.headgate.job.queued.v1 {event.id} does not belong here"

    assert event_in(subject, event.encode()) == Unreadable(subject, reason)


@pytest.mark.parametrize(("job", "readable"), [("job-1", True), ("job-2", False), ("job", False)])
def test_what_a_newer_writer_added_is_read_where_its_job_is(job: str, readable: bool) -> None:  # noqa: FBT001 a column
    newer = json.loads(queued("job-1").encode()) | {"type": "dev.headgate.job.polished.v1"}

    event = event_in(f"headgate.jobs.v1.{job}.user-1.project-1.polished", json.dumps(newer).encode())

    assert isinstance(event, UnknownEvent if readable else Unreadable)


def newer(**data: str | None) -> bytes:
    """An event of job-1 of a type that nobody knows yet."""
    event = json.loads(queued("job-1").encode()) | {"type": "dev.headgate.job.polished.v1"}
    return json.dumps(event | {"data": event["data"] | data}).encode()


@pytest.mark.parametrize("user", ["user-1", None])
def test_what_a_newer_writer_added_is_of_the_user_whom_its_subject_names(user: str | None) -> None:
    event = event_in("headgate.jobs.v1.job-1.user-1.project-1.polished", newer(user_id=user))

    assert isinstance(event, UnknownEvent)
    assert event.user_id == "user-1"
    assert OfUser("user-1") in interests_in(Record(1, AT, event))


@pytest.mark.parametrize("subject", ["job-1.user-2.project-1.polished", "job-1.polished"])
def test_what_a_newer_writer_says_of_another_user_than_its_subject_is_unreadable(subject: str) -> None:
    assert isinstance(event_in(f"headgate.jobs.v1.{subject}", newer()), Unreadable)


@pytest.mark.parametrize(("job", "said"), [("job-1", ["words"]), ("job-2", [])])
def test_a_line_is_read_where_its_job_says_it(job: str, said: list[str]) -> None:
    line = LogLine(job_id="job-1", attempt=1, stage="code", line="words", ts=AT)
    reply = "$JS.ACK.LOGS.c1.1.42.7.1795012156578923484.0"

    page = _page([Msg(cast("Any", None), logs_subject(job), reply, line.model_dump_json().encode())])

    assert ([each.line.line for each in page.lines], page.seq) == (said, 42)


JSON = st.recursive(st.none() | st.text() | st.integers(), st.lists)


@given(payload=st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_no_message_is_too_strange_to_step_over(payload: bytes) -> None:
    assert isinstance(event_in("headgate.ops.v1.paused", payload), Unreadable)


@given(field=st.sampled_from(["id", "type", "source", "subject", "time", "data"]), value=st.text() | st.none())
def test_no_envelope_is_too_strange_to_step_over(field: str, value: str | None) -> None:
    strange = json.loads(queued("job-1").encode()) | {field: value}

    event = event_in(queued("job-1").subject, json.dumps(strange).encode())

    assert isinstance(event, Event | UnknownEvent | Unreadable)
