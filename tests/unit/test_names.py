"""Each public class and alias has a name of its own."""

from tests.names import complaints, names_in, shared

MODULE = """
from typing import TypeVar

T = TypeVar("T")
Answer = TypeVar("Answer")
LIMIT = 3
Groups = tuple[str, ...]


class Lease:
    class Inner: ...


class _Own: ...
"""


def test_classes_and_aliases_at_the_top_count() -> None:
    assert list(names_in(MODULE)) == ["Groups", "Lease"]


def test_a_name_of_two_modules_is_told_with_both() -> None:
    several = shared({"a.py": "class Lease: ...", "b.py": "Lease = int", "c.py": "class Slot: ..."})

    assert complaints(several, []) == ["Lease: a.py, b.py"]


def test_an_exception_covers_its_name_for_as_long_as_it_is_needed() -> None:
    several = shared({"a.py": "class Lease: ...", "b.py": "class Lease: ..."})

    assert complaints(several, ["Lease"]) == []
    assert complaints({}, ["Lease"]) == ["Lease: no exception is needed any more"]
