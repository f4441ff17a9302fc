"""What the forecast learns from: durations by tier, and the last waits beside what was shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headgate_contracts import Event, Priority, Tier
from headgate_contracts.events import Estimate
from libs.capacity.ledger import Ledger
from libs.capacity.paces import HOLDS_MAX, WAITS_MAX, Pace, Wait
from libs.capacity.snapshot import dump, load
from libs.policy import Policy
from tests.fixtures.lives import step, submission

T0 = datetime(2026, 1, 1, tzinfo=UTC)
SHOWN = Estimate(estimate_seconds=100, lower_bound=70, upper_bound=130, confidence="medium")


@dataclass(frozen=True)
class Logged:
    seq: int
    at: datetime
    event: object


class Lives:
    """A ledger in which so many seconds pass before each event as the test says."""

    def __init__(self) -> None:
        self.ledger = Ledger(Policy())
        self.at = T0

    def enter(self, name: str, *, tier: Tier = Tier.PARTNER, **first: Any) -> None:
        asked = submission(tier=tier, priority=first.pop("priority", Priority.NORMAL), **first.pop("asked", {}))
        self._write(step(name, "queued", submission=asked, **first), after_s=0)

    def go(self, name: str, story: str, *, after_s: float = 0, **details: Any) -> None:
        for word in story.split():
            self._write(step(self.ledger.jobs[name], word, **details), after_s=after_s)

    def finish(self, name: str, *, duration_s: float, **first: Any) -> None:
        self.enter(name, **first)
        self.go(name, "dispatched started scaffold code deps checks")
        self.go(name, "ready", after_s=duration_s, duration_s=duration_s)

    def _write(self, event: Event[Any], *, after_s: float) -> None:
        self.at += timedelta(seconds=after_s)
        change = self.ledger.apply(Logged(self.ledger.applied + 1, self.at, event))
        assert change.complaint is None, change.complaint


def test_the_average_moves_from_the_first_guess_by_a_share_of_each_duration() -> None:
    lives = Lives()
    lives.finish("a", duration_s=100)
    lives.finish("b", duration_s=200)

    pace = lives.ledger.paces["partner"]

    assert pace.average_s == pytest.approx(0.7 * (0.7 * 600 + 0.3 * 100) + 0.3 * 200)
    assert (pace.count, pace.holds) == (2, (100.0, 200.0))


def test_each_tier_has_its_own_pace() -> None:
    lives = Lives()
    lives.finish("a", duration_s=100, tier=Tier.CTO_SCALE)

    assert set(lives.ledger.paces) == {"cto_scale"}


@pytest.mark.parametrize("word", ["failed", "cancelled", "awaiting_confirmation"])
def test_any_other_end_of_an_attempt_tells_how_long_slots_were_held_and_nothing_else(word: str) -> None:
    lives = Lives()
    lives.enter("a")
    lives.go("a", "dispatched started scaffold code deps checks")
    lives.go("a", word, after_s=50)

    assert lives.ledger.paces == {"partner": Pace(600, 0, (50.0,))}


def test_an_attempt_that_was_given_back_tells_nothing() -> None:
    lives = Lives()
    lives.enter("a")
    lives.go("a", "dispatched started given_back:drained", after_s=50)

    assert lives.ledger.paces == {}


def test_a_run_that_goes_on_from_finished_work_counts_with_what_that_took() -> None:
    lives = Lives()
    lives.enter("a")
    lives.go("a", "dispatched started scaffold")
    lives.go("a", "code", after_s=146)
    lives.go("a", "failed", after_s=4)
    work = {"retry_of": "a", "finished_stages": lives.ledger.jobs["a"].finished_stages}
    lives.enter("b", asked=work)
    lives.go("b", "dispatched started scaffold code deps checks")
    lives.go("b", "ready", after_s=0.1, duration_s=0.1)

    pace = lives.ledger.paces["partner"]

    assert pace.holds == (150.0, 150.1)
    assert pace.average_s == pytest.approx(0.7 * 600 + 0.3 * 150.1)


def test_a_run_that_goes_on_from_what_nobody_knows_any_more_tells_nothing() -> None:
    lives = Lives()
    lives.enter("b", asked={"retry_of": "gone", "finished_stages": ("scaffold",)})
    lives.go("b", "dispatched started scaffold code deps checks")
    lives.go("b", "ready", after_s=0.1, duration_s=0.1)

    assert lives.ledger.paces == {}


def test_a_wait_is_told_at_the_first_start_with_what_was_shown() -> None:
    lives = Lives()
    lives.enter("a", estimate=SHOWN, priority=Priority.LOW)
    lives.go("a", "dispatched", after_s=90)
    lives.go("a", "given_back:lost dispatched", after_s=10)

    at = T0 + timedelta(seconds=90)
    assert list(lives.ledger.waits) == [Wait(at, "partner", "low", "default", 90.0, SHOWN, "low")]


def test_no_more_is_kept_than_is_needed() -> None:
    lives = Lives()
    for number in range(WAITS_MAX + 5):
        lives.enter(f"job-{number}")
        lives.go(f"job-{number}", "dispatched cancelled", after_s=1)

    assert len(lives.ledger.waits) == WAITS_MAX
    assert len(lives.ledger.paces["partner"].holds) == HOLDS_MAX


def test_a_snapshot_knows_what_was_learned() -> None:
    lives = Lives()
    lives.finish("a", duration_s=100, estimate=SHOWN)
    lives.finish("b", duration_s=3.25)

    resumed = load(dump(lives.ledger, epoch="E"), epoch="E", policy=Policy())

    assert resumed.learned == lives.ledger.learned
    assert resumed.waits.maxlen == WAITS_MAX
