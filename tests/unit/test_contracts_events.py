"""Events as bytes: what is written is read back, what is not an event is refused by the field that is wrong."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_contracts import (
    Event,
    EventTooLarge,
    InvalidEvent,
    JobEvent,
    Status,
    UnknownEvent,
    Writer,
    fold,
    parse_event,
)
from headgate_contracts.envelope import DATA_BY_TYPE, MAX_EVENT_BYTES, utc
from headgate_contracts.events import Data, QueuePaused, SchedulerCommitted, Submission
from headgate_contracts.records import Record
from headgate_contracts.usage import NUMBERS
from headgate_contracts.vocabulary import MOST_MODELS
from tests.fixtures.lives import event_id, job_after, life_of, queued, step, submission
from tests.fixtures.records import events

MISSING: Any = object()


@pytest.mark.parametrize("model", DATA_BY_TYPE.values(), ids=DATA_BY_TYPE)
@settings(max_examples=10, deadline=None)  # of each of two dozen models
@given(st.data())
def test_any_event_is_read_back_as_it_was_written(model: type[Data], data: st.DataObject) -> None:
    event = data.draw(events(model))

    assert parse_event(event.encode()) == event


@settings(deadline=None)
@given(events(), st.dictionaries(st.sampled_from(["zone", "tenant", "from_"]), st.integers() | st.text()))
def test_a_reader_ignores_what_it_does_not_know(event: Event[Data], unknown: dict[str, Any]) -> None:
    document = json.loads(event.encode())

    document = {**unknown, **document, "data": {**unknown, **document["data"]}}

    assert parse_event(json.dumps(document).encode()) == event


def test_an_event_says_what_the_envelope_of_cloudevents_asks_for() -> None:
    document = json.loads(queued("job-1").encode())

    assert {name: document[name] for name in sorted(document) if name not in ("data", "id")} == {
        "datacontenttype": "application/json",
        "dataschema": "urn:headgate:schema:dev.headgate.job.queued.v1#/$defs/JobQueued",
        "sequence": 1,
        "source": "/headgate/admission",
        "specversion": "1.0",
        "subject": "job-1",
        "time": "2026-01-01T00:00:01Z",
        "type": "dev.headgate.job.queued.v1",
    }


def test_a_job_is_published_on_its_own_subject() -> None:
    dispatched = step(job_after("queued"), "dispatched")

    assert dispatched.subject == "headgate.jobs.v1.job-1.user-1.project-1.dispatched.default"


def test_a_newer_event_of_a_job_is_stepped_over_and_not_lost() -> None:
    newer = _changed(step(job_after("queued"), "dispatched"), type="dev.headgate.job.rehearsed.v1")

    event = parse_event(newer)

    assert event == UnknownEvent(
        id=json.loads(newer)["id"],
        type="dev.headgate.job.rehearsed.v1",
        time=datetime(2026, 1, 1, 0, 0, 2, tzinfo=UTC),
        job_id="job-1",
        status=Status.STARTING,
        sequence=2,
        attempt=1,
        user_id="user-1",
        project_id="project-1",
    )


def test_a_job_folds_over_what_a_newer_writer_added() -> None:
    first, second, third = life_of(story="queued dispatched started")
    newer = parse_event(_changed(second, type="dev.headgate.job.dispatched.v2"))

    job = fold([first, newer, third])  # type: ignore[list-item]

    assert (job.status, job.attempt, job.sequence) == (Status.STARTING, 1, 3)


def test_a_job_folds_over_a_status_that_a_newer_writer_added() -> None:
    life = life_of(story="queued dispatched started")
    newer = parse_event(_changed(life[-1], **{"data.status": "warming_up", "sequence": 4}))
    assert isinstance(newer, UnknownEvent)

    job = fold([*life, newer])
    later = fold([*life, newer, step(job, "cancel_requested")])

    assert (newer.type, newer.status, newer.attempt) == (life[-1].type, "warming_up", 1)
    assert (later.status, later.worker, later.sequence) == (Status.STARTING, job.worker, 5)


def test_nobody_writes_a_status_that_nobody_knows() -> None:
    event = queued("job-1")
    sleeping = event.data.model_copy(update={"status": "sleeping"})

    with pytest.raises(InvalidEvent):
        replace(event, data=sleeping).encode()


def test_a_newer_event_of_no_job_says_nothing_about_one() -> None:
    paused = Event(event_id("pause"), Writer.ADMISSION, utc(0), QueuePaused(scope="all", by="operator-1"))

    event = parse_event(_changed(paused, type="dev.headgate.ops.drained.v1"))

    assert isinstance(event, UnknownEvent)
    assert (event.job_id, event.status, event.sequence, event.attempt) == (None, None, None, None)


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("specversion", "0.3", "specversion"),
        ("id", MISSING, "id"),
        ("id", "not-a-ulid", "id"),
        ("type", MISSING, "type"),
        ("type", 7, "type"),
        ("source", "/headgate/notifier", "source"),
        ("source", MISSING, "source"),
        ("subject", "job-2", "subject"),
        ("time", "2026-01-01T00:00:00", "time"),
        ("time", 1767225600, "time"),
        ("sequence", MISSING, "sequence"),
        ("sequence", 0, "sequence"),
        ("sequence", "1", "sequence"),
        ("datacontenttype", "text/plain", "datacontenttype"),
        ("data", MISSING, "data"),
        ("data", [], "data"),
        ("data.job_id", MISSING, "data.job_id"),
        ("data.job_id", "a.b", "data.job_id"),
        ("data.job_id", "a" * 41, "data.job_id"),
        ("data.user_id", "", "data.user_id"),
        ("data.project_id", "a b", "data.project_id"),
        ("data.status", "fast asleep", "data.status"),
        ("data.attempt", "0", "data.attempt"),
        ("data.attempt", True, "data.attempt"),
        ("data.attempt", -1, "data.attempt"),
        ("data.attempt", 2**31, "data.attempt"),
        ("data.why", "because", "data.why"),
        ("data.place", 1.5, "data.place"),
        ("data.place", 2**53, "data.place"),
        ("data.passed", "job-2", "data.passed"),
        ("data.passed", ["job-2", "*"], "data.passed.1"),
        ("data.passed", ["job"] * 101, "data.passed"),
        ("data.quota_day", 20000, "data.quota_day"),
        ("data.estimate", {"estimate_seconds": 1}, "data.estimate.lower_bound"),
        ("data.submission.tier", "a tier", "data.submission.tier"),
        ("data.submission.groups", [{"name": "Group:a"}], "data.submission.groups.0.name"),
        ("data.submission.groups", [{"name": "llm:a", "limit": 0}], "data.submission.groups.0.limit"),
        ("data.submission.labels", {"team": 5}, "data.submission.labels.team"),
        ("data.submission.labels", {str(number): "" for number in range(17)}, "data.submission.labels"),
        ("data.submission.input_digest", "sha256:0", "data.submission.input_digest"),
        ("data.submission.notify_url", "file:///etc/passwd", "data.submission.notify_url"),
        ("data.submission.notify_url", "https://example.com/\r\nHost: b", "data.submission.notify_url"),
        ("data.submission.queue_ttl_s", 0, "data.submission.queue_ttl_s"),
    ],
)
def test_what_is_wrong_with_an_event_is_named(path: str, value: Any, field: str) -> None:
    payload = _changed(queued("job-1"), **{path: value})

    with pytest.raises(InvalidEvent) as refused:
        parse_event(payload)

    assert refused.value.field == field
    assert str(refused.value).startswith(f"{field}: ")


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("data", None, "data"),
        ("data.job_id", "*", "data.job_id"),
        ("data.status", "fast asleep", "data.status"),
        ("data.attempt", MISSING, "data.attempt"),
        ("sequence", MISSING, "sequence"),
        ("subject", "job-2", "subject"),
        ("id", "", "id"),
    ],
)
def test_even_a_newer_event_says_what_every_event_says(path: str, value: Any, field: str) -> None:
    payload = _changed(queued("job-1"), **{"type": "dev.headgate.job.rehearsed.v1", path: value})

    with pytest.raises(InvalidEvent) as refused:
        parse_event(payload)

    assert refused.value.field == field


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"null", b"7", b"\xff\xfe", b"[" * 100_000, b'{"a":1}x'])
def test_what_is_no_json_object_is_no_event(payload: bytes) -> None:
    with pytest.raises(InvalidEvent) as refused:
        parse_event(payload)

    assert refused.value.field == "event"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"id": "7"}, "id"),
        ({"time": datetime(2026, 1, 1)}, "time"),  # noqa: DTZ001 - the naive time is what is refused
        ({"sequence": None}, "sequence"),
        ({"sequence": 0}, "sequence"),
        ({"writer": "notifier"}, "source"),
    ],
)
def test_an_envelope_that_nobody_could_read_is_not_written(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidEvent) as refused:
        replace(queued("job-1"), **changes).encode()

    assert refused.value.field == field


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"attempt": "many"}, "data.attempt"),
        ({"place": None}, "data.place"),
        ({"user_id": "a.b"}, "data.user_id"),
        ({"quota_day": datetime(2026, 1, 1, 12, tzinfo=UTC)}, "data.quota_day"),
        ({"user_id": object()}, "event"),
        ({"user_id": "\ud800"}, "event"),
    ],
)
def test_data_that_were_changed_past_their_checks_are_not_written(changes: dict[str, Any], field: str) -> None:
    event = queued("job-1")

    with pytest.raises(InvalidEvent) as refused:
        replace(event, data=event.data.model_copy(update=changes)).encode()

    assert refused.value.field == field


def test_data_that_would_come_back_changed_are_not_written() -> None:
    ready = step(job_after("queued dispatched started scaffold code deps checks"), "ready")

    with pytest.raises(InvalidEvent):
        replace(ready, data=ready.data.model_copy(update={"duration_s": inf})).encode()


def test_a_record_that_cannot_be_made_names_its_field() -> None:
    with pytest.raises(InvalidEvent) as outer:
        QueuePaused(scope="priority:", by="operator-1")
    with pytest.raises(InvalidEvent) as inner:
        Submission(**_fields(submission(), groups=({"name": "a b"},)))

    assert (outer.value.field, inner.value.field) == ("scope", "groups.0.name")


def test_an_event_cannot_be_changed() -> None:
    event = queued("job-1")

    with pytest.raises(ValueError, match="frozen"):
        event.data.attempt = 7
    with pytest.raises(AttributeError):
        event.sequence = 7  # type: ignore[misc]


def test_an_event_that_nobody_would_want_to_read_is_not_written() -> None:
    limits = {f"group:project:{number:064}": 1 for number in range(500)}
    data = SchedulerCommitted(shard="0", leader="scheduler-1", jobs=(), limits=limits)

    with pytest.raises(EventTooLarge) as refused:
        Event(event_id("commit"), Writer.SCHEDULER, utc(0), data).encode()

    assert refused.value.field == "data"
    assert str(MAX_EVENT_BYTES) in str(refused.value)


@pytest.mark.parametrize(
    ("story", "word", "details", "field"),
    [
        ("queued dispatched", "failed", {"detail": "x" * 4097}, "detail"),
        ("queued dispatched", "failed", {"summary": "x" * 501}, "summary"),
        ("queued dispatched", "cancelled", {"reason": "x" * 501}, "reason"),
        ("queued dispatched", "cancelled", {"by": ""}, "by"),
        ("queued", "dispatched", {"groups": tuple(f"llm:{n}" for n in range(33))}, "groups"),
    ],
)
def test_oversize_data_are_refused_by_their_field(story: str, word: str, details: dict[str, Any], field: str) -> None:
    event = step(job_after(story), word)

    with pytest.raises(InvalidEvent) as refused:
        type(event.data)(**_fields(event.data, **details))

    assert refused.value.field == field


@pytest.mark.parametrize("filler", ["x", "\x00", "😀"])
def test_an_event_of_a_job_with_every_text_at_its_bound_can_be_written(filler: str) -> None:
    job_id, token = "j" * 40, "t" * 64
    asked = submission(
        pool=token,
        pipeline=token,
        groups=[{"name": f"{'g' * 30}:{number:064}:{token}", "limit": 2**31 - 1} for number in range(16)],
        workflow=token,
        phase=2,
        notify_url="https://" + "u" * 2040,
        labels={f"{number:064}": filler * 128 for number in range(16)},
        retry_of=job_id,
    )
    first = queued(job_id, submission=asked, passed=[job_id] * 100, place=2**53 - 1)
    most = dict.fromkeys(NUMBERS, 2**31 - 1)
    models = [{"provider": token, "model": f"{number}" * 100, **most} for number in range(MOST_MODELS)]
    told = {"summary": filler * 500, "detail": filler * 4096, "debug_id": filler * 64, "usage": models}
    failed = step(fold([first]), "failed", **told)

    assert max(len(first.encode()), len(failed.encode())) <= MAX_EVENT_BYTES


def test_days_and_times_are_written_as_people_read_them() -> None:
    document = json.loads(queued("job-1", quota_day=date(2026, 2, 3)).encode())

    assert document["data"]["quota_day"] == "2026-02-03"
    assert document["data"]["submission"]["submitted_at"] == "2026-01-01T00:00:00Z"


def _fields(record: Record, **changes: Any) -> dict[str, Any]:
    return record.model_dump() | changes


def _changed(event: JobEvent | Event[Any], **changes: Any) -> bytes:
    """The event's bytes with some fields set or missing; a dot leads inside."""
    document = json.loads(event.encode())
    for path, value in changes.items():
        *way, last = path.split(".")
        place = document
        for part in way:
            place = place[part]
        if value is MISSING:
            del place[last]
        else:
            place[last] = value
    return json.dumps(document).encode()
