"""The page of figures: what a part of the bench has measured stands between two marks, all else is written by hand.

    <!-- measured: latency -->
    …
    <!-- end of latency -->

Pure, text in and text out. A part that was not run keeps what it said last, with the date on which it said so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence


class NoPlaceError(Exception):
    """The page has no place for {part}: write <!-- measured: {part} --> and <!-- end of {part} --> where it belongs."""

    def __init__(self, part: str) -> None:
        super().__init__((type(self).__doc__ or "").format(part=part))


def rewritten(page: str, measured: Mapping[str, str]) -> str:
    """With these parts in their places, and everything else as it was."""
    for part, text in measured.items():
        begin, end = f"<!-- measured: {part} -->", f"<!-- end of {part} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if pattern.search(page) is None:
            raise NoPlaceError(part)
        before, after = pattern.split(page, maxsplit=1)
        page = "".join((before, f"{begin}\n\n{text.strip()}\n\n{end}", after))
    return page


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """As Markdown has it."""
    return "\n".join(_row(cells) for cells in (head, ["---"] * len(head), *rows))


def tables_in(said: str) -> str:
    """The headings and tables of what a program has printed, each heading one level deeper."""
    kept: list[str] = []
    for line in said.splitlines():
        if line.startswith("### "):
            kept += [*([""] if kept and kept[-1] else []), f"**{line[4:].capitalize()}**", ""]
        elif line.startswith("| "):
            kept.append(line)
        elif kept and kept[-1]:
            kept.append("")
    return "\n".join(kept).strip()


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
