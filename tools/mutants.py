"""Mutants: a source with one small mistake, made from its syntax tree."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

Node: TypeAlias = ast.expr | ast.stmt

# What takes the place of an operator.
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
# Subtrees that no test of behavior can see, or whose places in the text are not exact: messages, types, examples.
OPAQUE = (ast.JoinedStr, ast.Raise, ast.Import, ast.ImportFrom)
TYPES = {"annotation", "returns"}
EXAMPLES = {"example", "examples", "shapes", "overload", "TypeVar", "cast", "dataclass", "Example"}


@dataclass(frozen=True)
class Mutant:
    """The text of a file with one change, at `line`; all other lines stay where they are."""

    path: Path
    line: int
    kind: str
    text: str
    in_function: bool
    """The change is inside the body of a function, which nothing runs before it is called."""


def mutants(path: Path) -> list[Mutant]:
    """Every mutant of a file, in the order of its text."""
    source = path.read_bytes()
    found = []
    for node, inside in sorted(seen(ast.parse(source)), key=lambda pair: pair[0].lineno):
        for place, kind, new in changes(node):
            found.append(Mutant(path.resolve(), place.lineno, kind, replaced(source, place, new), inside))
    return found


def changes(node: Node) -> Iterator[tuple[Node, str, str]]:
    """Mistakes at a node: what to replace, the kind, and the new text."""
    if isinstance(node, ast.Compare | ast.BinOp | ast.BoolOp):
        yield from other_operators(node)
    elif isinstance(node, ast.AugAssign):
        if type(node.op) in OPERATORS:
            new = copy.deepcopy(node)
            new.op = OPERATORS[type(node.op)]()
            yield node, "operator", ast.unparse(new)
        yield node, "dropped", "pass"
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield from other_constants(node)
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        yield node.test, "negated", f"(not ({ast.unparse(node.test)}))"
    elif isinstance(node, ast.Raise) or can_be_dropped(node):
        yield node, "dropped", "pass"


def seen(node: ast.AST, inside: bool = False) -> Iterator[tuple[Node, bool]]:
    """The nodes below `node` that can be changed, and whether they are inside a function."""
    for name, value in ast.iter_fields(node):
        within = inside or (isinstance(node, ast.FunctionDef | ast.Lambda) and name == "body")
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or name in TYPES or only_for_types(child):
                continue
            if isinstance(child, ast.expr | ast.stmt):
                yield child, within
            called = child.func if isinstance(child, ast.Call) else None
            given_name = getattr(child, "name", None) or getattr(called, "id", None)
            if not isinstance(child, OPAQUE) and given_name not in EXAMPLES:
                yield from seen(child, within)


def only_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def other_operators(node: ast.Compare | ast.BinOp | ast.BoolOp) -> Iterator[tuple[Node, str, str]]:
    old = node.ops[0] if isinstance(node, ast.Compare) else node.op
    if type(old) in OPERATORS:
        new = copy.deepcopy(node)
        other = OPERATORS[type(old)]()
        if isinstance(new, ast.Compare):
            new.ops[0] = other
        else:
            new.op = other
        yield node, "comparison" if isinstance(node, ast.Compare) else "operator", f"({ast.unparse(new)})"


def other_constants(node: ast.Constant) -> Iterator[tuple[Node, str, str]]:
    if isinstance(node.value, bool):
        yield node, "constant", str(not node.value)
    else:
        yield node, "constant", repr(node.value + 1)
        yield node, "constant", f"({node.value - 1!r})"


def can_be_dropped(node: ast.AST) -> bool:
    """A call for its effect, or an assignment to a part of something: without it the rest can still be run."""
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], ast.Attribute | ast.Subscript)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def replaced(source: bytes, node: Node, new: str) -> str:
    """The source with the text of a node replaced, with as many lines as before; places count bytes."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    assert node.end_lineno is not None and node.end_col_offset is not None
    first = starts[node.lineno - 1] + node.col_offset
    last = starts[node.end_lineno - 1] + node.end_col_offset
    lost = "\n" * (node.end_lineno - node.lineno)
    padded = new[:-1] + lost + ")" if new.endswith(")") else new + lost
    return (source[:first] + padded.encode() + source[last:]).decode()
