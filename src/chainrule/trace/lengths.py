"""A graph for sequences of any length: what in a trace is the length of its inputs, and what is a table by position.

The same function is traced at two lengths. A number that has become smaller with the length is a `Size`; an array that
has become shorter is a `Table` with an entry for each position, such as learned or sinusoidal encodings and
`np.arange(T)`. Both may count rows that the function puts before its input, such as a soft prompt. Anything else must
be equal in both. So decoding knows what to do with tokens at positions 7 and 8 although no model says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chainrule.autograd.types import Array
from chainrule.trace.graph import Graph, NotStreamable


@dataclass(frozen=True)
class Size:
    """The length of an input, and of the rows put before it."""

    of: str
    before: int = 0


@dataclass(frozen=True, eq=False)
class Table:
    """An array with an entry for each position of an input, after those of the rows put before it."""

    array: Array
    axis: int
    of: str
    before: int = 0

    def rows(self, start: int, stop: int) -> Array:
        """The entries of some positions."""
        return self.array[(slice(None),) * self.axis + (slice(start, stop),)]


def trace_lengths(make: Callable[..., Graph], **lengths: int) -> Graph:
    """The graph for any length, from `make(**lengths)`, which traces inputs of given lengths.

    Numbers and arrays that follow the length of an input become a `Size` or a `Table`.
    """
    graph = make(**lengths)
    shorter = {name: make(**lengths | {name: n - 1}) for name, n in lengths.items() if n > 1}
    for name, other in shorter.items():
        if _calls(graph) != _calls(other):
            n = lengths[name]
            raise NotStreamable(f"trace: other ops are called when {name} is {n - 1} than when it is {n}")
    nodes, before = [], _rows_before(graph)
    for i, node in enumerate(graph.nodes):
        others = {name: other.nodes[i] for name, other in shorter.items()}
        inputs = _marked(node.name, node.inputs, {k: x.inputs for k, x in others.items()}, lengths, before)
        constants = {
            key: _marked(node.name, a, {k: x.constants[key] for k, x in others.items()}, lengths, before)
            for key, a in node.constants.items()
        }
        nodes.append(replace(node, inputs=inputs, constants=constants))
    _marked("the result", graph.outputs, {k: x.outputs for k, x in shorter.items()}, lengths, before)
    return Graph(tuple(nodes), graph.outputs)


def _calls(graph: Graph) -> list[tuple[str, list[str]]]:
    return [(node.name, sorted(node.constants)) for node in graph.nodes]


def _rows_before(graph: Graph) -> list[int]:
    """How many rows may stand before those of an input: none, or what is joined with it."""
    joins = [(node, node.constants.get("axis", 0)) for node in graph.nodes if node.op.name == "concat"]
    return sorted({0, *(sum(x.shape[axis] for x in node.arrays[:-1]) for node, axis in joins)})


def _marked(place: str, a: Any, others: dict[str, Any], lengths: dict[str, int], before: list[int]) -> Any:
    """`a`, or what it is if it is another one in the traces where an input is shorter by one"""
    if _is_list(a) and all(_is_list(b) and len(a) == len(b) for b in others.values()):
        return type(a)(
            _marked(place, x, {name: b[i] for name, b in others.items()}, lengths, before)
            for i, x in enumerate(a)
        )
    unlike = [name for name, b in others.items() if not _equal(a, b)]
    if not unlike:
        return a
    name, b, length = unlike[0], others[unlike[0]], lengths[unlike[0]]
    if len(unlike) == 1 and type(a) is int and a - length in before and b == a - 1:
        return Size(name, a - length)
    if len(unlike) == 1 and isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.ndim == b.ndim:
        axes = [i for i, (n, m) in enumerate(zip(a.shape, b.shape, strict=True)) if n != m]
        rows = a.shape[axes[0]] if len(axes) == 1 else 0
        if rows - length in before:
            table = Table(a, axes[0], name, rows - length)
            if np.array_equal(table.rows(0, rows - 1), b):
                return table
    raise NotStreamable(f"trace: {place} depends on the number of {name} in a way that is not known")


def _is_list(x: Any) -> bool:
    return isinstance(x, tuple | list) and not hasattr(x, "_fields")


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return a is b or (type(a) is type(b) and a.dtype == b.dtype and np.array_equal(a, b))
    return a is b or (type(a) is type(b) and bool(a == b))
