"""Manifests as trees in which some parts are there on a condition: pure.

A node is what YAML holds, or `When` (one of two, by a condition of the template), or `Expression` (what the template
puts there). `ABSENT` on one side of a `When` leaves out the key or the item.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

Node = Any  # what YAML holds, and these
ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Expression:
    """A text of the template that gives one value in a line."""

    text: str


@dataclass(frozen=True, slots=True)
class When:
    """One of two, by what stands behind `if`."""

    condition: str
    then: Node
    otherwise: Node = ABSENT


def keyed(node: Node) -> TypeGuard[dict[str, Node]]:
    return isinstance(node, dict)


def listed(node: Node) -> TypeGuard[list[Node]]:
    return isinstance(node, list)


def overlaid(tree: Node, base: Node, changed: Node, condition: str) -> Node:
    """The tree with the difference of `changed` to `base` on this condition. `base` is what the tree began as."""
    if base == changed:
        return tree
    if keyed(base) and keyed(changed) and keyed(tree):
        keys = dict.fromkeys([*tree, *changed])
        return {key: _of_key(key, tree, base, changed, condition) for key in keys}
    if listed(base) and listed(changed) and listed(tree) and len(base) <= len(changed):
        same = [overlaid(*each, condition) for each in zip(tree, base, changed, strict=False)]
        added = [When(condition, item) for item in changed[len(base) :]]
        return [*same, *tree[len(base) :], *added]
    return When(condition, changed, tree)


def _of_key(key: str, tree: Node, base: Node, changed: Node, condition: str) -> Node:
    if key in base and key in changed:
        return overlaid(tree[key], base[key], changed[key], condition)
    if key in changed:
        return When(condition, changed[key], tree.get(key, ABSENT))
    return When(condition, ABSENT, tree[key]) if key in base else tree[key]


def replaced(node: Node, path: Sequence[str | int], make: Callable[[Node], Node]) -> Node:
    """With what `make` gives for what stands at the path, through conditions; it is `ABSENT` where nothing stands."""
    if isinstance(node, When):
        sides = (side if side is ABSENT else replaced(side, path, make) for side in (node.then, node.otherwise))
        return When(node.condition, *sides)
    if not path:
        return make(node)
    step, *rest = path
    if isinstance(step, int):
        return [replaced(item, rest, make) if at == step else item for at, item in enumerate(node)]
    return {**node, step: replaced(node.get(step, ABSENT if not rest else {}), rest, make)}


def mapped(node: Node, make: Callable[[str, Node], Node], key: str = "") -> Node:
    """With what `make` gives for each leaf and the key that it stands at."""
    if isinstance(node, When):
        return When(node.condition, mapped(node.then, make, key), mapped(node.otherwise, make, key))
    if keyed(node):
        return {name: mapped(value, make, name) for name, value in node.items()}
    if listed(node):
        return [mapped(item, make, key) for item in node]
    return node if node is ABSENT else make(key, node)


def found(node: Node, key: str) -> Iterator[Node]:
    """Everything that stands at this key, however deep, on whatever condition."""
    if isinstance(node, When):
        yield from found(node.then, key)
        yield from found(node.otherwise, key)
    elif keyed(node):
        for name, value in node.items():
            yield from [value] if name == key else found(value, key)
    elif listed(node):
        for item in node:
            yield from found(item, key)
