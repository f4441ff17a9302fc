"""What a waiting user is told: the sentences, and the order of the reasons."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headgate_contracts import Tier
from headgate_contracts.commands import JobProgress
from headgate_contracts.events import Estimate
from headgate_contracts.shown import REASONS, WaitingOn
from libs.capacity.answers import Obstacle, Outlook, SlotHolder
from libs.capacity.rows import Pause
from libs.forecast.lines import WaitingLine
from libs.forecast.place import estimate_of, position_message, queue_part, shown_standing
from libs.forecast.shown import scheduled_message, shown_job, usage
from libs.forecast.standing import REMEDIES, waiting_on, would_run
from libs.forecast.table import Forecast
from libs.policy import Policy
from tests.fixtures.lives import STARTED_AT, job_after

NOW = datetime(2026, 1, 1, 23, 30, tzinfo=UTC)


def outlook(**changes: object) -> Outlook:
    plain = {
        "position": 4,
        "passed": 3,
        "score": 1,
        "room": False,
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


def obstacle(group: str, *holders: SlotHolder, **changes: object) -> Obstacle:
    plain = {"limit": 2, "active": 2, "since_ms": 5, "holders": holders, "until_ms": None}
    return Obstacle(group=group, **{**plain, **changes})


def holder(job: str, user: str) -> SlotHolder:
    return SlotHolder(f"{job}:1", job, 1, user, "w1", 5, 50)


def reasons(found: tuple[WaitingOn, ...]) -> list[str]:
    return [each.reason for each in found]


ALL_FULL = tuple(obstacle(name) for name in ("llm:global", "group:p:db", "workflows", "project:p", "user:user-1"))


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({}, ["behind"]),
        ({"pool_slots": 0}, ["no_worker"]),
        ({"pauses": (Pause("all", "ops", "", 1), Pause("user:user-1", "ops", "", 1))}, ["paused", "paused"]),
        ({"obstacles": ALL_FULL}, ["user_limit", "project_limit", "group_limit", "global_limit", "global_limit"]),
        ({"obstacles": (obstacle("llm:ollama", until_ms=9), *ALL_FULL[1:2])}, ["group_limit", "provider_paused"]),
        (
            {"pauses": (Pause("all", "ops", "", 1),), "obstacles": ALL_FULL[:1], "pool_slots": 0},
            ["paused", "global_limit", "no_worker"],
        ),
    ],
)
def test_the_reasons_stand_in_order(seen: dict[str, object], expected: list[str]) -> None:
    assert reasons(waiting_on(job_after("queued"), outlook(**seen))) == expected


@pytest.mark.parametrize(
    ("story", "seen", "expected"),
    [
        ("scheduled", None, ["daily_window"]),
        ("scheduled", {"room": True}, ["room"]),
        ("scheduled", {"pauses": (Pause("all", "ops", "", 1),)}, ["daily_window", "paused"]),
        ("waiting", None, ["earlier_phase"]),
        ("waiting", {"room": True}, ["room"]),
        ("waiting", {"pauses": (Pause("all", "ops", "", 1),)}, ["paused", "earlier_phase"]),
        ("queued dispatched started scaffold code deps checks awaiting_confirmation", None, ["confirmation"]),
        ("queued dispatched", None, []),
        ("queued cancelled", None, []),
    ],
)
def test_who_is_not_in_the_queue_waits_for_something_else(
    story: str, seen: dict[str, object] | None, expected: list[str]
) -> None:
    standing = None if seen is None else outlook(position=None, score=None, **seen)

    assert reasons(waiting_on(job_after(story), standing)) == expected


def test_of_other_users_only_the_number_is_told() -> None:
    full = obstacle("project:p", holder("mine", "user-1"), holder("theirs", "user-2"))

    [told] = waiting_on(job_after("queued"), outlook(obstacles=(full,)))

    assert (told.active, told.limit, told.jobs) == (2, 2, ("mine",))
    assert "theirs" not in told.model_dump_json() + "".join(would_run(job_after("queued"), (told,)))


def test_a_pause_tells_who_why_and_since_when() -> None:
    pause = Pause("user:user-1", "ops-7", "too loud", 1_800_000_000_000)

    [told] = waiting_on(job_after("queued"), outlook(pauses=(pause,)))

    assert (told.by, told.group, told.message) == ("ops-7", "user:user-1", "Your jobs are paused by ops-7: too loud")
    assert told.since is not None
    assert told.since.timestamp() == 1_800_000_000


def test_an_operator_reads_of_the_user_where_the_user_reads_of_themselves() -> None:
    job = job_after("queued")
    seen = outlook(
        obstacles=(
            obstacle("user:user-1", holder("mine", "user-1")),
            obstacle("group:p:db", holder("theirs", "user-2")),
        ),
        pauses=(Pause("user:user-1", "ops", "", 1), Pause("all", "ops", "flood", 1)),
    )

    told = waiting_on(job, seen, owner=False)

    assert [each.message for each in told] == [
        "The jobs of user user-1 are paused by ops",
        "The whole queue is paused by ops: flood",
        "Jobs of user user-1: 2 of 2 slots are taken",
        "Group group:p:db: 2 of 2 slots are taken",
    ]
    assert would_run(job, told, owner=False) == (
        "ops, or another operator, resumes the jobs of user user-1",
        "ops, or another operator, resumes the whole queue",
        "One of these jobs ends or is cancelled (now: mine)",
        "A slot of group:p:db comes free (now: theirs), or an operator raises its limit",
    )
    assert "our" not in "".join(each.message for each in told)
    asks = job_after("queued dispatched started scaffold code deps checks awaiting_confirmation")
    assert waiting_on(asks, None, owner=False)[0].message == "Waiting for the user's answer"


def test_a_paused_provider_tells_until_when() -> None:
    shut = obstacle("llm:ollama", active=0, limit=4, until_ms=1_800_000_000_000)

    [told] = waiting_on(job_after("queued"), outlook(obstacles=(shut,)))

    assert told.message == "ollama has had enough calls: nobody calls it before 08:00:00 UTC"
    assert told.until is not None
    assert told.until.timestamp() == 1_800_000_000


def test_a_group_that_is_shut_after_an_outage_is_no_provider() -> None:
    job = job_after("queued")
    shut = obstacle("group:p:db", active=0, limit=1, until_ms=1_800_000_000_000)

    [told] = waiting_on(job, outlook(obstacles=(shut,)))

    assert told.reason == "group_limit"
    assert told.message.startswith("Group group:p:db: after an outage nobody gets a slot before 08:00:00 UTC")
    assert would_run(job, (told,)) == ("Time: slots of group:p:db are given again from 2027-01-15 08:00:00 UTC on",)


def test_a_group_that_is_counted_again_is_not_said_to_be_full() -> None:
    [told] = waiting_on(job_after("queued"), outlook(obstacles=(obstacle("group:p:db", active=0),), quarantined=True))

    assert "counted again" in told.message


def test_a_later_phase_names_the_one_before_it() -> None:
    [told] = waiting_on(job_after("waiting"), None)

    assert told.jobs == ("flow-1-1",)


@pytest.mark.parametrize(
    ("reason", "details", "words"),
    [
        ("daily_window", {"until": NOW}, "Time: it enters the queue by itself from 2026-01-01 23:30:00 UTC on"),
        ("paused", {"by": "ops-1", "group": "all"}, "ops-1, or another operator, resumes the whole queue"),
        ("paused", {"by": "ops-1", "group": "priority:low"}, "resumes all jobs of low priority"),
        ("user_limit", {"jobs": ("a", "b")}, "One of these jobs ends or is cancelled (yours: a, b)"),
        ("group_limit", {"group": "group:p:db"}, "A slot of group:p:db comes free, or an operator raises its limit"),
        ("no_worker", {}, "A worker of pool default starts"),
        ("confirmation", {"until": NOW}, "Your answer by 2026-01-01 23:30 UTC"),
        ("behind", {}, "The jobs ahead of it start"),
    ],
)
def test_what_would_let_it_run_is_said_in_plain_words(reason: str, details: dict[str, object], words: str) -> None:
    waiting = WaitingOn.model_validate({"reason": reason, "message": "", **details})

    assert words in would_run(job_after("queued"), (waiting,))[0]


def test_whoever_waits_for_anything_is_told_what_would_help() -> None:
    assert set(REASONS) == set(REMEDIES)


def test_who_is_next_needs_a_free_slot_and_no_more() -> None:
    job, seen = job_after("queued"), outlook(position=1)

    assert would_run(job, waiting_on(job, seen)) == ("A worker has a free slot",)


def known(*, start_ms: int) -> Forecast:
    """Three jobs are ahead in the pool."""
    line = WaitingLine(places=((-3, 50_000), (-2, 60_000), (-1, 70_000)), slots=2)
    return Forecast(policy=Policy(), made_ms=0, learned=True, starts={"job-1": start_ms}, lines={"pool:default": line})


def test_who_is_next_to_start_is_told_so_wherever_the_place_is() -> None:
    job = job_after("queued", position_original=4)

    told = shown_standing(job, outlook(), forecast=known(start_ms=26_000), now_ms=0)

    assert told.queue is not None
    assert (told.queue.position, told.queue.position_message) == (4, "You are #4 in queue, next to start")
    assert told.queue.message == "26 seconds"
    [why] = told.waiting_on
    assert why.message == "Next in line: starts as soon as a worker has a free slot (3 ahead start later)"
    assert would_run(job, told.waiting_on) == ("A worker has a free slot",)


def test_only_those_who_start_before_it_are_said_to_be_before_it() -> None:
    job = job_after("queued", position_original=4)

    told = shown_standing(job, outlook(), forecast=known(start_ms=65_000), now_ms=0)

    assert told.queue is not None
    assert told.queue.position_message == "You are #4 in queue"
    assert [each.message for each in told.waiting_on] == ["Behind 2 jobs (1 ahead starts later)"]


def test_a_job_that_is_held_itself_is_not_next_to_start() -> None:
    job, seen = job_after("queued", position_original=4), outlook(obstacles=(obstacle("user:user-1"),))

    told = shown_standing(job, seen, forecast=known(start_ms=26_000), now_ms=0)

    assert told.queue is not None
    assert told.queue.position_message == "You are #4 in queue"
    assert reasons(told.waiting_on) == ["user_limit"]


def test_where_nothing_is_known_a_job_stands_behind_all_and_has_no_estimate_yet() -> None:
    job = job_after("queued", position_original=6)

    told = shown_standing(job, outlook(), forecast=Forecast.load(None, Policy()), now_ms=0)

    assert told.queue is not None
    assert (told.queue.estimate_seconds, told.queue.message) == (None, "no estimate yet")
    assert [each.message for each in told.waiting_on] == ["Behind 3 jobs"]


def test_a_paused_job_has_a_place_and_no_estimate() -> None:
    job, plain = job_after("queued"), Forecast.load(None, Policy())
    paused = outlook(pauses=(Pause("all", "ops", "", 1),))

    estimate = estimate_of(job, paused, forecast=plain, now_ms=0)
    part = queue_part(job, paused, estimate)

    assert part is not None
    assert (part.position, part.estimate_seconds, part.message) == (4, None, None)


def test_the_estimate_of_a_job_not_folded_yet_is_the_one_in_its_event() -> None:
    said = Estimate(estimate_seconds=9, lower_bound=8, upper_bound=10, confidence="low")
    job = job_after("queued", estimate=said)

    assert estimate_of(job, None, forecast=Forecast.load(None, Policy()), now_ms=0) == said
    assert estimate_of(job_after("queued dispatched"), outlook(), forecast=Forecast(policy=Policy()), now_ms=0) is None


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


@pytest.mark.parametrize(
    ("told", "shown"),
    [({}, 0.4), ({"attempt": 2}, None), ({"stage": "scaffold"}, None)],
)
def test_only_what_was_told_in_the_stage_that_a_job_is_in_is_its_progress(
    told: dict[str, Any], shown: float | None
) -> None:
    said = {"job_id": "job-1", "user_id": "ann", "attempt": 1, "stage": "code", "fraction": 0.4, **told}
    job = job_after("queued dispatched started scaffold code")

    seen = shown_job(
        job, policy=Policy(), used_today=1, now=STARTED_AT, debug_id="d", progress=JobProgress.model_validate(said)
    )

    assert (seen.progress and seen.progress.fraction) == shown


def test_more_used_than_there_is_leaves_nothing_not_less() -> None:
    shown = shown_job(job_after("queued"), policy=Policy(), used_today=99, now=STARTED_AT, debug_id="d")

    assert shown.usage.jobs_remaining == 0


@pytest.mark.parametrize(
    ("url", "reason", "offered"),
    [("/plans", "user_limit", "/plans"), ("/plans", "paused", None), ("", "user_limit", None)],
)
def test_a_higher_tier_is_offered_where_policy_says_where_and_no_pause_holds_the_job(
    url: str, reason: str, offered: str | None
) -> None:
    policy = Policy.model_validate({"tiers": {"partner": {"upgrade_url": url}}})
    waits = (WaitingOn(reason=reason, message=""),)

    shown = shown_job(job_after("queued"), policy=policy, used_today=0, now=NOW, debug_id="d", waiting_on=waits)

    assert (shown.upgrade and shown.upgrade.url) == offered


def test_a_failed_job_shows_its_failure_and_a_ready_one_its_result() -> None:
    running = "queued dispatched started scaffold code deps checks"
    failed = shown_job(job_after(f"{running} failed"), policy=Policy(), used_today=1, now=NOW, debug_id="d")
    ready = shown_job(job_after(f"{running} ready"), policy=Policy(), used_today=1, now=NOW, debug_id="d")

    assert failed.error is not None
    assert (failed.message, failed.error.summary) == ("The checks failed.", "The checks failed.")
    assert ready.error is None
    assert ready.result_url == "/v1/jobs/job-1/result"


def test_the_usage_by_itself_is_that_of_a_job_submitted_now() -> None:
    found = usage(Tier.BOOTSTRAPPER, Policy(), used_today=2, now=STARTED_AT)

    assert (found.jobs_used, found.jobs_remaining, found.iterations_used, found.iterations_remaining) == (2, 3, 0, 6)
