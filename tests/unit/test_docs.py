"""The pages say what is there: commands that can be pasted, links that lead somewhere, every package."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from libs.cli.arguments import parse

ROOT: Final = Path(__file__).parents[2]
WHERE: Final = (
    "*.md",
    ".github/**/*.md",
    "docs/**/*.md",
    "contracts/*.md",
    "libs/*/*.md",
    "services/*/*.md",
    "tests/*/*.md",
)
PAGES: Final = sorted(page for pattern in WHERE for page in ROOT.glob(pattern))
BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
SHELLS: Final = {"", "sh", "bash"}
COMMAND: Final = ".venv/bin/headgate"
MADE: Final = {"output", "plot"}  # files that a command writes
LINK: Final = re.compile(r"\]\(([^)#:]*)(?:#([^):]*))?\)")
HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)
EVERY: Final = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))

# The pages that name what stands in the code, and where they may name something else.
NAMING: Final = (
    "docs/ARCHITECTURE.md",
    "docs/glossary.md",
    "docs/design/*.md",
    "libs/*/README.md",
    "services/*/README.md",
)
NAMES: Final = pytest.mark.parametrize(
    "page", sorted(page for pattern in NAMING for page in ROOT.glob(pattern)), ids=lambda page: page.name
)
ELSEWHERE: Final = {
    "windows.py": "what a file was called when a reader looked for its rule",
    "refusals.py": "the same",
    "flush_interval": "an option of Caddy's that is not set",
    "Proto": "the end of a header's name",
    "PR_SET_DUMPABLE": "the kernel's word; the code has its number",
    "_v2": "the next version of any script",
}
SOURCES: Final = ("contracts", "libs", "services", "tests", "k8s", ".ci")
FENCED: Final = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
SPAN: Final = re.compile(r"`([^`]+)`")
WORD: Final = re.compile(r"[A-Za-z0-9_]+")
FILE: Final = re.compile(r"[\w./-]*\w\.(?:py|lua|js|css|toml|yaml|conf|json|template)\b")


def blocks(page: Path) -> list[str]:
    """What a page has for a shell."""
    return [text for language, text in BLOCK.findall(page.read_text(encoding="utf-8")) if language in SHELLS]


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each command of ours in a block of the page, without the name and what is set before it."""
    for block in blocks(page):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True) if re.search(r"\bheadgate ", line) else []
            if COMMAND in words:
                yield words[words.index(COMMAND) + 1 :]


def anchors(page: Path) -> set[str]:
    """The names by which the headings of a page are linked to, as GitHub makes them."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@EVERY
def test_every_command_of_ours_on_a_page_can_be_pasted(page: Path) -> None:
    """By one name, with words that the command knows, and with files that are there."""
    for words in commands(page):
        if "--help" not in words:
            asked = {name: value for name, value in vars(parse(words)).items() if name not in MADE}
            assert [value for value in asked.values() if isinstance(value, Path) and not (ROOT / value).exists()] == []
    assert re.findall(r"^headgate .*", "".join(blocks(page)), re.MULTILINE) == []


@EVERY
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    """To a file that is there, and to a heading of it where one is named."""
    dead = [
        f"{link}#{heading}"
        for link, heading in LINK.findall(page.read_text(encoding="utf-8"))
        if not (target := page.parent / link if link else page).exists() or (heading and heading not in anchors(target))
    ]

    assert dead == []


@NAMES
def test_every_name_in_code_on_a_page_stands_in_the_tree(page: Path) -> None:
    """Classes, functions, fields and files, so that none keeps a name on a page that it has lost in the code."""
    spans = SPAN.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
    named = {name for span in spans for name in (*_identifiers(span), *FILE.findall(span))}

    assert sorted(name for name in named if not _is_there(name) and name not in ELSEWHERE) == []


@NAMES
def test_what_a_table_says_is_in_a_file_is_in_it(page: Path) -> None:
    """A row that begins with names and has one file, and no more, in another column."""
    before: list[Path] = []
    astray: list[str] = []
    for row in re.findall(r"^\|(.+)\|$", page.read_text(encoding="utf-8"), re.MULTILINE):
        name, *others = [cell.strip() for cell in row.split("|")]
        files = before if "the same" in others else [file for cell in others for file in _file_alone(cell)]
        before = files
        words = {word for file in files for word in WORD.findall(file.read_text(encoding="utf-8"))}
        astray += [each for span in SPAN.findall(name) for each in _identifiers(span) if files and each not in words]

    assert astray == []


def _identifiers(span: str) -> list[str]:
    """The words that only code has: with a capital at their beginning, or parted by `_`. None of a file's name."""
    text = FILE.sub("", span)
    return [word for word in WORD.findall(text) if re.match(r"[A-Z][a-z]", word) or "_" in word.strip("_")]


def _file_alone(cell: str) -> list[Path]:
    """The file that a cell consists of, wherever in the tree it is; none where the cell says more."""
    named = re.fullmatch(r"`([\w./-]+\.(?:py|js))`", cell)
    return [file for file in _sources() if named and f"/{file}".endswith(f"/{named[1]}")]


def _is_there(name: str) -> bool:
    if FILE.fullmatch(name) and any(f"/{file}".endswith(f"/{name}") for file in _sources()):
        return True
    return name in _words() or (name.startswith("test_") and f"{name}.py" in {file.name for file in _sources()})


@cache
def _sources() -> tuple[Path, ...]:
    """All that is written by hand or made, but for what others have made, and pages."""
    below = (file for folder in SOURCES for file in (ROOT / folder).rglob("*"))
    return tuple(
        file for file in below if file.is_file() and not {"node_modules", "vendor", "__pycache__"} & set(file.parts)
    )


@cache
def _words() -> frozenset[str]:
    """Every word of the sources, and every name of a file that they hold in a text."""
    found = set[str]()
    for file in _sources():
        with suppress(UnicodeDecodeError):
            text = file.read_text(encoding="utf-8") if file.suffix != ".md" else ""
            found.update(WORD.findall(text), FILE.findall(text))
    return frozenset(found)


def test_every_package_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    rows = re.findall(r"^\| ([a-z].*?) \|", (ROOT / "docs" / "packages.md").read_text(encoding="utf-8"), re.MULTILINE)

    told = [name for row in rows if row != "package" for name in row.split(", ")]

    assert sorted(told) == sorted(set(_named(project)))


def _named(project: dict[str, Any]) -> Iterator[str]:
    groups = project["dependency-groups"].values()
    named = [*project["project"]["dependencies"], *(each for group in groups for each in group)]
    return (re.split(r"[^a-z0-9-]", each)[0] for each in named if isinstance(each, str))
