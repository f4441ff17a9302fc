"""When a job that waits for its day enters the queue: the one rule that admission and scheduler share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from libs.policy.windows import release_at

DAY, OPENS = 20_833, datetime(2027, 1, 15, tzinfo=UTC)


@given(job=st.text(min_size=1, max_size=40), spread_s=st.integers(0, 86_400))
def test_a_job_is_released_within_the_spread_and_always_at_the_same_moment(job: str, spread_s: int) -> None:
    opens = release_at(job, DAY, spread_s=spread_s)

    assert timedelta(0) <= opens - OPENS <= timedelta(seconds=spread_s)
    assert opens == release_at(job, DAY, spread_s=spread_s)


def test_jobs_are_spread_over_all_of_the_hour() -> None:
    minutes = {(release_at(f"job-{number}", DAY, spread_s=3600) - OPENS).seconds // 60 for number in range(600)}

    assert len(minutes) == 60


def test_a_time_of_its_own_counts_unless_it_is_before_the_day() -> None:
    late, early = OPENS + timedelta(hours=9), OPENS - timedelta(hours=9)

    assert release_at("job-1", DAY, spread_s=3600, run_at=late) == late
    assert release_at("job-1", DAY, spread_s=0, run_at=early) == OPENS
