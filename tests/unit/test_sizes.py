"""The bounds of files tell what is beyond them, and nothing else."""

from __future__ import annotations

from tests.sizes import MOST_IMPORTED, MOST_LINES, MOST_PROTOCOLS, MOST_SMALL, SMALL, Counted, complaints, counted

TEXT = '''"""What it is.

Two lines.
"""

import sys  # and nothing else
from typing import (
    Protocol,
)


# why
class Door(Protocol):
    """A far end."""

    def open(self) -> None: ...


PATH = sys.path
'''


def a_file(path: str, *, lines: int = 100, imports: int = 0, code: int = 90, protocols: int = 0) -> Counted:
    return Counted(path, lines, imports, code, protocols)


def test_docstrings_comments_and_blank_lines_are_no_code() -> None:
    assert counted("a.py", TEXT) == Counted("a.py", 19, 4, 7, 1)


def test_files_within_the_bounds_are_not_complained_about() -> None:
    assert list(complaints([a_file("a.py"), a_file("b/__main__.py", code=1)])) == []


def test_each_bound_is_told_of_with_what_is_beyond_it() -> None:
    long = a_file("libs/long.py", lines=MOST_LINES + 1, imports=90, protocols=MOST_PROTOCOLS + 1)
    small = [a_file(f"libs/small_{n}.py", code=SMALL - 1, imports=29) for n in range(MOST_SMALL + 1)]

    told = list(complaints([long, *small]))

    assert [words.split(":")[0] for words in told[:1]] == ["libs/long.py"]
    assert len(told) == 4
    assert f"{MOST_IMPORTED:.1%}" in told[2]
