"""What the document says that streams carry is what the notifier writes: each frame follows the schema of its name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator
from pydantic_core import to_jsonable_python

from headgate_contracts import Event, Status, UnknownEvent
from headgate_contracts.commands import JobProgress, LogLine, PositionChanged
from headgate_contracts.events import JobData
from headgate_contracts.examples import AT, examples
from headgate_contracts.openapi import openapi_document
from headgate_contracts.shown import QueuePart
from headgate_contracts.streamed import OF_ONE_JOB, STREAMED
from libs.eventlog import Record
from libs.eventlog.lines import Line
from libs.forecast.shown import shown_job
from libs.policy import Policy
from services.notifier.domain import EventId
from services.notifier.frames import frame
from services.notifier.handlers import RESYNC
from services.notifier.rendering import END, item_of, line_item, position_item, progress_item
from tests.fixtures.lives import job_after

DOCUMENT = openapi_document()
EPOCH = "01JB0000000000000000000000"
QUEUE = QueuePart(position=1, position_original=2, position_message="You are #1 in queue", passed_by=0)


def items_of(stream: str) -> Draft202012Validator:
    answer = DOCUMENT["paths"][stream]["get"]["responses"]["200"]["content"]["text/event-stream"]
    return Draft202012Validator({**answer["x-itemSchema"], "components": DOCUMENT["components"]})


ONE, ALL = items_of("/v1/jobs/{job_id}/stream"), items_of("/v1/stream")


def read(frames: bytes) -> Iterator[dict[str, Any]]:
    """As a client does."""
    for each in frames.decode().strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in each.splitlines())
        yield {**fields, "data": json.loads(fields["data"])}


def written() -> Iterator[bytes]:
    of_jobs = [event for event in examples() if isinstance(event.data, JobData)]
    unknown = UnknownEvent("0" * 26, "dev.headgate.job.rehearsed.v1", AT, "job-1", Status.QUEUED, 7)
    for seq, event in enumerate([*of_jobs, unknown], start=1):
        told = item_of(Record(seq, AT, cast("Any", event)), epoch=EPOCH)
        if told is not None:
            yield told.frames
    yield position_item(PositionChanged(job_id="job-1", queue=QUEUE)).frames
    yield position_item(PositionChanged(job_id="job-1", queue=None)).frames
    yield progress_item(JobProgress(job_id="job-1", user_id="u", attempt=1, stage="code", fraction=0.5)).frames
    said = LogLine(job_id="job-1", attempt=1, stage="code", line="begun", ts=AT)
    yield line_item(Line(3, AT, 1, said)).frames
    yield from (RESYNC, END)


def snapshot(data: object) -> dict[str, Any]:
    [item] = read(frame("snapshot", data, id=str(EventId(EPOCH, 7))))
    return item


def test_every_frame_is_what_the_document_says_of_its_name() -> None:
    items = [item for frames in written() for item in read(frames)]

    for item in items:
        ONE.validate(item)
        assert ALL.is_valid(item) is (item["event"] not in OF_ONE_JOB)
    assert {item["event"] for item in items} == set(STREAMED)


def test_a_stream_begins_with_the_job_or_with_all_of_them() -> None:
    job = job_after("queued dispatched started scaffold code")
    shown = shown_job(job, policy=Policy(), used_today=1, now=AT, debug_id="0" * 32)
    told = to_jsonable_python(shown)

    assert (ONE.is_valid(snapshot(told)), ALL.is_valid(snapshot(told))) == (True, False)
    assert (ONE.is_valid(snapshot({"jobs": [told]})), ALL.is_valid(snapshot({"jobs": [told]}))) == (False, True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"event": "status", "data": {"job_id": "job-1"}},
        {"event": "position", "data": {"job_id": "job-1", "queue": 4, "waiting_on": []}},
        {"event": "rehearsed", "data": {}},
        {"event": "status", "id": "7", "data": {"event": "queued", "at": "x", "job_id": "j", "status": "queued"}},
    ],
)
def test_what_no_stream_carries_is_none_of_its_items(wrong: dict[str, Any]) -> None:
    assert not ONE.is_valid(wrong)


def test_the_events_of_the_log_are_read_whole() -> None:
    """What stands in a status besides what all of them have."""
    [ready] = [event for event in examples() if event.type == "dev.headgate.job.ready.v1"]
    assert isinstance(ready, Event)
    told = item_of(Record(1, AT, ready), epoch=EPOCH)
    assert told is not None

    [item] = read(told.frames)

    assert item["data"].items() >= {"event": "ready", "duration_s": 512.4, "iterations": 1}.items()
