"""How fast one user may change what is in: the rule, and what is kept of it."""

from __future__ import annotations

import pytest

from libs.policy import Policy
from services.admission import changing
from services.admission.changing import ChangeRate, early_ms

RULES = Policy().submissions
PER_EVENT_MS = 500  # of 120 a minute


@pytest.mark.parametrize(
    ("spent_ms", "events", "wait_ms"),
    [
        (-5_000, 1, 0),  # long over: nothing is saved up
        (-5_000, 121, 0),  # more than a minute holds costs all of it
        (0, 120, 0),
        (59_500, 1, 0),
        (59_501, 1, 1),
        (60_000, 1, 500),
        (60_000, 20, 10_000),
        (30_000, 121, 30_000),
    ],
)
def test_a_users_minute_holds_so_many_changes(spent_ms: int, events: int, wait_ms: int) -> None:
    now_ms = 1_000_000

    assert RULES.change_cost_ms(1) == PER_EVENT_MS
    assert early_ms(now_ms + spent_ms, cost_ms=RULES.change_cost_ms(events), now_ms=now_ms) == wait_ms


def test_what_is_refused_costs_nothing_and_another_user_has_their_own() -> None:
    rate = ChangeRate()

    told = [rate.spend(user, 40_000, now_ms=now) for user, now in (("a", 0), ("a", 0), ("b", 0), ("a", 20_000))]

    assert told == [0, 20_000, 0, 0]


def test_only_so_many_users_are_kept_and_those_who_owe_least_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changing, "MOST_USERS", 2)
    rate = ChangeRate()

    for user, cost_ms, now_ms in (
        ("long ago", 500, 0),
        ("most", 60_000, 1000),
        ("least", 500, 1000),
        ("new", 900, 1000),
    ):
        rate.spend(user, cost_ms, now_ms=now_ms)

    assert sorted(rate.until_ms) == ["most", "new"]
