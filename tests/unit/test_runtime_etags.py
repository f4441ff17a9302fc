"""Entity tags are compared as text: strongly where something is to be changed, weakly where it is there already."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.runtime.etags import ANY, has_it, names_strongly, tags_in

TAGS = st.from_regex(r'(W/)?"[!#-~]*"', fullmatch=True)


@pytest.mark.parametrize(
    ("condition", "tags"),
    [
        ("*", {ANY}),
        (" * ", {ANY}),
        ('"7"', {'"7"'}),
        ('W/"7"', {'W/"7"'}),
        ('"7", "8" ,"9"', {'"7"', '"8"', '"9"'}),
        (',, "7",', {'"7"'}),
        ('"a,b", "*"', {'"a,b"', '"*"'}),
        ('"\xe9"', {'"\xe9"'}),
        ('""', {'""'}),
    ],
)
def test_a_list_of_tags_is_read(condition: str, tags: set[str]) -> None:
    assert tags_in(condition) == tags


@pytest.mark.parametrize(
    "condition", ["", ",", "7", '"7', '7"', '"7" x', '*, "7"', "**", "w/7", '"a b"', "'7'", '"7" "8"']
)
def test_what_is_no_list_of_tags_is_not_understood(condition: str) -> None:
    assert tags_in(condition) is None


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        ('"7"', True),
        ('"6", "7"', True),
        ("*", True),
        ('"007"', False),
        ('"7 "', False),
        ('W/"7"', False),
        ('"8"', False),
        ('"*"', False),
    ],
)
def test_what_is_to_be_changed_is_named_as_it_was_answered(condition: str, *, named: bool) -> None:
    assert names_strongly(tags_in(condition) or frozenset(), '"7"') is named


@pytest.mark.parametrize(
    ("said", "known"),
    [
        (None, False),
        ("*", True),
        ('"abc"', True),
        ('W/"abc"', True),
        ('"x", "abc"', True),
        ('"x"', False),
        ("abc", False),
        ('"abcd"', False),
    ],
)
def test_who_has_this_version_is_told_so(said: str | None, *, known: bool) -> None:
    assert has_it(said, etag='"abc"') is known


@given(st.lists(TAGS, min_size=1))
def test_whatever_was_joined_is_parted_again(tags: list[str]) -> None:
    assert tags_in(", ".join(tags)) == set(tags)
