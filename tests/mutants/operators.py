"""Small mistakes, as changes of a syntax tree: each function takes a node and gives what may stand in its place.

In functions: a comparison off by one or the wrong way round, a condition turned about, a sum for a difference, a number
one too high, a line left out, nothing returned. In data: an element left out, another member of the same enumeration.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

from headgate_contracts.vocabulary import ChangeReason, EventName, GivenBackReason, QueuedWhy, Status

Operator = Callable[[Any], Iterator[ast.AST | None]]  # null: the statement is left out

OTHER_COMPARISON: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OTHER_SUM: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
}
OTHER_CALL: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
MEMBERS: Final = {
    name: tuple(member.name for member in kind)
    for name, kind in {
        "Status": Status,
        "EventName": EventName,
        "QueuedWhy": QueuedWhy,
        "GivenBackReason": GivenBackReason,
        "ChangeReason": ChangeReason,
    }.items()
}
WRITERS: Final = ("_A", "_S", "_W")


def compare(node: ast.Compare) -> Iterator[ast.AST]:
    for number, operator in enumerate(node.ops):
        for other in OTHER_COMPARISON.get(type(operator), ()):
            changed = copy.deepcopy(node)
            changed.ops[number] = other()
            yield changed


def junction(node: ast.BoolOp) -> Iterator[ast.AST]:
    yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)


def negation(node: ast.UnaryOp) -> Iterator[ast.AST]:
    if isinstance(node.op, ast.Not | ast.USub):
        yield node.operand


def condition(node: ast.If | ast.IfExp | ast.While) -> Iterator[ast.AST]:
    """Turned about; a single comparison is turned about by itself already."""
    if not isinstance(node.test, ast.Compare | ast.UnaryOp):
        changed = copy.deepcopy(node)
        changed.test = ast.UnaryOp(ast.Not(), changed.test)
        yield changed


def arithmetic(node: ast.BinOp | ast.AugAssign) -> Iterator[ast.AST]:
    if other := OTHER_SUM.get(type(node.op)):
        changed = copy.deepcopy(node)
        changed.op = other()
        yield changed


def constant(node: ast.Constant) -> Iterator[ast.AST]:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield ast.Constant(node.value + 1)


def call(node: ast.Call) -> Iterator[ast.AST]:
    if isinstance(node.func, ast.Name) and node.func.id in OTHER_CALL:
        yield ast.Call(ast.Name(OTHER_CALL[node.func.id], ast.Load()), node.args, node.keywords)


def answer(node: ast.Return) -> Iterator[ast.AST]:
    if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
        yield ast.Return(ast.Constant(None))


def line(node: ast.stmt) -> Iterator[None]:
    """Left out: what is done for its effect. A plain name that is not set would only be missed."""
    if isinstance(node, ast.Expr):
        acts = not isinstance(node.value, ast.Constant | ast.Yield)
    elif isinstance(node, ast.Assign):
        acts = any(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
    else:
        acts = isinstance(node, ast.Raise | ast.AugAssign | ast.Delete | ast.Continue | ast.Break)
    if acts:
        yield None


IN_FUNCTIONS: Final[dict[type[ast.AST], tuple[Operator, ...]]] = {
    ast.Compare: (compare,),
    ast.BoolOp: (junction,),
    ast.UnaryOp: (negation,),
    ast.If: (condition,),
    ast.IfExp: (condition,),
    ast.While: (condition,),
    ast.BinOp: (arithmetic,),
    ast.AugAssign: (arithmetic, line),
    ast.Constant: (constant,),
    ast.Call: (call,),
    ast.Return: (answer,),
    ast.Raise: (line,),
    ast.Delete: (line,),
    ast.Continue: (line,),
    ast.Break: (line,),
    ast.Expr: (line,),
    ast.Assign: (line,),
}


# ── data ──────────────────────────────────────────────────────────────────────


def member(node: ast.Attribute) -> Iterator[ast.AST]:
    """The next one of the same enumeration."""
    names = MEMBERS.get(node.value.id, ()) if isinstance(node.value, ast.Name) else ()
    following = dict(pairwise((*names, *names[:1])))
    if node.attr in following:
        yield ast.Attribute(node.value, following[node.attr], ast.Load())


def writer(node: ast.Name) -> Iterator[ast.AST]:
    following = dict(pairwise((*WRITERS, WRITERS[0])))
    if isinstance(node.ctx, ast.Load) and node.id in following:
        yield ast.Name(following[node.id], ast.Load())


def union(node: ast.BinOp) -> Iterator[ast.AST]:
    if isinstance(node.op, ast.BitOr) and not isinstance(node.right, ast.Subscript):  # a type is no data
        yield from (node.left, node.right)


def fewer(node: ast.Tuple | ast.Set) -> Iterator[ast.AST]:
    if isinstance(node, ast.Set) or isinstance(node.ctx, ast.Load):
        for number in range(len(node.elts) if len(node.elts) > 1 else 0):
            changed = copy.deepcopy(node)
            del changed.elts[number]
            yield changed


def fewer_given(node: ast.Call) -> Iterator[ast.AST]:
    """Of what is given to a function of any number; a row's last words: its status then, and its causes."""
    named = node.func.id if isinstance(node.func, ast.Name) else ""
    for number in range(len(node.args)):
        if (named == "_from" and len(node.args) > 1) or (named == "Row" and number == len(node.args) - 1 > 2):
            changed = copy.deepcopy(node)
            del changed.args[number]
            yield changed


IN_DATA: Final[dict[type[ast.AST], tuple[Operator, ...]]] = {
    ast.Attribute: (member,),
    ast.Name: (writer,),
    ast.BinOp: (union,),
    ast.Tuple: (fewer,),
    ast.Set: (fewer,),
    ast.Call: (fewer_given,),
}
