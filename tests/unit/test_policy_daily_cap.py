"""When a job that waits for its day enters the queue: the one rule that admission and scheduler share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from libs.policy.daily_cap import DayPlace, release_at

DAY, OPENS = 20_833, datetime(2027, 1, 15, tzinfo=UTC)


@given(user=st.text(min_size=1, max_size=40), spread_s=st.integers(0, 86_400), per_day=st.integers(1, 200))
def test_a_users_jobs_are_released_within_the_spread_and_in_their_order(user: str, spread_s: int, per_day: int) -> None:
    opens = [release_at(user, DayPlace(DAY, before, per_day), spread_s=spread_s) for before in range(per_day)]

    assert opens == sorted(opens)
    assert OPENS <= opens[0] <= opens[-1] <= OPENS + timedelta(seconds=spread_s)


def test_users_are_spread_over_the_hour() -> None:
    places = [DayPlace(DAY, before, 5) for before in range(5)]
    moments = [release_at(f"user-{number}", place, spread_s=3600) for number in range(300) for place in places]

    assert len({(moment - OPENS).seconds // 60 for moment in moments}) >= 50


def test_a_time_of_its_own_counts_unless_it_is_before_the_day() -> None:
    late, early, first = OPENS + timedelta(hours=9), OPENS - timedelta(hours=9), DayPlace(DAY, 0, 5)

    assert release_at("user-1", first, spread_s=3600, run_at=late) == late
    assert release_at("user-1", first, spread_s=0, run_at=early) == OPENS
