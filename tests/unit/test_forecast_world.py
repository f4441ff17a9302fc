"""The forecast against a queue that lives: a small run of `make bench`'s, which fails where the forecast became bad."""

from __future__ import annotations

import pytest

from libs.policy import Policy
from tests.fixtures.forecast_world import Workload, history_of, tell, worth_of

WORKLOAD = Workload(seed=3, jobs=500, load=0.9, slots=8)


@pytest.mark.lives
def test_waits_fall_inside_the_interval_and_the_plain_formula_is_beaten() -> None:
    told = tell(WORKLOAD, Policy(), runs=2)

    worth = worth_of(told)

    assert worth.jobs > 450
    assert worth.wait_s > 60, "nobody waited: this measures nothing"
    assert 0.8 <= worth.hit_rate <= 0.98
    assert worth.hit_rate > 2 * worth.plain_hit_rate
    assert worth.error_s < 0.75 * worth.plain_error_s


def test_a_workload_follows_from_its_seed() -> None:
    assert history_of(WORKLOAD, Policy()) == history_of(WORKLOAD, Policy())
