"""What a soak calls flat, and that it can say no."""

from __future__ import annotations

import pytest

from tests.soak.flatness import Allowed, Point, TooFewPointsError, judged
from tests.soak.report import Soaked, page

LITTLE = Allowed(share=0.1, noise=5)


def series(*values: float, jobs_each: int = 0) -> list[Point]:
    return [Point(60.0 * number, jobs_each * number, value) for number, value in enumerate(values)]


def soaked(*values: float, minutes: float = 60.0) -> Soaked:
    verdict = judged("scheduler tasks", series(*values), LITTLE, warm_up_s=0)
    return Soaked(minutes, 0.0, 10, len(values), "a job each second", [verdict], [])


def test_what_comes_and_goes_is_flat() -> None:
    assert judged("tasks", series(*[10, 30, 10] * 20), LITTLE, warm_up_s=0).is_flat


def test_what_grows_slowly_all_the_time_is_not() -> None:
    verdict = judged("memory", series(*(100 + number for number in range(60))), LITTLE, warm_up_s=0)

    assert not verdict.is_flat
    assert (verdict.grown, round(verdict.an_hour)) == (40, 60)


def test_what_grows_in_the_warm_up_alone_is_flat() -> None:
    values = [*(number * 10 for number in range(20)), *[200] * 40]

    assert judged("memory", series(*values), LITTLE, warm_up_s=20 * 60).is_flat
    assert not judged("memory", series(*values), LITTLE, warm_up_s=0).is_flat


def test_a_single_peak_is_no_growth() -> None:
    assert judged("memory", series(*[100] * 55, *[900] * 5), LITTLE, warm_up_s=0).is_flat


def test_a_step_that_stays_is_growth() -> None:
    assert not judged("memory", series(*[100] * 30, *[140] * 30), LITTLE, warm_up_s=0).is_flat


def test_what_each_job_leaves_on_purpose_is_allowed_and_no_more() -> None:
    kept = Allowed(share=0, noise=0, a_job=5)
    points = series(*(5 * 2 * number for number in range(60)), jobs_each=2)

    assert judged("subjects", points, kept, warm_up_s=0).is_flat
    assert not judged("subjects", points, Allowed(share=0, noise=0, a_job=4), warm_up_s=0).is_flat


def test_a_run_that_is_too_short_has_no_verdict() -> None:
    with pytest.raises(TooFewPointsError, match="8 points after the warm-up"):
        judged("tasks", series(*[1] * 10), LITTLE, warm_up_s=120)


def test_the_page_says_how_long_it_really_was() -> None:
    assert "**This run was 4.0 minutes long.** A whole one is 60" in page(soaked(*[1] * 60, minutes=4))
    assert "A whole one" not in page(soaked(*[1] * 60, minutes=60.2))


def test_the_page_and_the_end_say_no_where_something_has_grown() -> None:
    grown = soaked(*range(60))

    assert not grown.is_well
    assert "| **no** |" in page(grown)
    assert "| verdict | **not flat" in page(grown)
