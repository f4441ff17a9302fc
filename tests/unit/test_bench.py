"""The pure parts of the bench: figures, pictures, the page."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.bench.__main__ import PARTS
from tests.bench.contenders import CONTENDERS, FLOOR
from tests.bench.environments import PEERS, versions
from tests.bench.figures import Spread, growth, percentile, ratios, rounded
from tests.bench.page import NoPlaceError, rewritten, table, tables_in
from tests.bench.plots import Axis, curves, rows
from tests.bench.processes import cpu_s, resident_mib, trees
from tests.bench.reckoning import OneJob, asks
from tests.bench.starts import Moments

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "tests" / "bench"

PAGE = """# Speed

by hand

<!-- measured: a -->
old
<!-- end of a -->

kept

<!-- measured: b -->
<!-- end of b -->
"""


def test_a_figure_is_the_median_of_its_rounds_and_says_between_what_it_lay() -> None:
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(1.0, 2.0, 3.0)
    assert str(Spread.of([12.46, 11.9, 13.44])) == "12.5 (11.9–13.4)"
    assert str(Spread.of([5.0])) == "5.00"


def test_a_percentile_lies_between_the_two_values_next_to_it() -> None:
    assert percentile([4, 1, 3, 2], 50) == 2.5
    assert percentile(range(101), 99) == 99
    assert percentile([7.0], 99) == 7.0


def test_a_ratio_is_taken_within_each_round() -> None:
    assert ratios([10, 200], [5, 100]) == Spread(2, 2, 2)


@pytest.mark.parametrize("exponent", [0, 0.5, 1, 2])
def test_the_exponent_of_a_cost_is_found(exponent: float) -> None:
    found = growth((size, 3 * size**exponent) for size in (10, 100, 1_000, 10_000))

    assert found is not None
    assert (found.exponent, found.factor, found.last) == pytest.approx((exponent, 3, exponent), abs=1e-9)


def test_a_cost_that_grows_only_at_the_end_shows_in_the_last_step() -> None:
    found = growth((size, 100 + size) for size in (1, 10, 100, 100_000))

    assert found is not None
    assert found.exponent < 0.7
    assert 0.85 < found.last < 1


def test_one_size_shows_no_growth() -> None:
    assert growth([(10, 1.0)]) is None
    assert growth([(10, 1.0), (10, 2.0), (20, 0.0)]) is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (0.01234, "0.0123"), (1.5, "1.50"), (99.96, "100.0"), (12_345.6, "12,346"), (-2.5, "-2.50")],
)
def test_a_number_has_the_digits_that_say_something(value: float, shown: str) -> None:
    assert rounded(value) == shown


def test_an_axis_goes_from_power_to_power_of_ten() -> None:
    axis = Axis.over([2, 450], start=100, pixels=300)

    assert axis.ticks == [1, 10, 100, 1000]
    assert [axis.at(value) for value in (1, 10, 1000, 10_000)] == pytest.approx([100, 200, 400, 400])
    assert Axis.over([], start=0, pixels=1).ticks == [1, 10]


def test_pictures_are_whole_and_hold_each_point() -> None:
    one, other = Spread(1, 2, 3), Spread(50, 70, 90)
    drawn = (
        rows("a < b", {"x & y": {"p50": one, "p99": other}, "z": {"p50": one}}, unit="ms"),
        curves("growth", {"CPU": {10: one, 1000: other}}, across="queued", unit="ms"),
    )

    for svg, points in zip(drawn, (3, 2), strict=True):
        circles = ET.fromstring(svg).findall("{http://www.w3.org/2000/svg}circle")  # noqa: S314 - ours
        assert len(circles) == points
        assert all(math.isfinite(float(circle.get("cx", "nan"))) for circle in circles)


def test_a_part_is_written_into_its_place_and_what_is_written_by_hand_stays() -> None:
    page = rewritten(PAGE, {"a": "new \\1"})

    assert page == PAGE.replace("-->\nold\n<!--", "-->\n\nnew \\1\n\n<!--")
    assert rewritten(page, {"a": "new \\1"}) == page


def test_a_part_without_a_place_is_refused_with_what_to_write() -> None:
    with pytest.raises(NoPlaceError, match="<!-- measured: c -->"):
        rewritten(PAGE, {"c": "new"})


def test_the_tables_of_a_program_are_kept_and_its_other_words_are_not() -> None:
    said = "collected 3 items\n\n### plan of 10\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n| c |\n| --- |\n.\n1 passed\n"

    assert tables_in(said) == "**Plan of 10**\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n| c |\n| --- |"


def test_each_part_has_its_place_on_the_page_and_each_file_is_a_part() -> None:
    page, main = (ROOT / "docs" / "performance.md").read_text(), (BENCH / "__main__.py").read_text()

    assert rewritten(page, dict.fromkeys(PARTS, "new")).count("\n\nnew\n\n") == len(PARTS)
    assert [path.name for path in BENCH.glob("bench_*.py") if f'"{path.name}"' not in main] == []


def test_each_queue_has_an_environment_and_a_program() -> None:
    others = [who for who in (FLOOR, *CONTENDERS) if who.server != "headgate"]

    assert {who.environment for who in others} <= set(versions())
    assert [who.name for who in others if not (PEERS / who.client[1]).exists()] == []
    assert len({who.name for who in CONTENDERS}) == len(CONTENDERS)


def test_what_a_process_and_its_children_used_is_counted() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(10**7))']); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:  # noqa: S603
        assert process.stdin
        while cpu_s([process.pid]) < 0.05:
            os.sched_yield()
        assert (trees([process.pid])[0], resident_mib([process.pid]) > 1) == (process.pid, True)
        process.stdin.close()
    assert cpu_s([process.pid]) == 0


def test_a_job_that_was_handed_out_twice_ends_once() -> None:
    moments = Moments()
    moments.note(7, "ended", 10)
    moments.note(7, "ended", 20)

    assert (moments.ended, moments.of[7]) == (1, {"ended": 10})


def test_a_table_has_a_head_and_its_rows() -> None:
    assert table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


def test_what_a_day_of_jobs_asks_follows_from_one_job() -> None:
    job = OneJob(events=8, subjects=5, disk_bytes=1024, kept_bytes=512, written_bytes=2048, scheduler_s=0.01)

    it = asks(job, a_day=86_400, days=1024)

    assert (it.events, it.disk_gib) == (8 * 86_400 * 1024, 84.375)
    assert (it.kept_gib, it.written_gib) == (it.disk_gib / 2, it.disk_gib * 2)
    assert (it.events_a_second, it.scheduler_cores) == (80, 0.1)  # at ten times the mean
