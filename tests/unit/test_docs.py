"""The pages say what is there: commands that can be pasted, links that lead somewhere, every package."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
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


def test_every_package_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    rows = re.findall(r"^\| ([a-z].*?) \|", (ROOT / "docs" / "packages.md").read_text(encoding="utf-8"), re.MULTILINE)

    told = [name for row in rows if row != "package" for name in row.split(", ")]

    assert sorted(told) == sorted(set(_named(project)))


def _named(project: dict[str, Any]) -> Iterator[str]:
    groups = project["dependency-groups"].values()
    named = [*project["project"]["dependencies"], *(each for group in groups for each in group)]
    return (re.split(r"[^a-z0-9-]", each)[0] for each in named if isinstance(each, str))
