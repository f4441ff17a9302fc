"""What reading decides by itself: parts of a content, text of a log, names that operators give, cursors."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contracts import Status, advance
from headgate_contracts.commands import LogLine
from headgate_contracts.tokens import foreign_token
from libs.eventlog import Record
from libs.eventlog.lines import Line
from services.admission.figures import ChartSpan, changes
from services.admission.finding import JobFilter, Sort, cursor_of, match_of, read_cursor
from services.admission.naming import group_named, scope_named
from services.admission.ranges import ByteRange, OutOfRange, Whole, wanted_part
from services.admission.transcript import JsonLines, Plain
from tests.fixtures.lives import job_after, step

TAG = '"abc"'


@pytest.mark.parametrize(
    ("asked", "size", "part"),
    [
        (None, 10, Whole()),
        ("bytes=0-3", 10, ByteRange(0, 4)),
        ("bytes=3-", 10, ByteRange(3, 10)),
        ("bytes=-3", 10, ByteRange(7, 10)),
        ("bytes=-30", 10, ByteRange(0, 10)),
        ("bytes=9-9", 10, ByteRange(9, 10)),
        ("bytes=5-99", 10, ByteRange(5, 10)),
        ("Bytes= 0-0 ", 10, ByteRange(0, 1)),
        ("bytes=10-", 10, OutOfRange()),
        ("bytes=10-12", 10, OutOfRange()),
        ("bytes=-0", 10, OutOfRange()),
        ("bytes=0-", 0, OutOfRange()),
        ("bytes=4-3", 10, Whole()),
        ("bytes=-", 10, Whole()),
        ("bytes=0-1,3-4", 10, Whole()),
        ("lines=0-1", 10, Whole()),
        ("bytes=a-b", 10, Whole()),
        ("bytes=٣-", 10, Whole()),
        ("bytes=" + "9" * 400 + "-", 10, Whole()),
    ],
)
def test_a_range_is_read(asked: str | None, size: int, part: Whole | ByteRange | OutOfRange) -> None:
    assert wanted_part(asked, size=size, etag=TAG) == part


@given(st.text(max_size=40) | st.from_regex(r"bytes=\d{0,20}-\d{0,20}"), st.integers(0, 1000))
def test_no_range_reaches_beyond_the_content(asked: str, size: int) -> None:
    part = wanted_part(asked, size=size, etag=TAG)

    assert not isinstance(part, ByteRange) or 0 <= part.start < part.end <= size


def test_a_part_of_another_version_is_not_given() -> None:
    assert wanted_part("bytes=0-3", size=10, etag=TAG, if_range='"other"') == Whole()
    assert wanted_part("bytes=0-3", size=10, etag=TAG, if_range=f"W/{TAG}") == Whole()
    assert wanted_part("bytes=0-3", size=10, etag=TAG, if_range=TAG) == ByteRange(0, 4)


# ── the log as text ───────────────────────────────────────────────────────────


def line(number: int | None, text: str, *, attempt: int = 1, stage: str = "code") -> Line:
    ts = datetime(2026, 1, 1, 12, tzinfo=UTC)
    return Line(1, ts, number, LogLine(job_id="job-1", attempt=attempt, stage=stage, line=text, ts=ts))


def test_each_attempt_and_stage_has_a_heading() -> None:
    lines = [line(1, "a", stage="scaffold"), line(2, "b"), line(3, "c"), line(1, "d", attempt=2)]

    assert Plain().page(lines).splitlines() == [
        "── attempt 1 · scaffold · 2026-01-01 12:00:00 UTC",
        "a",
        "── attempt 1 · code · 2026-01-01 12:00:00 UTC",
        "b",
        "c",
        "── attempt 2 · code · 2026-01-01 12:00:00 UTC",
        "d",
    ]


def test_where_lines_are_gone_a_mark_says_how_many() -> None:
    text = Plain().page([line(4, "d"), line(5, "e"), line(7, "g")]).splitlines()

    assert text[1:] == ["… [3 lines are gone: the log was cut here]", "d", "e", *text[4:5], "g"]
    assert text[4] == "… [1 line is gone: the log was cut here]"


def test_pages_join_without_a_mark_between_them() -> None:
    plain = Plain()

    text = plain.page([line(1, "a"), line(2, "b")]) + plain.page([line(3, "c")])

    assert text.splitlines()[1:] == ["a", "b", "c"]


def test_each_attempt_is_numbered_by_itself() -> None:
    text = Plain().page([line(1, "a"), line(2, "b"), line(3, "c"), line(2, "e", attempt=2)]).splitlines()

    assert text[-2:] == ["… [1 line is gone: the log was cut here]", "e"]


def test_lines_without_a_number_are_shown_as_they_are() -> None:
    assert Plain().page([line(None, "a"), line(None, "b")]).splitlines()[1:] == ["a", "b"]


def test_programs_get_one_object_a_line() -> None:
    [first, second] = [json.loads(row) for row in JsonLines().page([line(2, "b\nc")]).splitlines()]

    assert first["line"] == "… [1 line is gone: the log was cut here]"
    assert second == {"attempt": 1, "stage": "code", "line": "b\nc", "ts": "2026-01-01T12:00:00Z"}


# ── names ─────────────────────────────────────────────────────────────────────

ANN = "ann@example.com"


@pytest.mark.parametrize(
    ("given", "scope"),
    [
        ("all", "all"),
        ("priority:low", "priority:low"),
        ("pool:gpu", "pool:gpu"),
        ("workflow:w1", "workflow:w1"),
        ("user:u1", "user:u1"),
        (f"user:{ANN}", f"user:{foreign_token(ANN)}"),
        ("project:a/b", f"project:{foreign_token('a/b')}"),
        ("project:ann:shop", "project:ann:shop"),
        (f"project:{ANN}:a/b", f"project:{foreign_token(ANN)}:{foreign_token('a/b')}"),
        ("project::b", f"project:{foreign_token(':b')}"),
    ],
)
def test_a_scope_is_named_as_events_carry_it(given: str, scope: str) -> None:
    assert scope_named(given) == scope


@pytest.mark.parametrize(
    ("given", "group"),
    [
        ("workflows", "workflows"),
        ("user:u1", "user:u1"),
        (f"user:{ANN}", f"user:{foreign_token(ANN)}"),
        ("group:shop:db", "group:shop:db"),
        ("group:my shop:db", f"group:{foreign_token('my shop')}:db"),
        ("group:ann:shop:db", "group:ann:shop:db"),
        (f"group:{ANN}:my shop:db", f"group:{foreign_token(ANN)}:{foreign_token('my shop')}:db"),
        ("project:ann:shop", "project:ann:shop"),
        ("llm:ollama", "llm:ollama"),
        ("group:shop:d b", None),
        ("group:", None),
        ("user:", None),
        ("Workflows", None),
        ("workflows\n", None),
        ("a:b:c:d:e", None),
    ],
)
def test_a_group_is_named_as_events_carry_it(given: str, group: str | None) -> None:
    assert group_named(given) == group


# ── cursors ───────────────────────────────────────────────────────────────────

MINE = JobFilter(user="u1", project="a")


@given(st.integers(0, 2**53))
def test_a_cursor_is_read_in_its_own_list(before: int) -> None:
    name = MINE.name("E1")

    assert read_cursor(cursor_of(before, name=name), name=name) == before


@pytest.mark.parametrize(
    ("other", "epoch"),
    [
        (JobFilter(user="u2", project="a"), "E1"),
        (JobFilter(user="u1"), "E1"),
        (JobFilter(user="u1", project="b"), "E1"),
        (JobFilter(user="u1", project="a", statuses=frozenset({Status.QUEUED})), "E1"),
        (JobFilter(user="u1", project="a", workflow="a"), "E1"),
        (MINE, "E2"),
    ],
)
def test_a_cursor_of_another_list_is_refused(other: JobFilter, epoch: str) -> None:
    assert read_cursor(cursor_of(7, name=other.name(epoch)), name=MINE.name("E1")) is None


@given(st.text(max_size=60))
def test_what_is_no_cursor_is_refused(text: str) -> None:
    assert read_cursor(text, name="name") is None


def test_a_cursor_of_another_order_is_refused() -> None:
    cursor = cursor_of(7, name=MINE.name("E1", Sort.UPDATED))

    assert read_cursor(cursor, name=MINE.name("E1")) is None


def test_what_a_tenant_types_is_quoted() -> None:
    assert match_of('a" OR title:x* NEAR(b) ""') == '"a"""* "OR"* "title:x*"* "NEAR(b)"* """"""*'


def test_calls_and_tokens_are_counted_by_provider_in_the_minute_of_the_event_that_tells_them() -> None:
    before = job_after("queued dispatched started scaffold code")
    asked = {"model": "m-1", "calls": 3, "input_tokens": 10, "output_tokens": 5, "cached_tokens": 2}
    event = step(before, "deps", usage=[{"provider": "openai", **asked}, {"provider": "gemini", **asked}])

    found = list(changes(before, advance(before, event), Record(9, event.time, event)))

    kinds = {"calls": 3, "tokens_input": 10, "tokens_output": 5, "tokens_cached": 2}
    assert found == [(name, provider, count) for provider in ("openai", "gemini") for name, count in kinds.items()]


@pytest.mark.parametrize(
    "since",
    [
        datetime(16, 11, 18, tzinfo=timezone(-timedelta(hours=21))),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, tzinfo=UTC),
    ],
)
@pytest.mark.parametrize("step_s", [None, 60, 86_400])
def test_charts_begin_at_a_moment_that_there_is(since: datetime, step_s: int | None) -> None:
    times = ChartSpan.between(since, datetime(2026, 11, 20, tzinfo=UTC), step_s=step_s).times()

    assert datetime(1970, 1, 1, tzinfo=UTC) <= times[0]
    assert len(times) <= 1000
