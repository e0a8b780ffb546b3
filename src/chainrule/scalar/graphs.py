"""Worked examples as graphs with named nodes.

Each function returns its nodes by name, to read values and gradients:

>>> nodes = figure_1()
>>> nodes["L"].backward()
>>> nodes["w4"].grad
-2.0
"""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.errors import ShapeError
from chainrule.scalar.engine import Value, add

Nodes = dict[str, Value]


def _named(**nodes: Value) -> Nodes:
    for name, node in nodes.items():
        node.label = name
    return nodes


def quadratic(x: float) -> Nodes:
    """f = 3x² - 4x + 5, whose slope 6x - 4 changes sign at 2/3."""
    leaf = Value(x)
    return _named(x=leaf, f=3 * leaf**2 - 4 * leaf + 5)


def product_plus(x1: float = 2.0, x2: float = -4.0, x3: float = 10.0) -> Nodes:
    """F = x1 x2 + x3, with partials (x2, x1, 1)."""
    a, b, c = Value(x1), Value(x2), Value(x3)
    return _named(x1=a, x2=b, x3=c, F=a * b + c)


def figure_1(w1: float = 2.0, w2: float = -3.0, w3: float = 10.0, w6: float = -2.0) -> Nodes:
    """L = w6 (w3 + w1 w2): a graph of two products and a sum."""
    a, b, c, d = Value(w1), Value(w2), Value(w3), Value(w6)
    w4 = a * b
    w5 = c + w4
    return _named(w1=a, w2=b, w3=c, w4=w4, w5=w5, w6=d, L=d * w5)


def fan_out(b: float = 3.0) -> Nodes:
    """y = b + b and z = b b + b: one leaf, several paths, so the gradient is a sum."""
    leaf = Value(b)
    return _named(b=leaf, y=leaf + leaf, z=leaf * leaf + leaf)


def diamond(x: float = 0.5) -> Nodes:
    """z = y1 y2 with y1 = sin x, y2 = x²: two paths that split and meet."""
    leaf = Value(x)
    y1, y2 = leaf.sin(), leaf**2
    return _named(x=leaf, y1=y1, y2=y2, z=y1 * y2)


def two_layers(x1: float = 3.0, x2: float = 1.0) -> Nodes:
    """h = (x1 + x2, x1 - x2), L = h1² + h2²: backward is the Jacobian transposed."""
    a, b = Value(x1), Value(x2)
    h1, h2 = a + b, a - b
    return _named(x1=a, x2=b, h1=h1, h2=h2, L=h1**2 + h2**2)


def neuron(w: Sequence[float] = (0.4, 0.6), x: Sequence[float] = (0.5, 0.8), b: float = -0.5) -> Nodes:
    """y = sigmoid(w·x + b): a single neuron."""
    if len(w) != len(x):
        raise ShapeError(f"neuron: {len(x)} inputs, {len(w)} weights (must be equal)")
    weights = {f"w{i}": Value(v) for i, v in enumerate(w, 1)}
    inputs = {f"x{i}": Value(v) for i, v in enumerate(x, 1)}
    bias = Value(b)
    z = add(*(weight * entry for weight, entry in zip(weights.values(), inputs.values(), strict=True)), bias)
    return _named(**weights, **inputs, b=bias, z=z, y=z.sigmoid())
