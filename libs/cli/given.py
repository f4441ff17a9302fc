"""What is given to a command beside plain words: JSON, a file of it, labels."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from libs.cli.errors import Usage


def labels(pairs: Iterable[str]) -> dict[str, str] | None:
    """NAME=VALUE, many times; null where there is none."""
    found = dict[str, str]()
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise Usage(what=f"--label {pair} is no label: write it as name=value.")
        found[name] = value
    return found or None


def json_in(text: str, *, option: str) -> object:
    """What the text says, or the file that it names after an @."""
    if text.startswith("@"):
        return json_of_file(text[1:], option=option)
    return _parsed(text, option, ": write JSON, or @ and the name of a file that holds it")


def json_of_file(name: str, *, option: str) -> object:
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise Usage(what=f"{option}: {name} cannot be read ({why}).") from error
    return _parsed(text, f"{option} {name}")


def _parsed(text: str, what: str, remedy: str = "") -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise Usage(what=f"{what} is not JSON ({error}){remedy}.") from error
