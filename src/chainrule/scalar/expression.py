"""Expressions written as text: `w6 * (w3 + w1 * w2)` becomes a graph of Values. Nothing is executed as Python.

A text is one expression, or lines such as `h = w * x` that name what later lines use; the last one is the root.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from chainrule.errors import ConfigError
from chainrule.scalar.engine import Value, as_value

FUNCTIONS = ("exp", "log", "sin", "cos", "tanh", "sigmoid", "relu", "sqrt")
LONGEST = 500  # characters: more is unreadable as a graph
ROOT = "result"  # the name of a root that the text does not name


@dataclass(frozen=True)
class Expression:
    """A text that was read: its `variables` in the order of their appearance, and the name of its `root`.

    >>> found = Expression.read("w6 * (w3 + w1 * w2)")
    >>> found.variables
    ('w6', 'w3', 'w1', 'w2')
    >>> nodes = found.graph({"w1": 2, "w2": -3, "w3": 10, "w6": -2})
    >>> nodes["result"].backward()
    >>> nodes["result"].data, nodes["w1"].grad
    (-8.0, 6.0)
    """

    lines: tuple[tuple[str, ast.expr], ...]
    variables: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> Expression:
        """The expression of a text; lines are separated by line ends or semicolons."""
        if len(text) > LONGEST:
            raise ConfigError(f"expression: {len(text)} characters (at most {LONGEST})")
        try:
            body = ast.parse("\n".join(line.strip() for line in text.replace(";", "\n").splitlines())).body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            where = f" at {error.text.strip()!r}" if isinstance(error, SyntaxError) and error.text else ""
            raise ConfigError(f"expression: cannot be read{where} (such as: w * x + b)") from None
        lines = tuple(_line(statement, last=statement is body[-1]) for statement in body)
        if not lines:
            raise ConfigError("expression: is empty (such as: w * x + b)")
        made: list[str] = []
        variables: dict[str, None] = {}
        for name, value in lines:
            variables.update(dict.fromkeys(each for each in _names(value) if each not in made))
            if name in made or name in variables:
                raise ConfigError(f"expression: {name} gets two meanings (each name must have one)")
            made.append(name)
        return cls(lines, tuple(variables))

    @property
    def root(self) -> str:
        """The name of the last line."""
        return self.lines[-1][0]

    def graph(self, values: Mapping[str, float]) -> dict[str, Value]:
        """The named nodes: a leaf for each variable, then what each line names; labels are the names."""
        missing = [name for name in self.variables if name not in values]
        if missing:
            raise ConfigError(f"expression: {', '.join(missing)} without a value (must be a number each)")
        nodes = {name: Value(values[name], label=name) for name in self.variables}
        for name, line in self.lines:
            node = as_value(_evaluate(line, nodes))
            if node.label:  # `a = b` gives another name to the same node
                node = node + 0
            node.label = name
            nodes[name] = node
        return nodes

    def python(self, values: Mapping[str, float]) -> str:
        """The same as a program: values, the expression, backward, and what is printed."""
        leaves = [f"{name} = Value({float(values[name])!r})" for name in self.variables]
        lines = [f"{name} = {ast.unparse(_as_program(value))}" for name, value in self.lines]
        shown = ", ".join(f'"{name}": {name}.grad' for name in self.variables)
        end = [f"{self.root}.backward()", f"print({self.root}.data, {{{shown}}})"]
        return "\n".join(["from chainrule.scalar import Value", "", *leaves, *lines, "", *end, ""])


@dataclass(frozen=True)
class Share:
    """What a node passes on to one of its children: its gradient times the slope; `total` is the child's so far."""

    child: Value
    slope: float
    amount: float
    total: float


def backward_steps(root: Value) -> Iterator[tuple[Value, float, list[Share]]]:
    """The backward pass step by step: each node with its final gradient and the shares of its children.

    >>> x = Value(3)
    >>> [[share.total for share in shares] for _, _, shares in backward_steps(x * x + x)]
    [[1.0, 1.0], [4.0, 7.0], []]
    """
    total = {root: 1.0}
    for node in root.graph():
        shares = []
        for child, slope in zip(node.children, node.slopes, strict=True):
            total[child] = total.get(child, 0.0) + slope * total[node]  # [SC.2]
            shares.append(Share(child, slope, slope * total[node], total[child]))
        yield node, total[node], shares


def _line(statement: ast.stmt, *, last: bool) -> tuple[str, ast.expr]:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            if name in FUNCTIONS:
                raise ConfigError(f"expression: {name} is a function (must be another name)")
            return name, _checked(value)
        case ast.Expr(value=value) if last:
            return ROOT, _checked(value)
        case ast.Expr():
            rule = "only the last line may be without a name: h = ..."
            raise ConfigError(f"expression: {ast.unparse(statement)} is not used ({rule})")
    raise ConfigError(
        f"expression: {ast.unparse(statement)!r} (must be numbers, names, + - * / ** and functions)"
    )


def _checked(node: ast.expr) -> ast.expr:
    """The node, if it is made of numbers, names, arithmetic and the known functions."""
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float()) | ast.Name():
            return node
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=inner):
            _checked(inner)
            return node
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            _checked(left)
            _number(right)
            return node
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right=right):
            _checked(left)
            _checked(right)
            return node
        case ast.BinOp(op=ast.BitXor()):
            raise ConfigError(f"expression: {ast.unparse(node)} (a power is written x ** 2)")
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in FUNCTIONS:
            _checked(inner)
            return node
        case ast.Call(func=ast.Name(id=name)):
            raise ConfigError(
                f"expression: {name}(...) (must be a function of one number: {', '.join(FUNCTIONS)})"
            )
    raise ConfigError(f"expression: {ast.unparse(node)!r} (must be numbers, names, + - * / ** and functions)")


def _number(node: ast.expr) -> float:
    """The number of an exponent."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            if abs(value) > 1e308 or not math.isfinite(value):
                raise ConfigError(f"expression: the exponent {value:g} (must be a finite number)")
            return float(value)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_number(inner)
    rule = "an exponent must be a number; x ** y is exp(y * log(x))"
    raise ConfigError(f"expression: the exponent {ast.unparse(node)} ({rule})")


def _names(node: ast.expr) -> Iterator[str]:
    """The names in an expression from left to right, without functions."""
    match node:
        case ast.Name(id=name):
            yield name
        case ast.UnaryOp(operand=inner) | ast.Call(args=[inner]):
            yield from _names(inner)
        case ast.BinOp(left=left, right=right):
            yield from _names(left)
            yield from _names(right)


def _evaluate(node: ast.expr, nodes: Mapping[str, Value]) -> Value:
    match node:
        case ast.Name(id=name):
            return nodes[name]
        case ast.Constant(value=int() | float() as value):
            return Value(value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return Value(-value)
        case ast.UnaryOp(op=op, operand=inner):
            found = _evaluate(inner, nodes)
            return -found if isinstance(op, ast.USub) else found
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _evaluate(left, nodes) ** _number(right)
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _evaluate(left, nodes), _evaluate(right, nodes)
            match op:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
            return a / b
        case ast.Call(func=ast.Name(id=name), args=[inner]):
            found = _evaluate(inner, nodes)
            return found**0.5 if name == "sqrt" else getattr(found, name)()
    raise AssertionError("every node was checked")


def _as_program(node: ast.expr) -> ast.expr:
    """`tanh(x)` as the method of Value that it is, `x.tanh()`; what has no names becomes a Value first."""
    if not any(True for _ in _names(node)):
        return ast.Call(ast.Name("Value"), [node], []) if isinstance(node, ast.Constant) else _constant(node)
    match node:
        case ast.Call(func=ast.Name(id=name), args=[inner]):
            made = _as_program(inner)
            if name == "sqrt":
                return ast.BinOp(made, ast.Pow(), ast.Constant(0.5))
            return ast.Call(ast.Attribute(made, name), [], [])
        case ast.UnaryOp(op=op, operand=inner):
            return ast.UnaryOp(op, _as_program(inner)) if isinstance(op, ast.USub) else _as_program(inner)
        case ast.BinOp(left=left, op=op, right=right):
            plain = isinstance(op, ast.Pow)
            return ast.BinOp(_operand(left), op, right if plain else _operand(right))
    return node


def _operand(node: ast.expr) -> ast.expr:
    """A number may stand beside a Value."""
    return node if isinstance(node, ast.Constant) else _as_program(node)


def _constant(node: ast.expr) -> ast.expr:
    """An expression of numbers alone, as the Value that it is."""
    return ast.Call(ast.Name("Value"), [ast.Constant(_evaluate(node, {}).data)], [])
