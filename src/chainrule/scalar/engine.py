"""Backpropagation on one screen: numbers that remember how they were computed.

Derivation: docs/derivations/scalar.md

An operation returns a Value with its number, the Values it was computed from (its children) and, for each child, the
slope: the partial derivative, a plain number. So the backward pass needs no calculus: multiply the slopes along every
path from the root, and add up the paths.
"""

from __future__ import annotations

import math
from collections import defaultdict
from numbers import Real

from chainrule.errors import ConfigError, GraphError


class Value:
    """A number in a computation graph.

    >>> w1, w2, w3, w6 = Value(2), Value(-3), Value(10), Value(-2)
    >>> L = w6 * (w3 + w1 * w2)
    >>> L.backward()
    >>> L.data, w1.grad
    (-8.0, 6.0)
    """

    __slots__ = ("children", "data", "grad", "label", "op", "slopes")
    __array_ufunc__ = None  # so that numpy_number * value calls Value, not NumPy

    data: float
    grad: float
    op: str  # the operation of this node; "" for a leaf
    children: tuple[Value, ...]
    slopes: tuple[float, ...]  # d self / d child, one for each child
    label: str

    def __init__(
        self,
        data: float,
        children: tuple[Value, ...] = (),
        slopes: tuple[float, ...] = (),
        op: str = "",
        label: str = "",
    ) -> None:
        if not _is_finite(data):
            raise ConfigError(f"{op or 'Value'}: got {data!r} (must be one finite real number)")
        self.data, self.grad = float(data), 0.0
        self.children, self.slopes, self.op, self.label = children, slopes, op, label

    def backward(self) -> None:
        """Add d self / d node to the `grad` of every node below; call `zero_grad` before the next pass."""
        flow = defaultdict(float, {self: 1.0})  # d self / d self = 1                        [SC.1]
        for node in self.graph():
            node.grad += flow[node]
            for child, slope in zip(node.children, node.slopes, strict=True):
                flow[child] += slope * flow[node]  # every path through node adds a term   [SC.2]

    def graph(self) -> list[Value]:
        """All nodes, users before children: a node follows after all nodes that use it."""
        users = {self: 0}
        found = [self]
        while found:
            for child in found.pop().children:
                if child not in users:
                    users[child] = 0
                    found.append(child)
                users[child] += 1
        order: list[Value] = []
        ready = [self] if users[self] == 0 else []
        while ready:
            order.append(node := ready.pop())
            for child in node.children:
                users[child] -= 1
                if users[child] == 0:
                    ready.append(child)
        if len(order) < len(users):
            left = len(users) - len(order)
            raise GraphError(f"Value: {left} of {len(users)} nodes are on or behind a cycle (must be none)")
        return order

    def zero_grad(self) -> None:
        """Set the gradient of every node of the graph to 0; `backward` adds to it."""
        for node in self.graph():
            node.grad = 0.0

    def __repr__(self) -> str:
        name = f"{self.label} = " if self.label else ""
        made = f", op={self.op!r}" if self.op else ""
        return f"Value({name}{self.data:.6g}, grad={self.grad:.6g}{made})"

    # Arithmetic: the number, then the slope toward each child.

    def __add__(self, other: Value | float) -> Value:
        return add(self, other)

    def __mul__(self, other: Value | float) -> Value:
        return multiply(self, other)

    def __sub__(self, other: Value | float) -> Value:
        other = as_value(other)
        return Value(self.data - other.data, (self, other), (1.0, -1.0), "-")

    def __truediv__(self, other: Value | float) -> Value:
        other = as_value(other)
        if other.data == 0:
            raise ConfigError(f"div: {self.data} / {other.data} (the divisor must not be 0)")
        ratio = self.data / other.data
        return Value(ratio, (self, other), (1 / other.data, -ratio / other.data), "/")  # [SC.5]

    def __pow__(self, n: float) -> Value:
        if not _is_finite(n):
            raise ConfigError(f"pow: exponent {n!r} (must be a number; x ** y is (y * x.log()).exp())")
        try:
            y, slope = math.pow(self.data, n), n * math.pow(self.data, n - 1) if n else 0.0  # [SC.6]
        except (OverflowError, ValueError):  # 0 ** -1, (-8) ** 0.5, 1e200 ** 2, the slope of 0 ** 0.5
            raise ConfigError(f"pow: {self.data} ** {n} (must have a finite real value and slope)") from None
        return Value(y, (self,), (slope,), f"**{n:g}")

    def __neg__(self) -> Value:
        return Value(-self.data, (self,), (-1.0,), "neg")

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: float) -> Value:
        return Value(other) - self

    def __rtruediv__(self, other: float) -> Value:
        return Value(other) / self

    # Functions of one number.                                                                [SC.7]

    def exp(self) -> Value:
        if self.data > 709.78:
            raise ConfigError(f"exp: {self.data} (overflows above 709.78)")
        y = math.exp(self.data)
        return Value(y, (self,), (y,), "exp")

    def log(self) -> Value:
        if self.data <= 0:
            raise ConfigError(f"log: {self.data} (must be > 0)")
        return Value(math.log(self.data), (self,), (1 / self.data,), "log")

    def sin(self) -> Value:
        return Value(math.sin(self.data), (self,), (math.cos(self.data),), "sin")

    def cos(self) -> Value:
        return Value(math.cos(self.data), (self,), (-math.sin(self.data),), "cos")

    def tanh(self) -> Value:
        y = math.tanh(self.data)
        return Value(y, (self,), (1 - y * y,), "tanh")

    def sigmoid(self) -> Value:
        e = math.exp(-abs(self.data))  # never above 1, so neither tail overflows
        y = (1.0 if self.data >= 0 else e) / (1 + e)
        return Value(y, (self,), (y * (1 - y),), "sigmoid")

    def relu(self) -> Value:
        on = self.data > 0  # the slope at exactly 0 is 0
        return Value(self.data if on else 0.0, (self,), (float(on),), "relu")


def as_value(x: Value | float) -> Value:
    """A number becomes a leaf of the graph; a Value is returned unchanged."""
    return x if isinstance(x, Value) else Value(x)


def _is_finite(x: object) -> bool:
    return isinstance(x, Real) and math.isfinite(x)


def add(*terms: Value | float) -> Value:
    """The sum of any number of terms, as one node: the slope toward every term is 1."""
    children = tuple(as_value(t) for t in terms)
    return Value(sum(c.data for c in children), children, (1.0,) * len(children), "+")  # [SC.3]


def multiply(*factors: Value | float) -> Value:
    """The product of any number of factors, as one node: the slope toward one is the product of the others.

    It is computed by multiplying, not by dividing, so a factor may be 0.
    """
    children = tuple(as_value(f) for f in factors)
    xs = [c.data for c in children]
    slopes = tuple(math.prod(xs[:i] + xs[i + 1 :], start=1.0) for i in range(len(xs)))  # [SC.4]
    return Value(math.prod(xs, start=1.0), children, slopes, "*")
