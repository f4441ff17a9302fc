"""What a stream shows, where it begins, and that nothing is sent twice or left out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contracts import Job, JobEvent, advance
from headgate_contracts.commands import LogLine
from headgate_contracts.shown import ShownJob
from libs.eventlog import Record
from libs.forecast.shown import shown_job
from libs.policy import Policy
from services.notifier.domain import Begin, Complete, EventId, Opening, Resume, opening
from services.notifier.fanout import Closed, Fanout, Tap, TooSlow
from services.notifier.streaming import History, Pace, stream
from tests.fixtures.lives import job_after, life_of

EPOCH = "01JB00000000000000000000EP"
OTHER = "01JB00000000000000000000ZZ"
T0 = datetime(2026, 1, 1, tzinfo=UTC)
PACE = Pace(comment_s=0.001, retry_ms=2000)
WHOLE = life_of("job-1", "queued dispatched started scaffold code deps checks ready")


def logged(events: Sequence[JobEvent], *, every: int = 3) -> list[Record]:
    """Records as they stand in a log with other jobs' between them."""
    return [Record(n * every, T0 + timedelta(seconds=n), event) for n, event in enumerate(events, 1)]


def history(records: Sequence[Record]) -> History:
    job: Job | None = None
    for record in records:
        job = advance(job, record.event, seq=record.seq, at=record.at)  # type: ignore[arg-type]
    assert job is not None
    return History(job, tuple(records))


async def show(job: Job) -> ShownJob:
    return shown_job(job, policy=Policy(), used_today=1, now=T0, debug_id="d")


async def read(
    begin: Begin | Resume, past: Sequence[Record], tap: Tap
) -> list[tuple[str, str | None, dict[str, object]]]:
    """Every event of a stream: its kind, its id, its data."""
    pieces = [
        piece
        async for piece in stream(tap, epoch=EPOCH, begin=begin, history=history(past), show=show, pace=PACE)
        if not piece.startswith(b": ")
    ]
    frames = b"".join(pieces).decode().split("\n\n")
    fields = [dict(line.split(": ", 1) for line in text.splitlines()) for text in frames if text]
    return [(f["event"], f.get("id"), json.loads(f["data"])) for f in fields if "event" in f]


@pytest.mark.parametrize(
    ("last_event_id", "story", "expected"),
    [
        (None, "queued", Begin()),
        ("", "queued", Begin()),
        (f"{EPOCH}-1", "queued dispatched", Resume(1)),
        (f"{OTHER}-1", "queued dispatched", Begin(resync=True)),
        ("not an id", "queued", Begin(resync=True)),
        (f"{EPOCH}-999", "queued", Begin(resync=True)),
        (f"{EPOCH}-0", "queued cancelled", Resume(0)),
        (f"{EPOCH}-2", "queued cancelled", Complete()),
    ],
)
def test_where_a_stream_begins(last_event_id: str | None, story: str, expected: Opening) -> None:
    past = history(logged(life_of("job-1", story), every=1))

    assert opening(last_event_id, epoch=EPOCH, job=past.job, last_status_seq=past.last_status_seq) == expected


async def test_a_new_client_gets_a_snapshot_then_each_status_then_the_end() -> None:
    records, tap = logged(WHOLE), Tap()
    for record in records[2:]:
        tap.offer(record)

    events = await read(Begin(), records[:2], tap)

    assert [kind for kind, _, _ in events] == ["snapshot", *["status"] * 5, "end"]
    assert [data.get("status") for _, _, data in events[1:-1]] == ["scaffold", "code", "deps", "checks", "ready"]
    assert events[0][1] == str(EventId(EPOCH, records[1].seq))


async def test_what_the_follower_brings_late_is_not_sent_again() -> None:
    records, tap = logged(WHOLE), Tap()
    for record in records:
        tap.offer(record)

    events = await read(Begin(), records[:5], tap)

    assert [data.get("status") for _, _, data in events[1:-1]] == ["deps", "checks", "ready"]


@given(cut=st.integers(0, len(WHOLE)), joined=st.integers(1, len(WHOLE)), lag=st.integers(0, len(WHOLE)))
async def test_a_client_that_comes_back_sees_each_status_once(cut: int, joined: int, lag: int) -> None:
    cut = min(cut, joined)  # what a client has seen, the log's leader has
    records = logged(WHOLE)
    ids = [str(EventId(EPOCH, record.seq)) for record in records if record.seq % 3 == 0]
    tap = Tap()
    for record in records[min(lag, joined) :]:
        tap.offer(record)

    seen = ids[:cut]
    events = await read(Resume(cut * 3), records[:joined], tap)

    shown = [id_ for kind, id_, _ in events if kind == "status"]
    every_status = [id_ for id_, event in zip(ids, WHOLE, strict=True) if event.data.EVENT.value != "started"]
    assert [id_ for id_ in seen if id_ in every_status] + shown == every_status
    assert events[-1][0] == "end"


async def test_a_finished_job_gives_the_rest_and_the_end_without_waiting() -> None:
    events = await read(Resume(6 * 3), logged(WHOLE), Tap())

    assert [(kind, data.get("status")) for kind, _, data in events] == [
        ("status", "checks"),
        ("status", "ready"),
        ("end", None),
    ]


async def test_an_open_question_is_asked_again_of_a_new_client() -> None:
    asked = life_of("job-1", "queued dispatched started scaffold code deps checks awaiting_confirmation")
    tap = Tap()
    tap.end(Closed())

    events = await read(Begin(), logged(asked), tap)

    assert [kind for kind, _, _ in events] == ["snapshot", "confirmation"]
    assert events[1][2]["next_batch"] == 2


async def test_a_line_of_the_log_has_no_id() -> None:
    tap = Tap()
    tap.offer(LogLine(job_id="job-1", attempt=1, stage="code", line="<b>hello</b>\nworld", ts=T0))
    tap.end(Closed())

    events = await read(Resume(3), logged(WHOLE[:1]), tap)

    assert [(kind, id_, data["line"]) for kind, id_, data in events] == [("log", None, "<b>hello</b>\nworld")]


async def test_a_silent_stream_says_that_it_lives() -> None:
    tap = Tap()
    pieces = stream(tap, epoch=EPOCH, begin=Resume(3), history=history(logged(WHOLE[:1])), show=show, pace=PACE)

    first = [await anext(pieces) for _ in range(3)]

    assert first == [b"retry: 2000\n\n", b"", b": still here\n\n"]


async def test_a_client_that_cannot_keep_up_is_cut_off_and_told_when_to_come_back() -> None:
    tap = Tap(depth=2)
    for record in logged(WHOLE)[1:4]:
        tap.offer(record)

    pieces = [
        piece
        async for piece in stream(
            tap, epoch=EPOCH, begin=Resume(3), history=history(logged(WHOLE[:1])), show=show, pace=PACE
        )
    ]

    assert pieces == [b"retry: 2000\n\n", b"", b"retry: 2000\n\n"]
    with pytest.raises(TooSlow):
        await tap.take(within_s=0)


async def test_closing_a_replica_ends_open_streams_and_those_that_still_come() -> None:
    fanout = Fanout()
    with fanout.attached("job-1") as before:
        fanout.close()
        with fanout.attached("job-1") as after:
            for tap in (before, after):
                with pytest.raises(Closed):
                    await tap.take(within_s=1)
    assert fanout.connections == 0


async def test_a_record_goes_to_those_who_listen_to_its_job_alone() -> None:
    fanout = Fanout()
    [record, *_] = logged(WHOLE)
    with fanout.attached("job-1") as mine, fanout.attached("job-2") as other:
        fanout.spread("job-1", record)
        fanout.spread(None, record)

        assert await mine.take(within_s=0) == [record]
        assert await other.take(within_s=0) == []


def test_the_message_of_a_job_that_asks_tells_what_it_asks() -> None:
    asked = job_after("queued dispatched started scaffold code deps checks awaiting_confirmation")

    shown = shown_job(asked, policy=Policy(), used_today=1, now=T0, debug_id="d")

    assert shown.message == "1 of 3 iterations used. Continue for 3 more?"
