"""The auditor of the clock: what comes due does so in its time, and once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headgate_contracts import advance
from headgate_contracts.vocabulary import Fault, Writer
from libs.eventlog.values import Record
from libs.policy import Policy
from tests.fixtures.audit_policies import PolicyHistory
from tests.fixtures.audit_timers import TimerAudit
from tests.fixtures.lives import STARTED_AT, step, submission

POLICY = Policy.model_validate({"confirmation": {"reminders_s": (60, 120), "timeout_s": 180}})
ASKED = "queued dispatched started scaffold code deps checks awaiting_confirmation"


def found(words: str, *, at_s: dict[int, float], details: dict[int, dict[str, Any]], **asked: Any) -> list[str]:
    """What is complained of in a life of one job. `at_s` and `details` are of its events, by number from 1 on; one that
    has no moment of its own follows a second later."""
    complaints: list[str] = []
    audit = TimerAudit(PolicyHistory(POLICY), lambda what, about, why: complaints.append(what))
    job, passed_s = None, 0.0
    for number, word in enumerate(words.split(), 1):
        passed_s = at_s.get(number, passed_s + 1)
        at = STARTED_AT + timedelta(seconds=passed_s)
        own = {"submission": submission(**asked)} if number == 1 else {}
        event = step(job or "job-1", word, at=at, **(own | details.get(number, {})))
        audit.read(event, Record(number, at, event).at)
        job = advance(job, event)
    return complaints


def moment(after_s: float) -> Any:
    return STARTED_AT + timedelta(seconds=after_s)


@pytest.mark.parametrize(("until_s", "sound"), [(400, True), (395, True), (340, False)])
def test_a_run_has_all_of_its_time_from_its_dispatch_on(until_s: float, sound: bool) -> None:  # noqa: FBT001 a table's column
    complaints = found(
        "queued dispatched", at_s={2: 100}, details={2: {"deadline": moment(until_s)}}, run_timeout_s=300
    )

    assert (complaints == []) is sound


@pytest.mark.parametrize(("at_s", "sound"), [(405, True), (399, True), (390, False)])
def test_a_run_fails_for_its_time_no_earlier_than_it_is_over(at_s: float, sound: bool) -> None:  # noqa: FBT001 a table's column
    details = {2: {"deadline": moment(400)}, 4: {"fault": Fault.TIMEOUT, "writer": Writer.SCHEDULER}}

    complaints = found("queued dispatched started failed", at_s={2: 100, 4: at_s}, details=details, run_timeout_s=300)

    assert (complaints == []) is sound


def test_nothing_starts_before_the_moment_that_its_user_named() -> None:
    assert found("queued dispatched", at_s={2: 50}, details={}, run_at=moment(60)) == ["run_at"]
    assert found("queued dispatched", at_s={2: 61}, details={}, run_at=moment(60)) == []


@pytest.mark.parametrize(
    ("at_s", "complaints"),
    [
        ({8: 100, 9: 160, 10: 220}, []),
        ({8: 100, 9: 500, 10: 501}, []),
        ({8: 100, 9: 150, 10: 220}, ["questions"]),
        ({8: 100, 9: 160, 10: 161}, ["questions"]),
        ({8: 100, 9: 160, 10: 220, 11: 230}, ["questions"]),
    ],
)
def test_a_question_is_reminded_of_in_its_time_and_as_often_as_policy_says(
    at_s: dict[int, float], complaints: list[str]
) -> None:
    words = ASKED + " confirmation_reminder" * (len(at_s) - 1)

    assert found(words, at_s=at_s, details={8: {"expires_at": moment(280)}}) == complaints


def test_each_question_has_reminders_of_its_own() -> None:
    words = f"{ASKED} confirmation_reminder confirmed {ASKED.removeprefix('queued ')}"
    at_s = {8: 100.0, 9: 160.0, 17: 300.0, 18: 360.0, 19: 420.0}
    details = {8: {"expires_at": moment(280)}, 17: {"expires_at": moment(480)}}

    assert found(f"{words} confirmation_reminder confirmation_reminder", at_s=at_s, details=details) == []


@pytest.mark.parametrize(("at_s", "sound"), [(281, True), (270, False)])
def test_a_question_times_out_no_earlier_than_it_said(at_s: float, sound: bool) -> None:  # noqa: FBT001 a table's column
    details = {8: {"expires_at": moment(280)}, 9: {"fault": Fault.TIMEOUT, "writer": Writer.SCHEDULER}}

    assert (found(f"{ASKED} failed", at_s={8: 100, 9: at_s}, details=details) == []) is sound
