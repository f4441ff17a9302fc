"""Whose jobs take a place of which day: who has slipped past the cap, and who has not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from headgate_contracts import Event, Tier
from libs.capacity.ledger import Ledger
from libs.capacity.snapshot import dump, load
from libs.policy import Policy
from tests.fixtures.lives import step, submission

T0 = datetime(2026, 1, 1, tzinfo=UTC)
TODAY, TOMORROW = date(2026, 1, 1), date(2026, 1, 2)
POLICY = Policy.model_validate({"tiers": {"bootstrapper": {"jobs_per_day": 2}, "partner": {"jobs_per_day": 3}}})


@dataclass(frozen=True)
class Logged:
    seq: int
    at: datetime
    event: object


class Days:
    """A ledger, and words to write into it."""

    def __init__(self) -> None:
        self.ledger = Ledger(POLICY)

    def enter(
        self,
        *names: str,
        tier: Tier = Tier.BOOTSTRAPPER,
        day: date = TODAY,
        word: str = "queued",
        cap: int | None = None,
    ) -> None:
        for name in names:
            self.write(step(name, word, quota_day=day, quota_cap=cap, submission=submission(tier=tier)))

    def go(self, name: str, word: str, **details: Any) -> None:
        self.write(step(self.ledger.jobs[name], word, **details))

    def write(self, event: Event[Any]) -> None:
        seq = self.ledger.applied + 1
        change = self.ledger.apply(Logged(seq, T0 + timedelta(seconds=seq), event))
        assert change.complaint is None, change.complaint

    @property
    def slipped(self) -> list[str]:
        return [job.id for job in self.ledger.days.slipped(self.ledger.jobs)]


def test_the_job_that_finds_its_day_full_has_slipped() -> None:
    days = Days()
    days.enter("a", "b", "c")

    assert days.slipped == ["c"]
    assert days.ledger.days.by_day == {("user-1", TODAY): {"a", "b", "c"}}


def test_what_was_decided_by_another_cap_is_not_judged_again_by_the_policy_of_today() -> None:
    days = Days()
    days.enter("a", "b", "c", cap=3)

    before = days.slipped
    days.enter("d", cap=3)

    assert (before, days.slipped) == ([], ["d"])


def test_a_place_that_is_given_back_puts_it_right() -> None:
    days = Days()
    days.enter("a", "b", "c")
    days.go("a", "cancelled")

    assert days.slipped == []


def test_another_day_puts_it_right() -> None:
    days = Days()
    days.enter("a", "b", "c")
    days.go("c", "scheduled", quota_day=TOMORROW)

    assert days.slipped == []
    assert days.ledger.days.by_day == {("user-1", TODAY): {"a", "b"}, ("user-1", TOMORROW): {"c"}}


def test_a_scheduled_job_is_put_right_when_it_enters_the_queue() -> None:
    days = Days()
    days.enter("a", "b", "c", word="scheduled", day=TOMORROW)
    before = days.slipped

    days.go("c", "queued", quota_day=TOMORROW)

    assert (before, days.slipped) == ([], ["c"])


def test_a_reserved_day_stays_whatever_becomes_of_the_tier() -> None:
    days = Days()
    days.enter("a", "b", "c", tier=Tier.PARTNER)
    days.enter("other-day", tier=Tier.BOOTSTRAPPER, day=TOMORROW)

    assert days.slipped == []


def test_what_a_given_back_place_has_put_right_stays_so() -> None:
    days = Days()
    days.enter("a", "b", "c")
    days.go("a", "cancelled")

    days.enter("d", tier=Tier.PARTNER)

    assert days.slipped == []


def test_what_has_begun_is_let_go_on() -> None:
    days = Days()
    days.enter("a", "b", "c")
    days.go("c", "dispatched")
    running = days.slipped
    days.go("c", "given_back:lost")

    assert (running, days.slipped) == ([], [])


def test_a_job_without_a_day_never_slips() -> None:
    days = Days()
    days.write(step("a", "queued", quota_day=None))

    assert not days.ledger.days.by_day


def test_an_ended_job_keeps_its_place_of_the_day_until_that_is_over() -> None:
    days = Days()
    days.enter("a")
    for word in ("dispatched", "started", "scaffold", "code", "deps", "checks", "ready"):
        days.go("a", word)

    assert days.ledger.days.by_day == {("user-1", TODAY): {"a"}}
    days.ledger.apply(Logged(99, T0 + timedelta(days=1), step("later", "queued", quota_day=None)))
    assert (days.ledger.days.by_day, days.ledger.days.used) == ({}, {("user-1", TODAY): 1})
    days.ledger.apply(Logged(100, T0 + timedelta(days=2), step("much-later", "queued", quota_day=None)))
    assert not days.ledger.days.used


def test_a_day_is_as_full_when_those_who_took_it_are_known_no_more() -> None:
    days = Days()
    days.enter("a", "b")
    for name in ("a", "b"):
        for word in ("dispatched", "started", "scaffold", "code", "deps", "checks", "ready"):
            days.go(name, word)
    days.ledger.apply(Logged(99, T0 + timedelta(hours=1), step("other", "queued", quota_day=None)))

    days.enter("c")

    assert set(days.ledger.jobs) == {"other", "c"}
    assert days.slipped == ["c"]


def test_a_snapshot_knows_who_has_slipped() -> None:
    days = Days()
    days.enter("a", "b", "c")

    resumed = load(dump(days.ledger, epoch="E"), epoch="E", policy=POLICY)

    assert resumed.days == days.ledger.days
