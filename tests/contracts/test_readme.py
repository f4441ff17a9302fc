"""The README that other teams read: its table is the table, and its consumer is as short as it says.

The consumer runs in `test_package.py` on the wheel alone, and in `tests/e2e/test_other_teams.py` on a real run.
"""

import ast
import re

from headgate_contracts import TABLE, Status
from headgate_contracts.subjects import JOBS_PREFIX, OPS_PREFIX, SCHED_PREFIX
from headgate_contracts.vocabulary import ActName
from tests.fixtures.readme import CONSUMER, README

LINE = re.compile(
    r"\| `(?P<event>\w+)`(?: \((?P<causes>[\w, ]+)\))? \| (?P<by>\w+) \| (?P<sources>[^|]+) \| (?P<then>\w+) \|"
)


def test_the_table_is_the_table_of_the_code() -> None:
    written = [_line(match) for match in LINE.finditer(README)]
    known = [
        (row.event.value, row.causes or frozenset(), row.writer.value, row.sources, row.then and row.then.value)
        for row in TABLE
    ]

    assert written == known


def test_a_working_consumer_is_ten_lines() -> None:
    [function] = [each for each in ast.parse(CONSUMER).body if isinstance(each, ast.AsyncFunctionDef)]

    assert (function.end_lineno or 0) - function.lineno + 1 <= 10


def test_every_word_about_subjects_is_there() -> None:
    for word in (JOBS_PREFIX, SCHED_PREFIX, OPS_PREFIX, *ActName):
        assert word in README


def _line(match: re.Match[str]) -> tuple[object, ...]:
    sources = frozenset(None if name == "(new)" else Status(name) for name in match["sources"].split(", "))
    causes = frozenset((match["causes"] or "").split(", ")) - {""}
    return match["event"], causes, match["by"], sources, None if match["then"] == "unchanged" else match["then"]
