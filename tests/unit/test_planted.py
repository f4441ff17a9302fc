"""Each planted bug can be planted: it names a function that there is, and its twin can stand in for that."""

from __future__ import annotations

import inspect
from collections import Counter
from pkgutil import resolve_name
from typing import Any

import pytest

from tests.planted import BUGS, Bug


def called_like(function: Any) -> list[tuple[str, object, object]]:
    """The arguments that it takes itself, not those of what it wraps."""
    parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    return [(each.name, each.kind, each.default) for each in parameters]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_twin_can_stand_in_for_its_function(bug: Bug) -> None:
    sound = resolve_name(bug.where)

    twin = bug.make(sound)

    assert twin is not sound
    assert called_like(twin) == called_like(sound)
    assert inspect.iscoroutinefunction(twin) is inspect.iscoroutinefunction(sound)


def test_planted_bugs_are_many_and_have_names_of_their_own() -> None:
    names = Counter(bug.name for bug in BUGS)

    assert len(BUGS) >= 24
    assert [name for name, count in names.items() if count > 1] == []


def test_a_planted_bug_is_where_no_table_hides_it() -> None:
    """What a module keeps in a table is called by that table, so a twin put in its place would never be."""
    hidden = [bug.name for bug in BUGS if _is_in_a_table(resolve_name(bug.where), bug)]

    assert hidden == []


def _is_in_a_table(function: object, bug: Bug) -> bool:
    tables = [each for each in vars(resolve_name(bug.where.partition(":")[0])).values() if isinstance(each, dict)]
    return any(value is function for table in tables for value in table.values())
