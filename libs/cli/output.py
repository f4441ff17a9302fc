"""What a command prints: words for people, or JSON for programs, never both.

Owns stdout. What is said for people alone (progress, hints) goes there too, unless JSON was asked for.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console


class Output:
    """One command's."""

    def __init__(self, *, as_json: bool, console: Console | None = None) -> None:
        self.as_json = as_json
        self.console = console or Console(highlight=False, soft_wrap=True)

    @property
    def is_terminal(self) -> bool:
        return self.console.is_terminal and not self.as_json

    def data(self, value: Any) -> None:
        """The command's answer, where JSON was asked for."""
        if self.as_json:
            _write(json.dumps(value, indent=2, ensure_ascii=False))

    def line(self, value: Any) -> None:
        """One of many answers: JSON on one line."""
        if self.as_json:
            _write(json.dumps(value, ensure_ascii=False, separators=(",", ":")))

    def say(self, text: str = "", *, style: str | None = None) -> None:
        """For people."""
        if not self.as_json:
            self.console.print(text, style=style, markup=False)

    def plain(self, text: str) -> None:
        """For people and for whoever waits for exactly this line."""
        if not self.as_json:
            _write(text)

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Columns as wide as they need to be, so that nothing is cut where the output goes into a pipe."""
        lines = [tuple(head), *(tuple(row) for row in rows)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
        for number, line in enumerate(lines):
            text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            self.say(text, style="bold" if number == 0 else None)


def local_time(moment: str | None) -> str:
    """A moment of the API, by this machine's clock on the wall."""
    return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M:%S}" if moment else ""


def _write(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
