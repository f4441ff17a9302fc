"""Room between places: the fewest jobs move, nobody ever crosses another, and who runs is not moved."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contracts import advance
from libs.capacity.rows import ARRIVAL_STEP
from libs.capacity.spacing import ROOM, SPREAD_MAX, PlacedJob, Places, spread
from tests.fixtures.lives import job_after, step

ARRIVALS = 9


def named(*places: int) -> list[PlacedJob]:
    return [(place, f"job-{number:02}") for number, place in enumerate(places)]


def order(spots: Sequence[PlacedJob]) -> list[str]:
    return [job for _, job in sorted(spots)]


def moved(spots: Sequence[PlacedJob], moves: Sequence[PlacedJob]) -> list[PlacedJob]:
    places = {job: place for place, job in spots} | {job: place for place, job in moves}
    return [(place, job) for job, place in places.items()]


@pytest.mark.parametrize(
    ("places", "fixed", "moves"),
    [
        ((10, 20), (), []),
        ((10, 11), (), [(327_685, "job-01")]),
        ((10, 11, 31), (), [(20, "job-01")]),
        ((10, 20, 21, 22), ("job-02", "job-03"), [(15, "job-01")]),
        ((10, 20, 21, 30), ("job-01",), [(25, "job-02")]),
        ((10, 20, 21, 30), ("job-01", "job-02"), []),
        ((10, 11, 12, 13), ("job-00", "job-03"), []),
    ],
)
def test_the_fewest_jobs_move_to_where_most_room_is(
    places: tuple[int, ...], fixed: tuple[str, ...], moves: list[PlacedJob]
) -> None:
    spots = named(*places)
    narrow = next((job for (left, job), (right, _) in pairwise(spots) if right - left < ROOM), "")

    assert spread(spots, narrow, fixed=fixed, arrivals=ARRIVALS) == moves


def test_a_crowd_is_spread_at_once_and_nobody_behind_who_comes_next() -> None:
    spots = named(*range(5), (ARRIVALS + 1) * ARRIVAL_STEP - 2)

    moves = spread(spots, "job-02", fixed=("job-00", "job-05"), arrivals=ARRIVALS)

    assert [job for _, job in moves] == ["job-04", "job-03"]
    assert max(place for place, _ in moved(spots, moves)) < (ARRIVALS + 1) * ARRIVAL_STEP


@given(
    gaps=st.lists(st.sampled_from([0, 1, 1, 2, 3, 70, 5000]), min_size=2, max_size=40),
    pinned=st.sets(st.integers(0, 40), max_size=8),
    which=st.integers(0, 40),
)
def test_no_part_of_the_moves_changes_the_order(gaps: list[int], pinned: set[int], which: int) -> None:
    places = [sum(gaps[: number + 1]) + 1 for number in range(len(gaps))]
    spots = named(*places)
    fixed = {f"job-{number:02}" for number in pinned}
    pairs = [number for number in range(len(spots) - 1) if places[number + 1] - places[number] < ROOM]
    if not pairs:
        return
    narrow = spots[pairs[which % len(pairs)]][1]

    moves = spread(spots, narrow, fixed=fixed, arrivals=ARRIVALS)

    before = order(spots)
    for length in range(1, len(moves) + 1):
        assert order(moved(spots, moves[:length])) == before
    assert len(moves) <= SPREAD_MAX
    assert fixed.isdisjoint(job for _, job in moves)
    if moves:
        after = sorted(moved(spots, moves))
        index = before.index(narrow)
        assert after[index + 1][0] - after[index][0] >= ROOM


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 9)), max_size=40))
def test_the_narrow_ones_are_known_whatever_comes_and_goes(steps: list[tuple[int, int]]) -> None:
    places, standing = Places(), dict[str, int]()
    for number, place in steps:
        name = f"job-{number:02}"
        known = job_after("queued", name, place=standing[name]) if name in standing else None
        if known is not None:
            standing.pop(name)
            places.fold(known, advance(known, step(known, "cancelled")))
        else:
            standing[name] = place
            places.fold(None, job_after("queued", name, place=place))

    spots = sorted((place, name) for name, place in standing.items())
    narrow = {name for (left, name), (right, _) in pairwise(spots) if right - left < ROOM}

    assert set(places.narrow) == narrow
    assert places.by_class.get(50, []) == spots


def test_who_runs_keeps_the_number_it_returns_to() -> None:
    places = Places()
    queued, running = job_after("queued", "job-1", place=7), job_after("queued dispatched", "job-2", place=8)
    places.fold(None, queued)
    places.fold(None, running)

    assert places.near(queued) == [(7, "job-1"), (8, "job-2")]
    assert set(places.narrow) == {"job-1"}
