"""The page of telemetry lists every line that a service can say, and none that it cannot."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "telemetry.md"
LEVELS = {"debug": "DEBUG", "info": "INFO", "warning": "WARNING", "error": "ERROR", "exception": "ERROR"}
LOGGERS = {"logger", "_log", "log"}


def test_the_page_lists_the_lines_of_the_code() -> None:
    begun, ended = "| line | level | from |\n|---|---|---|\n", "\n\n"
    table = PAGE.read_text(encoding="utf-8").partition(begun)[2].partition(ended)[0]

    assert table.strip().splitlines() == rows()


def rows() -> list[str]:
    """As they stand in the page."""
    said = {row for top in ("services", "libs") for path in (ROOT / top).rglob("*.py") for row in _rows(path)}
    return sorted(said, key=str.lower)


def _rows(path: Path) -> Iterator[str]:
    place = path.relative_to(ROOT).with_suffix("").as_posix().replace("/__main__", "")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr=level), args=[ast.Constant(value=str(words)), *_]
            ) if name in LOGGERS and level in LEVELS:
                yield f"| `{_shown(words)}` | {LEVELS[level]} | `{place}` |"
            case _:
                pass


def _shown(words: str) -> str:
    """With … for what differs from line to line."""
    for part in ("%s", "%d", "%g", "%.1f"):
        words = words.replace(part, "…")
    return words
