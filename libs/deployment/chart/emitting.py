"""A tree of manifests as the text of a Helm template: pure."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Final

from libs.deployment.chart.tree import ABSENT, Expression, Node, When, keyed, listed

_BRACES: Final = '{{ "{{" }}'  # what is a template of somebody else's is a text here
_PLAIN: Final = re.compile(r"[A-Za-z/$][\w./:$()=-]*(?<!:)")
_WORDS: Final = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}  # to one reader of YAML or another


def document(node: Node) -> str:
    """One manifest, or nothing where its condition does not hold."""
    return "\n".join(_manifest(node)) + "\n"


def _manifest(node: Node) -> Iterator[str]:
    if isinstance(node, When):
        yield from _branches(node, _manifest)
    else:
        yield "---"
        yield from _lines(node, 0)


def _lines(node: Node, depth: int) -> Iterator[str]:
    if keyed(node):
        for key, value in node.items():
            yield from _entry(key, value, depth)
    else:
        for item in node:
            yield from _item(item, depth)


def _entry(key: str, value: Node, depth: int) -> Iterator[str]:
    if isinstance(value, When):
        yield from _branches(value, lambda side: _entry(key, side, depth))
        return
    head = f"{' ' * depth}{_scalar(key)}:"
    if value and (keyed(value) or listed(value)):
        yield head
        yield from _lines(value, depth + (2 if keyed(value) else 0))
    else:
        yield from _leaf(head, value, depth + 2)


def _item(value: Node, depth: int) -> Iterator[str]:
    if isinstance(value, When):
        yield from _branches(value, lambda side: _item(side, depth))
        return
    head = " " * depth + "-"
    if value and (keyed(value) or listed(value)):
        first, *rest = _lines(value, depth + 2)
        if first.startswith("{{"):  # a condition stands in a line of its own
            yield head
            yield first
        else:
            yield f"{head} {first[depth + 2 :]}"
        yield from rest
    else:
        yield from _leaf(head, value, depth + 2)


def _branches(node: When, lines_of: Callable[[Node], Iterator[str]]) -> Iterator[str]:
    then, otherwise = ([] if side is ABSENT else list(lines_of(side)) for side in (node.then, node.otherwise))
    yield f"{{{{- if {node.condition} }}}}" if then else f"{{{{- if not ({node.condition}) }}}}"
    yield from then or otherwise
    if then and otherwise:
        yield "{{- else }}"
        yield from otherwise
    yield "{{- end }}"


def _leaf(head: str, value: Node, depth: int) -> Iterator[str]:
    if isinstance(value, Expression):
        yield f"{head} {value.text}"
    elif isinstance(value, str) and _is_block(value):
        yield f"{head} |" if value.endswith("\n") else f"{head} |-"
        yield from (f"{' ' * depth}{_escaped(line)}" if line else "" for line in value.removesuffix("\n").split("\n"))
    else:
        yield f"{head} {_scalar(value)}"


def _is_block(text: str) -> bool:
    """What a block says as it is: it begins and ends with a line that says something."""
    body = text.removesuffix("\n")
    return "\n" in body and not re.match(r"\s", text) and not body.endswith("\n")


def _scalar(value: Node) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return _escaped(json.dumps(value, ensure_ascii=False))


def _escaped(text: str) -> str:
    return text.replace("{{", _BRACES)
