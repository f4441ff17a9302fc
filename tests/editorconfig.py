"""Holds every file to `.editorconfig`: `python -m tests.editorconfig` names each line that is not as it says.

Owns what is compared: characters, ends of lines, indentation by spaces or tabs, trailing space, width. Refuses to know
the depth of an indentation, which is the formatters', and of Python the tabs and the width, which are ruff's.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from configparser import RawConfigParser
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
ALLOWED: Final = {"space": " ", "tab": "\t"}
MADE: Final = {"node_modules", "__pycache__", "dist", "site"}  # what programs leave, and git does not keep
OURS: Final = {".ci", ".github"}  # hidden folders that git keeps
BRACES: Final = re.compile(r"\{([^{}]*)\}")
Rules = dict[str, str]


def sections(text: str) -> list[tuple[list[str], Rules]]:
    """Each section's patterns, without braces, and what it says."""
    parser = RawConfigParser()
    parser.read_string(f"[top]\n{text}")
    return [(expand(name), dict(parser[name])) for name in parser.sections() if name != "top"]


def expand(pattern: str) -> list[str]:
    """`*.{a,b}` as `*.a` and `*.b`: fnmatch knows no braces."""
    found = BRACES.search(pattern)
    if not found:
        return [pattern]
    head, tail = pattern[: found.start()], pattern[found.end() :]
    choices = [full for choice in found[1].split(",") for full in expand(f"{head}{choice}{tail}")]
    return list(dict.fromkeys(choices))


def rules_of(path: str, config: list[tuple[list[str], Rules]]) -> Rules:
    """What holds for a file: of the sections that name it, the last one counts. A bare name matches in any folder."""
    rules: Rules = {}
    for patterns, said in config:
        if any(fnmatch(path if "/" in each else path.rpartition("/")[2], each) for each in patterns):
            rules |= said
    return rules


def faults(path: str, content: bytes, rules: Rules) -> Iterator[str]:
    """Each line that is not as the rules say. A file with a zero byte is no text."""
    if not content or b"\0" in content:
        return
    if rules.get("insert_final_newline") == "true" and not content.endswith(b"\n"):
        yield f"{path}: no newline at its end"
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        yield from [f"{path}: not UTF-8"] * (rules.get("charset") == "utf-8")
        return
    if path.endswith(".py"):
        rules = rules | {"indent_style": "unset", "max_line_length": "off"}
    exempt = _free_lines(lines) if path.endswith(".md") else set[int]()
    for number, line in enumerate(lines, start=1):
        for fault in _faults_of(line, rules, wide=number in exempt):
            yield f"{path}:{number}: {fault}"


def _faults_of(line: str, rules: Rules, *, wide: bool) -> Iterator[str]:
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    width = rules.get("max_line_length", "off")
    if rules.get("end_of_line") == "lf" and line.endswith("\r"):
        yield "ends in CR LF"
    if rules.get("trim_trailing_whitespace") == "true" and line.rstrip("\r").endswith((" ", "\t")):
        yield "trailing space"
    if indent.strip(ALLOWED.get(rules.get("indent_style", ""), " \t")):
        yield f"indented otherwise than by {rules['indent_style']}s"
    if width.isdigit() and len(line) > int(width) and not wide:
        yield f"{len(line)} wide, {width} is the limit"


def _free_lines(lines: list[str]) -> set[int]:
    """The lines of a page that cannot be wrapped: rows of tables, and what stands in blocks."""
    free, inside = set[int](), False
    for number, line in enumerate(lines, start=1):
        fence = line.lstrip().startswith("```")
        if inside or fence or line.lstrip().startswith("|"):
            free.add(number)
        inside ^= fence
    return free


def files(root: Path) -> Iterator[Path]:
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if name not in MADE and (name in OURS or not name.startswith("."))]
        yield from (Path(folder) / name for name in sorted(names) if not name.endswith((".pyc", ".tar.gz")))


def main() -> int:
    config = sections((ROOT / ".editorconfig").read_text(encoding="utf-8"))
    found = [
        fault
        for path in files(ROOT)
        for name in [path.relative_to(ROOT).as_posix()]
        for fault in faults(name, path.read_bytes(), rules_of(name, config))
    ]
    sys.stderr.writelines(f"{fault}\n" for fault in found)
    return min(len(found), 1)


if __name__ == "__main__":
    raise SystemExit(main())
