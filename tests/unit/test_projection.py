"""From a folded job and the policy to what the view keeps: groups, timers, default limits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headgate_contracts import Priority, Tier, advance
from headgate_contracts.events import Group
from libs.capacity.projection import defaults_of, epoch_ms, groups_of, row_of
from libs.policy import Policy
from tests.fixtures.lives import STARTED_AT, job_after, step, submission

POLICY = Policy()
HOUR_MS = 3_600_000


def at(job_seconds: int) -> int:
    return epoch_ms(STARTED_AT + timedelta(seconds=job_seconds))


TTL = at(1 + 604_800)


def test_every_limit_of_the_policy_has_the_name_the_view_asks_for() -> None:
    policy = Policy.model_validate({"concurrency": {"limits": {"group:shop:db": 3, "db": 2}}})

    defaults = defaults_of(policy)

    assert defaults == {
        "group": 1,
        "workflows": 5,
        "group/workflows": 5,
        "group:shop:db": 3,
        "db": 2,
        "group/db": 2,
        "user/bootstrapper": 2,
        "user/partner": 3,
        "user/cto_scale": 10,
        "project/bootstrapper": 2,
        "project/partner": 3,
        "project/cto_scale": 5,
        "llm:ollama": 4,
        "llm:gemini": 8,
        "llm:openai": 10,
        "llm:deepseek": 8,
        "llm:global": 12,
    }


def test_a_job_needs_its_users_and_projects_slots_then_those_it_asks_for() -> None:
    asked = submission(workflow="flow-1", phase=1, groups=(Group(name="group:project-1:db"), Group(name="workflows")))

    groups = groups_of(job_after("queued", submission=asked))

    assert groups == ("user:user-1", "project:project-1", "workflows", "group:project-1:db")


@pytest.mark.parametrize(
    ("story", "details", "timers"),
    [
        ("scheduled", {}, {"release": at(86_400)}),
        ("queued", {}, {"age": at(1) + HOUR_MS, "queue_ttl": TTL}),
        ("queued", {"submission": submission(priority=Priority.HIGH)}, {"queue_ttl": TTL}),
        ("queued", {"submission": submission(queue_ttl_s=60)}, {"age": at(1) + HOUR_MS, "queue_ttl": at(61)}),
        ("queued reprioritized:aged", {}, {"age": at(2) + HOUR_MS, "queue_ttl": TTL}),
        ("queued moved:spaced", {}, {"age": at(1) + HOUR_MS, "queue_ttl": TTL}),
        ("queued dispatched given_back:lost", {}, {"age": at(3) + HOUR_MS, "queue_ttl": TTL}),
        ("queued dispatched", {}, {}),
        ("queued cancelled", {}, {}),
    ],
)
def test_what_is_due_about_a_job(story: str, details: dict[str, Any], timers: dict[str, int]) -> None:
    row = row_of(job_after(story, **details), POLICY)

    assert dict(row.timers) == timers


def test_a_run_ends_by_its_worker_and_a_heartbeat_later_by_the_scheduler() -> None:
    running = job_after("queued dispatched started")
    asked = running.model_copy(update={"deadline": STARTED_AT + timedelta(seconds=90)})

    assert dict(row_of(asked, POLICY).timers) == {"deadline": at(91 + round(POLICY.leases.heartbeat_s))}


def test_a_run_that_was_claimed_late_ends_as_much_later() -> None:
    """Its worker counts from the claim: who frees its slots before it has ended lets another in beside it."""
    late = job_after("queued dispatched started").model_copy(
        update={"deadline": STARTED_AT + timedelta(seconds=90), "claimed_at": STARTED_AT + timedelta(seconds=22)}
    )
    waiting = job_after("queued dispatched").model_copy(update={"deadline": STARTED_AT + timedelta(seconds=90)})

    beat_s = round(POLICY.leases.heartbeat_s)
    assert dict(row_of(late, POLICY).timers) == {"deadline": at(110 + beat_s)}
    assert dict(row_of(waiting, POLICY).timers) == {"deadline": at(90 + beat_s)}


def test_a_job_that_was_given_another_class_waits_its_hour_there() -> None:
    job = job_after("queued")
    lower = advance(job, step(job, "reprioritized:operator", to=Priority.LOW))

    assert dict(row_of(lower, POLICY).timers) == {"age": at(2) + HOUR_MS, "queue_ttl": TTL}


def test_a_question_reminds_twice_and_then_ends() -> None:
    asked = "queued dispatched started scaffold code deps checks awaiting_confirmation"
    expires_ms = epoch_ms(STARTED_AT + timedelta(days=1))

    timers = [dict(row_of(job_after(f"{asked} {'confirmation_reminder ' * n}"), POLICY).timers) for n in range(3)]

    assert timers == [
        {"confirm_timeout": expires_ms, "remind": expires_ms - 12 * HOUR_MS},
        {"confirm_timeout": expires_ms, "remind": expires_ms - HOUR_MS},
        {"confirm_timeout": expires_ms},
    ]


def test_a_job_that_ran_once_is_not_ended_by_its_time_to_live_in_the_queue() -> None:
    back = job_after("queued dispatched started given_back:lost", submission=submission(queue_ttl_s=60))

    assert "queue_ttl" not in row_of(back, POLICY).timers


def test_the_boost_is_the_tiers_of_today() -> None:
    job = job_after("queued", submission=submission(tier=Tier.CTO_SCALE))

    assert row_of(job, POLICY).boost == 5


def test_a_moment_is_whole_milliseconds() -> None:
    assert epoch_ms(datetime(1970, 1, 1, 0, 0, 1, 5_600, tzinfo=UTC)) == 1006
