"""What a command prints: words for people, or JSON for programs, never both.

Owns stdout. What is said for people alone (progress, hints) goes there too, unless JSON was asked for. Whatever is
printed may come from elsewhere, so none of it reaches a terminal as an order (`libs.runtime.terminal`).
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import compress
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from libs.runtime import terminal

MOMENT: Final = "%Y-%m-%d %H:%M:%S"
GAP, FOLDED = 2, 8  # characters between columns, and of a column at least
WHOLE: Final = frozenset({"#", "JOB", "LEASE", "GROUP", "AT", "CREATED", "SINCE", "HEARD", "EXPIRES"})  # never folded
COLOURED: Final = "STATUS"  # the column whose words have a colour of their own
STYLES: Final = {
    "ready": "green",
    "failed": "red",
    "cancelled": "yellow",
    "awaiting_confirmation": "magenta",
    "draining": "yellow",
}


class Output:
    """Where one command prints."""

    def __init__(self, *, as_json: bool, console: Console | None = None) -> None:
        self.as_json = as_json
        self.console = console or _Console(highlight=False, soft_wrap=True)

    @property
    def is_terminal(self) -> bool:
        """One that a line can be drawn anew in."""
        return self.console.is_terminal and not self.console.is_dumb_terminal and not self.as_json

    def data(self, value: Any) -> None:
        """The command's answer, where JSON was asked for."""
        if self.as_json:
            _write(_json(value, indent=2))

    def line(self, value: Any) -> None:
        """One of many answers: JSON on one line."""
        if self.as_json:
            _write(_json(value, separators=(",", ":")))

    def say(self, text: str = "", *, style: str | None = None) -> None:
        """For people. A terminal is told line by line as wide as it is, but for what must be copied in one piece."""
        if not self.as_json:
            text = terminal.plain(text)
            broken = self.is_terminal and all(len(word) < self.console.width for word in text.split())
            self._print(text, style=style, broken=broken)

    def plain(self, text: str) -> None:
        """For people, and for programs that wait for exactly this line."""
        if not self.as_json:
            _write(terminal.plain(text))

    def log(self, line: str, *, before: str = "", style: str | None = None) -> None:
        """A line of a build's log, in its own colours where there is a terminal, and as it is in a pipe."""
        if self.as_json:
            return
        if not self.is_terminal:
            _write(terminal.plain(before + line))
            return
        shown = Text.from_ansi(terminal.coloured(line), style=style or "")
        self.console.print(Text.assemble((terminal.plain(before), "dim"), shown), soft_wrap=True)

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """In a terminal as wide as that, with long cells folded and without columns that say nothing. Elsewhere as wide
        as it needs to be, a line a row, so that a program in a pipe finds its columns."""
        lines = [tuple(" ".join(terminal.plain(cell).splitlines()) for cell in row) for row in rows]
        if self.as_json or not lines:
            return
        if self.is_terminal:
            head, *lines = _telling(head, lines)
        widths = [max(cell_len(line[column]) for line in (head, *lines)) for column in range(len(head))]
        if self.is_terminal and _narrowest(head, widths) <= self.console.width:
            self.console.print(_folded(head, lines), soft_wrap=False)
            return
        for line in (head, *lines):
            cells = (_cell(name, _padded(cell, width)) for name, cell, width in zip(head, line, widths, strict=True))
            row = Text(" " * GAP).join(cells)
            row.rstrip()
            self.console.print(row, soft_wrap=True)

    def room_beside(self, head: Sequence[str], rows: Iterable[Sequence[str]]) -> int:
        """How wide one more column may be beside this table; without a terminal as wide as it likes."""
        used = sum(max(map(cell_len, column)) + GAP for column in zip(head, *rows, strict=True))
        return max(0, self.console.width - used) if self.is_terminal else sys.maxsize

    def _print(self, text: str, *, style: str | None = None, broken: bool = False) -> None:
        self.console.print(text, style=style, markup=False, soft_wrap=not broken)


class _Console(Console):
    """Leaves it to the command what to make of a reader who has gone."""

    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 - what is being handled where this is called


def _telling(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Head and rows, of the columns in which some row has a word."""
    told = [any(line[column] for line in lines) for column in range(len(head))]
    return [tuple(compress(row, told)) for row in (head, *lines)]


def _narrowest(head: Sequence[str], widths: Sequence[int]) -> int:
    """How narrow a terminal may be: below that even what must stay whole would be cut."""
    return sum(
        GAP + (width if _is_whole(name) else min(width, FOLDED)) for name, width in zip(head, widths, strict=True)
    )


def _is_whole(name: str) -> bool:
    return name.partition(" (")[0] in WHOLE


def _folded(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for name in head:
        table.add_column(name, no_wrap=_is_whole(name), overflow="fold")
    for row in rows:
        table.add_row(*(_cell(name, cell) for name, cell in zip(head, row, strict=True)))
    return table


def _padded(cell: str, width: int) -> str:
    """A character may be two columns wide."""
    return cell + " " * (width - cell_len(cell))


def _cell(name: str, cell: str) -> Text:
    return Text(cell, STYLES.get(cell.rstrip(), "") if name == COLOURED else "")


def local_time(moment: str | None) -> str:
    """A moment of the API, by this machine's clock on the wall and with its zone."""
    return f"{datetime.fromisoformat(moment).astimezone():{MOMENT} %Z}" if moment else ""


def wall_time(moment: str | None) -> str:
    """The same in a table, whose head says the zone."""
    return f"{datetime.fromisoformat(moment).astimezone():{MOMENT}}" if moment else ""


def clock_time(moment: str | None) -> str:
    """The same, of today by the time alone."""
    text, today = wall_time(moment), f"{datetime.now():%Y-%m-%d} "  # noqa: DTZ005 - the clock on the wall
    return text.removeprefix(today)


def zoned(name: str) -> str:
    """The head of a column of times: in which zone they are told."""
    return f"{name} ({datetime.now().astimezone():%Z})"


def start_text(queue: Mapping[str, Any], before: str) -> str:
    """When a queued job starts, after words for that; or that nobody knows yet."""
    if queue.get("estimate_seconds") is None:
        return f"There is {queue['message']} of its start."
    return f"{before} {queue['message']} (confidence {queue['confidence']})."


def _json(value: Any, **form: Any) -> str:
    """What no terminal takes for an order stands there as the escape that JSON has for it."""
    text = json.dumps(value, ensure_ascii=False, **form)
    return terminal.MARKS.sub(lambda mark: f"\\u{ord(mark[0]):04x}", text)


def _write(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
