"""What belongs to a command where nobody adopts what is let go, from lists of all that runs."""

import os
from pathlib import Path

import pytest

from services.worker.sandbox.group import followed
from services.worker.sandbox.listing import LIST, Listed, living, read

FIRST = 100


def listed(*processes: tuple[int, int, int], began: str = "Thu") -> dict[int, Listed]:
    """By number, parent and group."""
    return {pid: Listed(pid, parent, group, began) for pid, parent, group in processes}


def test_a_list_is_read_without_the_dead() -> None:
    text = (
        "    1     0     1 Ss   Thu Nov 19 03:39:55 2026\n"
        "  100     1   100 Z    Thu Nov 19 03:40:00 2026\n"
        "12345   100   100 S+   Thu Nov 19 03:40:01 2026\n"
    )

    found = list(read(text))

    assert found == [
        Listed(1, 0, 1, "Thu Nov 19 03:39:55 2026"),
        Listed(12345, 100, 100, "Thu Nov 19 03:40:01 2026"),
    ]


@pytest.mark.skipif(not Path(LIST[0]).exists(), reason="a Linux without ps, which every other system has")
def test_this_machine_lists_what_runs() -> None:
    assert living()[os.getpid()].parent == os.getppid()


def test_a_command_is_its_group_and_whatever_descends_from_it() -> None:
    now = listed((1, 0, 1), (FIRST, 50, FIRST), (101, FIRST, FIRST), (102, 101, 102), (103, 102, 103), (200, 1, 200))

    assert followed(FIRST, {}, now).keys() == {FIRST, 101, 102, 103}


def test_what_has_lost_its_parents_is_known_by_its_group_or_from_before() -> None:
    before = followed(FIRST, {}, listed((FIRST, 50, FIRST), (101, FIRST, 101), (102, FIRST, FIRST)))

    now = listed((101, 1, 101), (102, 1, FIRST), (103, 101, 103))

    assert followed(FIRST, before, now).keys() == {101, 102, 103}


def test_a_number_that_is_anothers_by_now_is_not_ours() -> None:
    before = followed(FIRST, {}, listed((FIRST, 50, FIRST), (101, FIRST, 101)))

    assert followed(FIRST, before, listed((101, 1, 101), began="Fri")) == {}
