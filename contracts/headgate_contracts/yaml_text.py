"""A document as YAML that people read: blocks, no anchors, texts in quotes only where they need them.

Owns the little of YAML that a generated document needs. Refuses to read any.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

_PLAIN: Final = re.compile(r"[A-Za-z_/$(.][A-Za-z0-9_/$(){}.,;+=' -]*[A-Za-z0-9_/)}.]|[A-Za-z_]")
_WORDS_OF_YAML: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def yaml_text(document: Mapping[str, Any]) -> str:
    """The document, a line for each scalar."""
    return "\n".join(_mapping(document, "")) + "\n"


def _mapping(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    for name, entry in value.items():
        yield from _entry(f"{indent}{_scalar(name)}:", entry, f"{indent}  ")


def _sequence(value: Sequence[Any], indent: str) -> Iterator[str]:
    for entry in value:
        lines = list(_entry(f"{indent}-", entry, f"{indent}  "))
        if len(lines) > 1 and lines[0] == f"{indent}-":  # the first line of a block stands beside its dash
            lines[:2] = [f"{indent}- {lines[1].lstrip()}"]
        yield from lines


def _entry(head: str, value: Any, indent: str) -> Iterator[str]:
    match value:
        case Mapping() if value:
            yield head
            yield from _mapping(cast("Mapping[str, Any]", value), indent)
        case list() | tuple() if value:
            yield head
            yield from _sequence(cast("Sequence[Any]", value), indent)
        case str() if "\n" in value:
            yield f"{head} |-"
            yield from (f"{indent}{line}".rstrip() for line in value.splitlines())
        case _:
            yield f"{head} {_scalar(value)}"


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS_OF_YAML:
        return value
    return json.dumps(value, ensure_ascii=False)
