"""From past errors to the interval around the next estimate."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contracts.envelope import utc
from headgate_contracts.events import Estimate
from headgate_contracts.vocabulary import Priority
from libs.capacity.paces import Wait
from libs.forecast.analytics import analytics_of
from libs.forecast.intervals import FIRST, Pair, Spread, learn, quantile
from libs.forecast.making import spreads_of
from libs.policy import Policy

SECONDS = st.floats(min_value=0, max_value=1e6, allow_nan=False)


def pairs_of(count: int, *, seed: int = 1, late: float = 1.0) -> list[Pair]:
    """Near estimates are off by a factor, far ones by little."""
    rng = random.Random(seed)
    shown = [rng.uniform(1, 5000) for _ in range(count)]
    return [Pair(each, late * each * rng.lognormvariate(0, 0.6 if each < 1000 else 0.1)) for each in shown]


def test_few_pairs_leave_the_fixed_spread_of_policy() -> None:
    spread = learn(pairs_of(FIRST - 1), turn_s=60, fixed=0.3)

    assert spread.around(100) == pytest.approx((70, 130))


def test_nine_of_ten_waits_fall_inside_what_is_learnt() -> None:
    spread = learn(pairs_of(2000, seed=1), turn_s=60, fixed=0.3)

    fresh = pairs_of(2000, seed=2)
    hits = sum(low <= pair.real_s <= high for pair in fresh for low, high in [spread.around(pair.shown_s)])

    assert 0.87 <= hits / len(fresh) <= 0.93


@pytest.mark.parametrize("count", [FIRST, 40, 100])
def test_few_pairs_are_as_good_as_many_and_give_wider_intervals(count: int) -> None:
    """Over many pasts: each is lucky or not."""
    hits = 0
    for seed in range(200):
        spread = learn(pairs_of(count, seed=seed), turn_s=60, fixed=0.3)
        [pair] = pairs_of(1, seed=10_000 + seed)
        low, high = spread.around(pair.shown_s)
        hits += low <= pair.real_s <= high

    assert 0.85 <= hits / 200 <= 0.96


def test_a_far_estimate_that_was_always_good_gets_a_narrower_interval_than_a_near_one() -> None:
    spread = learn(pairs_of(2000), turn_s=60, fixed=0.3)

    widths = {wait_s: (high - low) / wait_s for wait_s in (500, 4000) for low, high in [spread.around(wait_s)]}

    assert widths[4000] < widths[500] / 2


def test_estimates_that_come_too_early_move_the_interval_behind_them() -> None:
    spread = learn(pairs_of(600, late=2.0), turn_s=60, fixed=0.3)

    low, high = spread.around(3000)

    assert 3000 < low < 6000 < high


@given(st.lists(st.tuples(SECONDS, SECONDS), max_size=200), SECONDS)
def test_an_interval_is_never_upside_down_nor_before_now(pairs: list[tuple[float, float]], wait_s: float) -> None:
    spread = learn([Pair(*pair) for pair in pairs], turn_s=1, fixed=0.3)

    low, high = spread.around(wait_s)

    assert 0 <= low <= high


def test_a_class_whose_waits_are_uneven_has_a_wider_interval_than_one_that_starts_as_shown() -> None:
    shown = Estimate(estimate_seconds=1000, lower_bound=900, upper_bound=1100, confidence="low")
    late = {"high": 1.0, "background": 3.0}
    waits = [
        Wait(utc(number), "partner", "high", "default", 1000 + each * number, shown, asked)  # both have risen by then
        for asked, each in late.items()
        for number in range(FIRST)
    ]

    spreads = spreads_of(waits, Policy())

    widths = {number: spread.around(1000)[1] - spread.around(1000)[0] for number, spread in spreads.items()}
    assert set(widths) == {Priority.HIGH.class_number, Priority.BACKGROUND.class_number}
    assert widths[Priority.BACKGROUND.class_number] > 2 * widths[Priority.HIGH.class_number]
    assert spreads_of(waits[1:FIRST], Policy()) == {}  # of too few nothing is learnt


def test_what_the_forecast_was_worth_is_told_by_tier_and_by_the_class_in_which_it_was_shown() -> None:
    shown = Estimate(estimate_seconds=100, lower_bound=90, upper_bound=110, confidence="low")
    told = (("partner", "low", 100.0), ("partner", "low", 300.0), ("cto_scale", "high", 105.0))
    waits = [Wait(utc(0), tier, "high", "default", wait_s, shown, asked) for tier, asked, wait_s in told]

    worth = analytics_of([*waits, Wait(utc(0), "partner", "normal", "default", 1.0)])

    assert [(each.tier, each.count, each.hit_rate) for each in worth.forecast] == [
        (None, 3, 0.6667),
        ("partner", 2, 0.5),
        ("cto_scale", 1, 1.0),
    ]
    assert [(each.priority, each.count, each.hit_rate) for each in worth.by_class] == [
        ("high", 1, 1.0),
        ("low", 2, 0.5),
    ]


def test_without_a_past_the_spread_is_that_of_the_plain_formula() -> None:
    assert Spread().around(1000) == (700, 1300)


def test_a_quantile_lies_between_its_neighbours() -> None:
    assert [quantile([1, 2, 4], share) for share in (0, 0.25, 0.5, 1)] == [1, 1.5, 2, 4]
