"""An expression as a graph that can be drawn: places, values, gradients, and the steps of both passes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from chainrule.errors import ConfigError
from chainrule.foundations.calculus import gradient
from chainrule.scalar import Expression, Value, backward_steps
from chainrule.scalar.draw import MAX_NODES
from chainrule.scalar.layout import arrange

EXAMPLES: tuple[dict[str, Any], ...] = (
    {
        "title": "Two products and a sum",
        "text": "w4 = w1 * w2; w5 = w3 + w4; L = w6 * w5",
        "values": {"w1": 2.0, "w2": -3.0, "w3": 10.0, "w6": -2.0},
    },
    {
        "title": "A neuron",
        "text": "z = w1 * x1 + w2 * x2 + b; y = sigmoid(z)",
        "values": {"w1": 0.4, "x1": 0.5, "w2": 0.6, "x2": 0.8, "b": -0.5},
    },
    {"title": "One leaf, three paths", "text": "z = b * b + b", "values": {"b": 3.0}},
    {"title": "Paths that split and meet", "text": "z = sin(x) * x ** 2", "values": {"x": 0.5}},
    {
        "title": "A squared error",
        "text": "y = tanh(w * x + b); L = (y - t) ** 2",
        "values": {"w": 1.5, "x": 0.8, "b": -0.4, "t": 1.0},
    },
)
USUAL = (2.0, -3.0, 0.5, 1.0, -1.0, 4.0)  # values of variables that were not given one


def of_expression(text: str, given: Mapping[str, float]) -> dict[str, Any]:
    """Everything the view shows of one expression; variables without a value get a usual one."""
    found = Expression.read(text)
    values = {name: float(given.get(name, USUAL[i % len(USUAL)])) for i, name in enumerate(found.variables)}
    root = found.graph(values)[found.root]
    nodes = root.graph()
    if len(nodes) > MAX_NODES:
        raise ConfigError(f"expression: {len(nodes)} nodes (at most {MAX_NODES}, to be readable)")
    root.backward()
    number = {node: i for i, node in enumerate(reversed(nodes))}  # in the order of the forward pass
    columns, edges = _drawn(root, number)
    return {
        "text": text,
        "values": values,
        "root": number[root],
        "nodes": [_node(node, number) for node in reversed(nodes)],
        "columns": columns,
        "edges": edges,
        "forward": [number[node] for node in reversed(nodes) if node.op],
        "backward": [
            {
                "node": number[node],
                "grad": grad,
                "shares": [
                    {"child": number[s.child], "slope": s.slope, "amount": s.amount, "total": s.total}
                    for s in shares
                ],
            }
            for node, grad, shares in backward_steps(root)
        ],
        "check": _check(found, values, root),
        "python": found.python(values),
    }


def _node(node: Value, number: Mapping[Value, int]) -> dict[str, Any]:
    children = [number[child] for child in node.children]
    return {"label": node.label, "op": node.op, "data": node.data, "grad": node.grad, "children": children}


def _drawn(
    root: Value, number: Mapping[Value, int]
) -> tuple[list[list[dict[str, Any]]], list[list[list[int]]]]:
    """Columns of places (a node, or the bend of a long edge) with heights in boxes; edges as places they pass."""
    layout = arrange(root, node_size=1.0, bend_size=0.15, gap=0.35)
    at = {place: [i, j] for i, column in enumerate(layout.columns) for j, place in enumerate(column)}
    columns = [
        [{"node": None if place.node is None else number[place.node], "y": place.y} for place in column]
        for column in layout.columns
    ]
    return columns, [[at[place] for place in path] for path in layout.edges]


def _check(found: Expression, values: Mapping[str, float], root: Value) -> list[dict[str, Any]]:
    """The gradient of each variable beside a central difference."""
    names = list(found.variables)
    if not names:
        return []

    def result(at: np.ndarray[Any, Any]) -> float:
        return found.graph(dict(zip(names, at.tolist(), strict=True)))[found.root].data

    try:
        numeric = gradient(result, [values[name] for name in names]).tolist()
    except ConfigError:  # a step beside the point leaves the domain, as of log near 0
        numeric = [None] * len(names)
    grads = {node.label: node.grad for node in root.graph() if not node.op}
    return [
        {"name": name, "grad": grads.get(name, 0.0), "difference": slope}
        for name, slope in zip(names, numeric, strict=True)
    ]
