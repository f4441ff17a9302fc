"""The order that the view in memory is built on, against a plain sorted list."""

from hypothesis import given
from hypothesis import strategies as st

from libs.capacity.memory.sorted_set import SortedSet

names = st.sampled_from("abcdef")
scores = st.integers(0, 4) | st.just(float("inf"))
changes = st.lists(st.tuples(names, scores | st.none()))  # no score: discarded


def built(steps: list[tuple[str, float | None]]) -> tuple[SortedSet, list[tuple[float, str]]]:
    """The set after these steps, and what it should hold."""
    members, expected = SortedSet(), dict[str, float]()
    for name, score in steps:
        if score is None:
            assert members.discard(name) is (expected.pop(name, None) is not None)
        else:
            members.add(name, score)
            expected[name] = score
    return members, sorted((score, name) for name, score in expected.items())


@given(changes)
def test_members_stand_by_score_then_by_name(steps: list[tuple[str, float | None]]) -> None:
    members, expected = built(steps)

    assert members.entries() == expected
    assert list(members) == [name for _, name in expected]
    assert len(members) == len(expected)
    assert members.first() == (expected[0][1] if expected else None)
    assert {name: members.score(name) for name in "abcdef" if name in members} == {
        name: score for score, name in expected
    }


@given(changes, scores, names)
def test_a_rank_is_how_many_go_before(steps: list[tuple[str, float | None]], score: float, name: str) -> None:
    members, expected = built(steps)

    assert members.rank(score, name) == sum(entry < (score, name) for entry in expected)
    assert members.after((score, name)) == next((entry for entry in expected if entry > (score, name)), None)


@given(changes, scores, scores)
def test_ranges_end_where_they_say(steps: list[tuple[str, float | None]], low: float, high: float) -> None:
    members, expected = built(steps)

    assert members.up_to(high) == [name for score, name in expected if score <= high]
    assert members.count_above(low) == sum(score > low for score, _ in expected)
    assert members.between(low, high) == [name for score, name in expected if low <= score < high]
    assert list(members.back_from(high, low)) == [entry for entry in reversed(expected) if low <= entry[0] < high]
