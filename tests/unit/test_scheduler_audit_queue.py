"""The auditor of the queue: nothing is found in a sound log, and each way to treat somebody unfairly in another."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headgate_contracts import Event, Job, Priority, Writer, advance
from headgate_contracts.envelope import AnyEvent
from headgate_contracts.events import Act, Group, LeaseReleased, QueuePaused, QueueResumed, SchedulerCommitted
from libs.eventlog.values import Record
from libs.policy import Policy
from tests.fixtures.audit import Report, audit
from tests.fixtures.lives import STARTED_AT, event_id, step, submission

POLICY = Policy.model_validate({"order": {"starved_after_s": 60, "starved_every": 3, "ageing_after_s": 60}})


class Story:
    """A log as it is written: a second passes with each record, or as much as is said."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self._records: list[Record] = []
        self._at = STARTED_AT

    def passes(self, seconds: float) -> Story:
        self._at += timedelta(seconds=seconds)
        return self

    def enters(self, name: str, place: int, priority: Priority = Priority.NORMAL, **asked: Any) -> Story:
        """Each of a user and project of its own."""
        details = {"arrival": place, "place": place << 16, "submission": submission(priority=priority, **asked)}
        return self.says(name, "queued", user_id=f"u-{name}", project_id=f"p-{name}", quota_day=None, **details)

    def says(self, name: str, word: str, **details: Any) -> Story:
        """What anybody but the scheduler writes."""
        event = step(self.jobs.get(name, name), word, salt=str(len(self._records)), **details)
        self.jobs[name] = advance(self.jobs.get(name), event)
        return self._write(event)

    def commits(self, *words: str, **details: Any) -> Story:
        """One batch: `job:word`, or the job alone where it starts."""
        decided = [(name, word or "dispatched") for name, _, word in (each.partition(":") for each in words)]
        own = {job.user_id: 3 for job in self.jobs.values()}
        limits = {f"user:{user}": 3 for user in own} | {f"project:{job.project_id}": 3 for job in self.jobs.values()}
        names = tuple(name for name, _ in decided)
        link = SchedulerCommitted(shard="main", leader="s", jobs=names, limits=limits, slots={"default": 99})
        self._write(Event(event_id("link", len(self._records)), Writer.SCHEDULER, self._at, link))
        for name, word in decided:
            self.says(name, word, **details)
        return self

    def acts(self, act: Act) -> Story:
        return self._write(Event(event_id("act", len(self._records)), Writer.ADMISSION, self._at, act))

    def read(self) -> Report:
        return audit(self._records, policy=POLICY, drained=False)

    def _write(self, event: AnyEvent) -> Story:
        self._at += timedelta(seconds=1)
        self._records.append(Record(len(self._records) + 1, self._at, event))
        return self


def found(story: Story) -> set[str]:
    return {violation.invariant for violation in story.read().violations}


def three_in_line() -> Story:
    """One was started, so that all were known; two wait behind it."""
    return Story().enters("a", 1).enters("b", 2).enters("c", 3).commits("a")


# ── order ─────────────────────────────────────────────────────────────────────


def test_the_first_that_can_run_goes_first() -> None:
    assert not found(three_in_line().commits("b", "c"))
    assert found(three_in_line().commits("c", "b")) == {"order"}


@pytest.mark.parametrize("scope", ["user:u-b", "project:p-b"])
def test_who_is_paused_holds_nobody_up(scope: str) -> None:
    story = Story().enters("a", 1).enters("b", 2).enters("c", 3).acts(QueuePaused(scope=scope, by="olga"))

    assert not found(story.commits("a").commits("c"))


@pytest.mark.parametrize("scope", ["all", "user:u-b", "project:p-b", "priority:normal", "pool:default"])
def test_nothing_starts_under_a_pause_that_its_planner_knew(scope: str) -> None:
    paused = QueuePaused(scope=scope, by="olga")

    assert not found(three_in_line().acts(paused).commits("b"))
    assert "paused" in found(three_in_line().acts(paused).commits("a:given_back:lost").commits("b"))


def test_a_resume_lifts_its_own_pause_alone() -> None:
    scopes = "user:u-b", "project:p-b"

    def resumed(*lifted: str) -> Story:
        story = three_in_line()
        for scope in scopes:
            story.acts(QueuePaused(scope=scope, by="olga"))
        story.commits("a:given_back:lost")
        for scope in lifted:
            story.acts(QueueResumed(scope=scope, by="olga"))
        return story.commits("b")

    assert "paused" in found(resumed("user:u-b")) & found(resumed("project:p-b"))
    assert not found(resumed(*scopes))


def test_what_was_not_known_to_who_planned_is_not_held_against_it() -> None:
    assert not found(three_in_line().enters("first", 0, Priority.URGENT).commits("b"))
    assert not found(three_in_line().says("b", "moved:operator", place=1).commits("c"))


def test_who_needs_a_group_may_be_blocked_by_what_no_log_knows() -> None:
    grouped = (Group(name="group:shop:db"),)

    assert not found(Story().enters("a", 1).enters("b", 2, groups=grouped).enters("c", 3).commits("a").commits("c"))


def test_what_comes_free_in_a_batch_came_too_late_for_it() -> None:
    story = Story().enters("a", 1).enters("b", 2).enters("c", 3)
    for number in range(3):
        story.says(f"run-{number}", "queued", user_id="u-b", project_id=f"p-{number}", quota_day=None)
    story.commits(*(f"run-{number}" for number in range(3)), "a")

    assert not found(story.commits("run-0:given_back:lost", "c"))


def test_nobody_crosses_another_when_it_is_spaced() -> None:
    assert not found(three_in_line().commits("b:moved:spaced", place=(3 << 16) - 1))
    assert found(three_in_line().commits("b:moved:spaced", place=(3 << 16) + 1)) == {"order"}


def test_who_stands_ahead_of_another_says_that_it_passed_it() -> None:
    known = Story().enters("a", 2).passes(120)
    later = {"arrival": 5, "place": 1 << 16, "quota_day": None, "user_id": "v"}

    assert found(known.says("b", "queued", **later)) == {"order"}


def test_the_order_at_the_end_is_told() -> None:
    story = three_in_line().enters("first", 9, Priority.URGENT).says("c", "moved:operator", place=1)

    assert story.read().order == ["first", "c", "b"]


# ── turns ─────────────────────────────────────────────────────────────────────


def starving() -> Story:
    """Low has waited for a minute, while two were started."""
    story = Story().enters("low", 1, Priority.LOW).enters("a", 2).enters("b", 3).enters("c", 4).enters("d", 5)
    return story.passes(120).commits("a").commits("b")


def test_a_class_that_starves_gets_the_start_that_it_is_owed() -> None:
    assert found(starving().commits("c")) == {"turns"}
    assert not found(starving().commits("low", starved=True).commits("c"))


def test_in_a_batch_too() -> None:
    story = Story().enters("low", 1, Priority.LOW).enters("a", 2).enters("b", 3).enters("c", 4).enters("d", 5)

    assert found(story.commits("a").passes(120).commits("b", "c", "d")) == {"turns"}


def test_whoever_planned_may_not_have_heard_of_the_pause_that_ends_a_claim() -> None:
    story = starving().acts(QueuePaused(scope="all", by="olga"))

    assert not found(story.commits("low", starved=True))


def test_no_other_start_is_marked_as_owed() -> None:
    early = Story().enters("low", 1, Priority.LOW).enters("a", 2).commits("a")

    assert found(early.commits("low", starved=True)) == {"turns"}
    assert found(starving().commits("low", starved=True).commits("c", starved=True)) == {"turns"}


# ── ageing ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("after_s", "priority", "to", "sound"),
    [
        (61, Priority.NORMAL, Priority.HIGH, True),
        (61, Priority.BACKGROUND, Priority.LOW, True),
        (30, Priority.NORMAL, Priority.HIGH, False),
        (61, Priority.NORMAL, Priority.URGENT, False),
        (61, Priority.HIGH, Priority.URGENT, False),
        (61, Priority.LOW, Priority.HIGH, False),
    ],
)
def test_a_job_rises_one_class_an_hour_and_never_above_high(
    after_s: int,
    priority: Priority,
    to: Priority,
    sound: bool,  # noqa: FBT001 a table's column
) -> None:
    story = Story().enters("a", 1, priority).passes(after_s)

    assert ("ageing" not in found(story.commits("a:reprioritized:aged", to=to))) is sound


def test_a_job_that_was_lowered_waits_its_hour_there() -> None:
    story = Story().enters("a", 1).passes(120).says("a", "reprioritized:operator", to=Priority.LOW)

    assert found(story.commits("a:reprioritized:aged", to=Priority.NORMAL)) == {"ageing"}


# ── phases, forced attempts, days ─────────────────────────────────────────────


def flow() -> Story:
    asked = [submission(workflow="flow", phase=phase, phases=2) for phase in (1, 2)]
    story = Story().says("one", "queued", submission=asked[0], quota_day=None)
    return story.says("two", "waiting", submission=asked[1], workflow="flow", phase=2)


def test_a_phase_enters_when_the_one_before_is_ready() -> None:
    entered = {"arrival": 2, "place": 2 << 16, "quota_day": None}

    assert found(flow().commits("two:queued:phase_ready", **entered)) == {"phases"}


def test_a_phase_is_cancelled_when_an_earlier_one_ended_otherwise() -> None:
    assert found(flow().commits("two:cancelled", writer=Writer.SCHEDULER)) == {"phases"}
    assert not found(flow().says("one", "cancelled").commits("two:cancelled", writer=Writer.SCHEDULER))


def test_an_attempt_is_forced_back_where_somebody_named_it() -> None:
    named = LeaseReleased(group="user:u-a", lease="a:1", by="olga")

    assert found(Story().enters("a", 1).commits("a").commits("a:given_back:forced")) == {"forced"}
    assert not found(Story().enters("a", 1).commits("a").acts(named).commits("a:given_back:forced"))


@pytest.mark.parametrize(("in_days", "sound"), [(0, False), (1, True), (9, True)])
def test_what_is_put_right_waits_for_another_day(in_days: int, sound: bool) -> None:  # noqa: FBT001 a table's column
    later = STARTED_AT + timedelta(days=in_days, hours=0 if in_days else 12)
    story = Story().enters("a", 1).commits("a:scheduled", writer=Writer.SCHEDULER, scheduled_for=later)

    assert ("days" not in found(story)) is sound


def test_nothing_is_released_before_its_time() -> None:
    opens = STARTED_AT + timedelta(seconds=60)
    entered = {"arrival": 1, "place": 1 << 16, "quota_day": None}
    story = Story().says("a", "scheduled", scheduled_for=opens)

    assert found(story.commits("a:queued:released", **entered)) == {"days"}
