"""A hunt tells of each bug the first seed that finds it, whatever was tried at the same time."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from typing import Final

import pytest

from tests.simulation.evidence import Finding
from tests.simulation.hunting import PIECE, Hunt, _Chase, chosen, hunt_all
from tests.simulation.plan import JOBS

FINDING: Final = Finding("I5", "user:ann", "has 3 of 2")


def test_what_a_later_piece_finds_waits_for_the_seeds_before_it() -> None:
    chase = _Chase("bug", 3 * PIECE)
    first, second = chase.take(), chase.take()
    assert first is not None
    assert second is not None

    early = chase.hear(second, (second[3], FINDING))
    late = chase.hear(first, (first[5], FINDING))

    assert early is None
    assert late == Hunt("bug", first[5], FINDING)
    assert chase.take() is None


def test_a_bug_is_told_once_though_later_seeds_find_it_too() -> None:
    chase = _Chase("bug", 2 * PIECE)
    first, second = chase.take(), chase.take()
    assert first is not None
    assert second is not None

    told = [chase.hear(first, (first[0], FINDING)), chase.hear(second, (second[0], FINDING))]

    assert told == [Hunt("bug", first[0], FINDING), None]


def test_a_bug_that_no_seed_finds_is_told_with_how_many_were_tried() -> None:
    chase = _Chase("bug", PIECE + 1)
    pieces = [piece for _ in range(3) if (piece := chase.take()) is not None]

    told = [chase.hear(piece, None) for piece in pieces]

    assert told == [None, Hunt("bug", PIECE + 1, None)]


def test_a_bug_that_is_at_large_when_the_time_is_over_is_told_with_how_far_it_was() -> None:
    chase, found = _Chase("bug", 3 * PIECE), _Chase("other", 3 * PIECE)
    for each, finding in ((chase, None), (found, (2, FINDING))):
        piece = each.take()
        assert piece is not None
        each.hear(piece, finding)

    assert (chase.so_far(), found.so_far()) == (Hunt("bug", PIECE, None), None)


def test_bugs_are_named_by_their_names_alone() -> None:
    assert [bug.name for bug in chosen("missing-fence,lost-wake-up")] == ["missing-fence", "lost-wake-up"]
    with pytest.raises(SystemExit, match="no such bug: lost"):
        chosen("missing-fence,lost")


def test_a_planted_bug_is_hunted_down_in_other_processes() -> None:
    (bug,) = chosen("counter-beside-the-leases")

    with ProcessPoolExecutor(2) as pool:
        hunts = list(hunt_all([bug], seeds=PIECE, jobs=JOBS, pool=pool, width=2, tell=print))

    assert [hunt.finding.invariant for hunt in hunts if hunt.finding] == ["I5"]


def test_a_bug_that_was_looked_for_before_is_looked_for_behind_that() -> None:
    assert _Chase("bug", 3 * PIECE, after=2 * PIECE).take() == range(2 * PIECE + 1, 3 * PIECE + 1)
