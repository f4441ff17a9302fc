"""The README that other teams read: its table is the table. Its code runs in `tests/e2e/test_other_teams.py`."""

import re

from headgate_contracts import TABLE, Status
from headgate_contracts.generate import HERE
from headgate_contracts.subjects import JOBS_PREFIX, OPS_PREFIX, SCHED_PREFIX
from headgate_contracts.vocabulary import ActName

README = (HERE / "README.md").read_text()
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


def test_every_word_about_subjects_is_there() -> None:
    for word in (JOBS_PREFIX, SCHED_PREFIX, OPS_PREFIX, *ActName):
        assert word in README


def _line(match: re.Match[str]) -> tuple[object, ...]:
    sources = frozenset(None if name == "(new)" else Status(name) for name in match["sources"].split(", "))
    causes = frozenset((match["causes"] or "").split(", ")) - {""}
    return match["event"], causes, match["by"], sources, None if match["then"] == "unchanged" else match["then"]
