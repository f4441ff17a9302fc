"""One mistake in one file: made from its syntax tree, and put in the place of what is imported.

A mistake in a function goes into the function that is there, whoever has imported it by name. One in data takes the
data's place in each module that has imported it by name.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from tests.mutants.operators import IN_DATA, IN_FUNCTIONS, Operator

OURS: Final = ("headgate_contracts", "libs", "services", "tests")


@dataclass(frozen=True, slots=True)
class Mutant:
    """`name` is the same as long as the line is: where it is, what stood there, what stands there now."""

    module: str
    function: str  # by its path in the module; empty: in the data
    name: str
    lines: range  # of the statement that it is in
    tree: ast.Module  # the sound one
    place: ast.AST
    change: ast.AST | None

    def code(self) -> CodeType:
        return compile(_changed(self.tree, self.place, self.change), f"<{self.module}, mutated>", "exec")

    def plant(self) -> None:
        """Into this process, for good."""
        if self.function:
            place = _function(sys.modules[self.module], self.function)
            place.__code__ = _code_of(self.code(), self.function)
        else:
            self._plant_data()

    def _plant_data(self) -> None:
        """Wherever it was imported to by its name; what was made of it since stays sound."""
        wrong: dict[str, Any] = {"__name__": self.module}
        exec(self.code(), wrong)  # noqa: S102 - our own file, with one mistake
        sound = vars(sys.modules[self.module])
        other = {id(sound[name]): wrong[name] for name in sound if name[0] != "_" and wrong[name] is not sound[name]}
        for module in tuple(sys.modules.values()):
            if module.__name__.partition(".")[0] in OURS:
                vars(module).update({name: other[id(it)] for name, it in vars(module).items() if id(it) in other})


def mutants_of(module: str, source: str, *, data: bool) -> Iterator[Mutant]:
    """All of a file: of its data, or of its functions."""
    tree, seen = ast.parse(source), Counter[str]()
    lines = _lines_of(tree)
    kinds = IN_DATA if data else IN_FUNCTIONS
    for place, function in _places(tree, data=data):
        for change in _changes(place, kinds):
            before, after = _said(place, change)
            where = f"{function or 'data'}: `{before}` → `{after}`"
            seen[where] += 1
            name = where if seen[where] == 1 else f"{where} ({seen[where]})"
            yield Mutant(module, function, name, lines[id(place)], tree, place, change)


def _lines_of(tree: ast.Module) -> dict[int, range]:
    """The lines of the innermost statement around each node: who reaches none of them does not reach the node."""
    lines = dict[int, range]()
    for statement in ast.walk(tree):  # outer ones first
        if isinstance(statement, ast.stmt):
            around = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
            lines.update((id(node), around) for node in ast.walk(statement))
    return lines


def _places(tree: ast.Module, *, data: bool) -> Iterator[tuple[ast.AST, str]]:
    """Every node that may be mistaken, and the function that it is in. Annotations and defaults are not code of one."""
    for node, path in _walk(tree, ()):
        if data == (not path):
            yield node, ".".join(path)


def _walk(node: ast.AST, path: tuple[str, ...], *, inside: bool = False) -> Iterator[tuple[ast.AST, tuple[str, ...]]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            named = path if inside else (*path, child.name)
            for line in child.body:
                if not inside:
                    yield line, named
                yield from _walk(line, named, inside=True)
        elif isinstance(child, ast.ClassDef):
            yield from _in_class(child, (*path, child.name))
        elif isinstance(child, ast.AnnAssign) and child.value is not None:
            yield child.value, path
            yield from _walk(child.value, path, inside=inside)
        elif not isinstance(child, ast.arguments | ast.Import | ast.ImportFrom):
            yield child, path
            yield from _walk(child, path, inside=inside)


def _in_class(node: ast.ClassDef, path: tuple[str, ...]) -> Iterator[tuple[ast.AST, tuple[str, ...]]]:
    methods = [line for line in node.body if isinstance(line, ast.FunctionDef | ast.AsyncFunctionDef)]
    yield from _walk(ast.Module(list(methods), []), path)


def _changes(place: ast.AST, kinds: Mapping[type[ast.AST], tuple[Operator, ...]]) -> Iterator[ast.AST | None]:
    for operator in kinds.get(type(place), ()):
        yield from operator(place)


def _said(place: ast.AST, change: ast.AST | None) -> tuple[str, str]:
    """Of a condition only itself: not what hangs on it."""
    if isinstance(place, ast.If | ast.While) and isinstance(change, ast.If | ast.While):
        return _text(place.test), _text(change.test)
    return _text(place), "nothing" if change is None else _text(change)


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split()).replace("|", "∪")


def _changed(tree: ast.Module, place: ast.AST, change: ast.AST | None) -> ast.Module:
    memo: dict[int, Any] = {id(place): ast.Pass() if change is None else copy.deepcopy(change)}
    return ast.fix_missing_locations(copy.deepcopy(tree, memo))


def _function(module: ModuleType, path: str) -> FunctionType:
    found: Any = module
    for name in path.split("."):
        found = vars(found)[name]
    for wrapped in ("fget", "__func__", "__wrapped__"):
        found = getattr(found, wrapped, found)
    assert isinstance(found, FunctionType), path
    return found


def _code_of(code: CodeType, path: str) -> CodeType:
    """Of the function, as a class or a module holds it."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_qualname == path:
                return each
            if path.startswith(f"{each.co_qualname}."):
                return _code_of(each, path)
    raise LookupError(path)
