"""A graph for sequences of any length: what in a trace is the length of its inputs, and what is a table by position.

The same function is traced at two lengths. A number that has become smaller with the length is a `Size`; an array that
has become shorter is a `Table` with an entry for each position, such as learned or sinusoidal encodings and
`np.arange(T)`. So decoding knows what to do with tokens at positions 7 and 8 although no model says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chainrule.autograd.types import Array
from chainrule.errors import GraphError
from chainrule.trace.graph import Graph, Node


@dataclass(frozen=True)
class Size:
    """The length of an input."""

    of: str


@dataclass(frozen=True, eq=False)
class Table:
    """An array with an entry for each position of an input."""

    array: Array
    axis: int
    of: str

    def rows(self, start: int, stop: int) -> Array:
        """The entries of some positions."""
        return self.array[(slice(None),) * self.axis + (slice(start, stop),)]


def trace_lengths(make: Callable[..., Graph], **lengths: int) -> Graph:
    """`make(**lengths)` is a trace of inputs of these lengths -> the same with `Size` and `Table` in their places"""
    graph = make(**lengths)
    for name, length in lengths.items():
        if length > 1:
            graph = _marked(graph, make(**lengths | {name: length - 1}), name, length)
    return graph


def _marked(graph: Graph, shorter: Graph, name: str, length: int) -> Graph:
    if [node.name for node in graph.nodes] != [node.name for node in shorter.nodes]:
        raise GraphError(f"trace: other ops are called when {name} is {length - 1} than when it is {length}")

    def marked(node: Node, a: Any, b: Any) -> Any:
        if (
            isinstance(a, tuple | list)
            and type(a) is type(b)
            and len(a) == len(b)
            and not hasattr(a, "_fields")
        ):
            return type(a)(marked(node, x, y) for x, y in zip(a, b, strict=True))
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            if a is b or (a.shape == b.shape and np.array_equal(a, b)):
                return a
            axes = [i for i, (n, m) in enumerate(zip(a.shape, b.shape, strict=False)) if n != m]
            if a.ndim == b.ndim and len(axes) == 1 and a.shape[axes[0]] == length:
                table = Table(a, axes[0], name)
                if np.array_equal(table.rows(0, length - 1), b):
                    return table
        elif not isinstance(a, int) or isinstance(a, bool) or a == b:
            return a
        elif (a, b) == (length, length - 1):
            return Size(name)
        raise GraphError(f"trace: {node.name} depends on the number of {name} in a way that is not known")

    nodes = [
        replace(
            node,
            inputs=tuple(marked(node, a, b) for a, b in zip(node.inputs, other.inputs, strict=True)),
            constants={key: marked(node, a, other.constants[key]) for key, a in node.constants.items()},
        )
        for node, other in zip(graph.nodes, shorter.nodes, strict=True)
    ]
    return Graph(tuple(nodes), graph.outputs)
