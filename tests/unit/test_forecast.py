"""What a waiting user is told: the sentences, and the order of the reasons."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from libs.capacity.answers import Obstacle, Outlook
from libs.forecast.shown import scheduled_message, shown_job
from libs.forecast.standing import position_message, queue_part, waiting_on
from libs.policy import Policy
from tests.fixtures.lives import STARTED_AT, job_after

FULL = ("user:u1", "project:p", "workflows", "group:p:db")
NOW = datetime(2026, 1, 1, 23, 30, tzinfo=UTC)


def outlook(**changes: object) -> Outlook:
    plain = {
        "position": 4,
        "passed": 3,
        "score": 1,
        "pauses": (),
        "obstacles": (),
        "pool_slots": 2,
        "pool_active": 2,
        "quarantined": False,
    }
    return Outlook(**{**plain, **changes})


@pytest.mark.parametrize(
    ("position", "original", "message"),
    [
        (4, 6, "You are #4 in queue"),
        (4, 4, "You are #4 in queue"),
        (8, 4, "Originally #4, currently #8 (4 priority jobs inserted ahead)"),
        (5, 4, "Originally #4, currently #5 (1 priority job inserted ahead)"),
    ],
)
def test_the_position_says_what_moved_it(position: int, original: int, message: str) -> None:
    assert position_message(position, original) == message


def test_a_job_that_was_not_folded_yet_stands_where_it_entered() -> None:
    part = queue_part(job_after("queued", position_original=3), None)

    assert part is not None
    assert (part.position, part.position_original) == (3, 3)
    assert [each.reason for each in waiting_on(job_after("queued", position_original=3), None)] == ["behind"]


def test_a_job_that_left_the_queue_has_no_place() -> None:
    assert queue_part(job_after("queued dispatched"), outlook()) is None


@pytest.mark.parametrize(
    ("seen", "reasons"),
    [
        ({}, ["behind"]),
        ({"pool_slots": 0}, ["no_worker"]),
        ({"pauses": ("all", "user:u1")}, ["paused", "paused"]),
        (
            {
                "obstacles": tuple(
                    Obstacle(name, 2, 2, 5) for name in ("user:u1", "project:p", "workflows", "group:p:db")
                )
            },
            ["user_limit", "project_limit", "global_limit", "group_limit"],
        ),
    ],
)
def test_the_reasons_stand_in_order(seen: dict[str, object], reasons: list[str]) -> None:
    assert [each.reason for each in waiting_on(job_after("queued"), outlook(**seen))] == reasons


@pytest.mark.parametrize(
    ("story", "reason"),
    [
        ("scheduled", "daily_window"),
        ("waiting", "earlier_phase"),
        ("queued dispatched started scaffold code deps checks awaiting_confirmation", "confirmation"),
    ],
)
def test_who_is_not_in_the_queue_waits_for_something_else(story: str, reason: str) -> None:
    assert [each.reason for each in waiting_on(job_after(story), None)] == [reason]


@pytest.mark.parametrize(
    ("opens_at", "message"),
    [
        (NOW + timedelta(minutes=10), "Scheduled for today"),
        (NOW + timedelta(hours=1), "Scheduled for tomorrow"),
        (NOW + timedelta(days=3), "Scheduled for 2026-01-04"),
    ],
)
def test_a_scheduled_job_says_the_day(opens_at: datetime, message: str) -> None:
    assert scheduled_message(opens_at, now=NOW) == message


def test_the_usage_resets_at_the_next_midnight() -> None:
    job = job_after("queued dispatched started scaffold")

    shown = shown_job(job, policy=Policy(), used_today=7, now=STARTED_AT, debug_id="d")

    assert (shown.usage.jobs_used, shown.usage.jobs_remaining) == (7, 43)
    assert (shown.usage.iterations_used, shown.usage.iterations_remaining) == (1, 8)
    assert shown.usage.daily_limit_resets_at == STARTED_AT + timedelta(days=1)


def test_more_used_than_there_is_leaves_nothing_not_less() -> None:
    shown = shown_job(job_after("queued"), policy=Policy(), used_today=99, now=STARTED_AT, debug_id="d")

    assert shown.usage.jobs_remaining == 0


def test_a_failed_job_shows_its_failure_and_a_ready_one_its_result() -> None:
    running = "queued dispatched started scaffold code deps checks"
    failed = shown_job(job_after(f"{running} failed"), policy=Policy(), used_today=1, now=NOW, debug_id="d")
    ready = shown_job(job_after(f"{running} ready"), policy=Policy(), used_today=1, now=NOW, debug_id="d")

    assert failed.error is not None
    assert (failed.message, failed.error.summary) == ("The checks failed.", "The checks failed.")
    assert ready.error is None
    assert ready.result_url == "/v1/jobs/job-1/result"
