"""Which graphs read a text token by token: no token sees what comes later, and each keeps its place on one axis."""

from __future__ import annotations

import math
from typing import Any

from chainrule.trace.cost import RECURRENT, is_causal
from chainrule.trace.graph import Given, Graph, Node, NotStreamable, Value
from chainrule.trace.lengths import Table

# Ops that compute each row from that row alone, so that the last row of a sequence needs no other.
BY_ROW = {"linear", "add", "sub", "mul", "div", "layernorm", "rmsnorm", "swiglu"}
BY_ROW |= {"gelu", "gelu_tanh", "relu", "silu", "tanh", "sigmoid", "softplus"}
# Ops of each number alone.
ELEMENTWISE = BY_ROW - {"linear", "layernorm", "rmsnorm"}
ELEMENTWISE |= {"neg", "exp", "log", "sqrt", "pow", "elu", "leaky_relu", "log_sigmoid", "dropout"}
# Ops of the last axis.
ROWWISE = {"linear", "layernorm", "rmsnorm", "batchnorm_eval", "prelu", "rotary"}


def check_by_token(graph: Graph) -> list[int | None]:
    """Of each node the axis of the tokens in its outputs, counted from the end; None if it depends on none.

    A graph is refused in which a token sees what comes later, or that reads its tokens other than by an embedding.
    """
    axes: list[int | None] = []
    tokens = 0
    for node in graph.nodes:
        found = [axes[s.node] if isinstance(s, Value) else None for s in node.inputs]
        axis = None
        if Given("ids") in [x for x in (*node.inputs, *node.constants.values()) if isinstance(x, Given)]:
            axis = -2 if node.op.name == "embedding" else 0
            tokens = node.shapes[0][-2] if axis else 0
        elif any(axis is not None for axis in found):
            axis = _token_axis(node, found, tokens) or 0
        if axis == 0:
            raise NotStreamable(f"trace: {node.name} does not read token by token")
        axes.append(axis)
    (result,) = graph.outputs
    if not isinstance(result, Value) or axes[result.node] is None:
        raise NotStreamable("trace: no embedding reads the ids (must read token by token)")
    if axes[result.node] != -2 or len(graph.nodes[result.node].shapes[0]) != 3:
        raise NotStreamable(f"trace: the result of {graph.nodes[result.node].name} has no row for each token")
    return axes


def _token_axis(node: Node, found: list[int | None], tokens: int) -> int | None:
    """Where the tokens are in the outputs, by where they are in the inputs; None if the op mixes them."""
    kind, (first, *rest) = node.op.name, found
    axis = next(x for x in found if x is not None)
    alike, alone = set(found) <= {axis, None}, first is not None and set(rest) <= {None}
    if kind in ELEMENTWISE:
        return axis if alike else None
    if kind == "concat":  # features side by side, or a prefix before the tokens
        features = concat_axis(node) != axis
        prefix = found[-1] is not None and set(found[:-1]) <= {None}
        return axis if alike and (features or prefix) else None
    if kind in ("attention", "relative_attention"):
        (keys, values), bias = rest[:2], rest[2:]
        seen = -2 if is_causal(node) else None
        masked = isinstance(node.constants.get("mask"), Table)
        return -2 if first == -2 and keys == values == seen and not masked and bias in ([], [None]) else None
    if not alone:
        return None
    if kind == "getitem":  # some of the features, or the tokens after a prefix
        place, part = cut_axis(node) or (0, slice(None))
        after = part.stop is None and node.shapes[0][axis] == tokens
        return axis if place and (place != axis or after) else None
    if kind == "transpose":
        order = node.constants["axes"] or range(len(node.shapes[0]))[::-1]
        return [n % len(order) for n in order].index(axis % len(order)) - len(order)
    if kind == "reshape":
        return _axis_after(node, axis)
    if kind in ROWWISE:
        return axis if axis != -1 else None
    known = kind in RECURRENT or (kind == "packed_attention" and is_causal(node))
    return axis if known and axis == -2 else None


def concat_axis(node: Node) -> int:
    """Counted from the end."""
    return int(node.constants.get("axis", 0) % len(node.shapes[0]) - len(node.shapes[0]))


def cut_axis(node: Node) -> tuple[int, slice] | None:
    """The one axis, counted from the end, of which `getitem` takes a slice; None if it does something else."""
    index: Any = node.constants["index"]
    parts = list(index if isinstance(index, tuple) else (index,))
    n = len(node.arrays[0].shape)
    for place in [i for i, part in enumerate(parts) if part is Ellipsis]:
        parts[place : place + 1] = [slice(None)] * (n - len(parts) + 1)
    if not all(isinstance(part, slice) and part.step in (None, 1) for part in parts):
        return None
    cuts = [(i - n, part) for i, part in enumerate(parts) if part != slice(None)]
    return cuts[0] if len(cuts) == 1 else None


def _axis_after(node: Node, axis: int) -> int | None:
    """A reshape keeps tokens apart if as many numbers are before and within their axis as there were."""
    old, new = node.arrays[0].shape, node.shapes[0]
    for i, n in enumerate(new):
        if n == old[axis] and math.prod(new[:i]) == math.prod(old[:axis]):
            return i - len(new)
    return None
