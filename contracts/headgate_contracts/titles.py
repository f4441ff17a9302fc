"""What a job is called: what its submission says, else the first line of its prompt. Pure."""

import json
from typing import Any, Final

MOST_TITLE: Final = 200  # characters


def title_of(asked: str | None, content: dict[str, Any]) -> str:
    """Empty for an input without words."""
    return asked or first_line(content.get("prompt"))


def title_in(content: bytes) -> str:
    """Of an input as it is kept."""
    found: Any = json.loads(content)
    return title_of(None, found) if isinstance(found, dict) else ""  # pyright: ignore[reportUnknownArgumentType] - of anything


def first_line(prompt: object) -> str:
    """Without what would do more than stand there: tabs, escapes and other controls."""
    if not isinstance(prompt, str):
        return ""
    lines = (" ".join("".join(_shown(each) for each in line).split()) for line in prompt.splitlines())
    line = next(filter(None, lines), "")
    return line if len(line) <= MOST_TITLE else f"{line[: MOST_TITLE - 1].rstrip()}…"


def _shown(character: str) -> str:
    return " " if character < " " or "\x7f" <= character <= "\x9f" else character
