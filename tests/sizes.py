"""Holds the files of the services and libraries to bounds that only get stricter: `python -m tests.sizes`.

Owns what is counted: Python below `ROOMS`. A line of code is one that is neither blank nor a comment, nor part of a
docstring. Entry points, and the tables of shapes and numbers that other people read as a whole, have no bound.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
ROOMS: Final = ("contracts/headgate_contracts", "libs", "services")
ENTRIES: Final = frozenset({"__init__.py", "__main__.py", "errors.py", "openapi.py", "ports.py", "settings.py"})
TABLES: Final = frozenset(
    {
        "contracts/headgate_contracts/events.py",
        "contracts/headgate_contracts/shown.py",
        "libs/capacity/answers.py",
        "libs/policy/sections.py",
    }
)
MOST_LINES: Final = 400
SMALL: Final = 29  # lines of code
MOST_SMALL: Final = 37  # none is meant
MOST_IMPORTED: Final = 0.14  # of the lines of code
MOST_PROTOCOLS: Final = 35  # some 30 are meant


@dataclass(frozen=True, slots=True)
class Counted:
    """One file. `imports` of its `lines` are for imports, `code` are code."""

    path: str
    lines: int
    imports: int
    code: int
    protocols: int

    @property
    def is_entry(self) -> bool:
        return self.path.rpartition("/")[2] in ENTRIES


def counted(path: str, text: str) -> Counted:
    tree, lines = ast.parse(text), text.splitlines()
    imports, said, protocols = set[int](), set[int](), 0
    for node in ast.walk(tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                imports.update(_lines_of(node))
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                if ast.get_docstring(node, clean=False) is not None:
                    said.update(_lines_of(node.body[0]))
                if isinstance(node, ast.ClassDef):
                    protocols += any(ast.unparse(base).partition("[")[0] == "Protocol" for base in node.bases)
            case _:
                pass
    code = [n for n, line in enumerate(lines, 1) if n not in said and line.strip() and not line.strip().startswith("#")]
    return Counted(path, len(lines), len(imports), len(code), protocols)


def _lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def complaints(files: Iterable[Counted]) -> Iterator[str]:
    """What is beyond a bound."""
    every = list(files)
    for each in every:
        if each.lines > MOST_LINES and each.path not in TABLES:
            yield f"{each.path}: {each.lines} lines, {MOST_LINES} are the limit: split what nobody reads together"
    small = [each.path for each in every if each.code < SMALL and not each.is_entry]
    if len(small) > MOST_SMALL:
        yield f"{len(small)} files have under {SMALL} lines of code, {MOST_SMALL} are the limit: {', '.join(small)}"
    share = share_of_imports(every)
    if share > MOST_IMPORTED:
        yield f"{share:.2%} of the code is imports, {MOST_IMPORTED:.1%} are the limit: merge what is read together"
    protocols = sum(each.protocols for each in every)
    if protocols > MOST_PROTOCOLS:
        yield f"{protocols} Protocols, {MOST_PROTOCOLS} are the limit: one for each far end"


def share_of_imports(files: Iterable[Counted]) -> float:
    every = list(files)
    return sum(each.imports for each in every) / max(1, sum(each.code for each in every))


def files_below(root: Path) -> Iterator[Counted]:
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            yield counted(path.relative_to(root).as_posix(), path.read_text())


def main() -> int:
    """How many complaints there are decides; each is a line."""
    said = list(complaints(files_below(ROOT)))
    for line in said:
        sys.stderr.write(f"{line}\n")
    return bool(said)


if __name__ == "__main__":
    sys.exit(main())
