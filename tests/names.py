"""Holds each public class and alias to a name of its own: `python -m tests.names` tells those that mean two things.

Owns what counts: classes and aliases that begin with a capital at the top of a module. The client is a project of its
own, which speaks of the same things to other people; a type variable is a hole, no name. `names.toml` has the names
that stand in several modules nevertheless, each under its reason; one that does so no more is told too.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
ROOMS: Final = ("contracts/headgate_contracts", "libs", "services")
ELSEWHERE: Final = "libs/client/"


def names_in(source: str) -> Iterator[str]:
    """The public classes and aliases of a module."""
    for node in ast.parse(source).body:
        match node:
            case ast.ClassDef(name=name) if not name.startswith("_"):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_alias(name, value):
                yield name
            case _:
                pass


def _is_alias(name: str, value: ast.expr) -> bool:
    is_variable = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "TypeVar"
    return name[0].isupper() and not name.isupper() and "_" not in name and not is_variable


def shared(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Path → text: the names that stand in more than one of the modules, and in which."""
    found = defaultdict[str, list[str]](list)
    for path, text in sources.items():
        for name in dict.fromkeys(names_in(text)):
            found[name].append(path)
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def complaints(several: Mapping[str, list[str]], excepted: Iterable[str]) -> list[str]:
    """What is to be mended: names, and exceptions."""
    known = set(excepted)
    twice = [f"{name}: {', '.join(paths)}" for name, paths in sorted(several.items()) if name not in known]
    return twice + [f"{name}: no exception is needed any more" for name in sorted(known - several.keys())]


def _sources() -> Iterator[tuple[str, str]]:
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            where = path.relative_to(ROOT).as_posix()
            if not where.startswith(ELSEWHERE):
                yield where, path.read_text()


def main() -> int:
    """How many complaints there are decides; each is a line."""
    reasons = tomllib.loads(Path(__file__).with_name("names.toml").read_text())
    excepted = [name for names in reasons.values() for name in names]
    said = complaints(shared(dict(_sources())), excepted)
    for line in said:
        sys.stderr.write(f"{line}\n")
    return bool(said)


if __name__ == "__main__":
    sys.exit(main())
