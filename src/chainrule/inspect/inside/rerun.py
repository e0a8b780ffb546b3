"""A part of a traced forward pass, computed again from other values."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.autograd import Param, no_grad
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.inspect.inside.sites import Sites
from chainrule.trace.graph import Given, Graph, Value


def rerun(graph: Graph, source: Any, known: dict[int, Any]) -> Any:
    """The value of a source, from the values of some nodes in `known`, which is filled on the way.

    With a Tensor that requires a gradient in `known`, so does the result; parameters are constants.
    """
    if isinstance(source, Param):
        return source.array
    if isinstance(source, Given):
        raise ConfigError(f"inspect: this part reads {source.name} again (must follow from the stream alone)")
    if not isinstance(source, Value):
        return source
    if source.node not in known:
        node = graph.nodes[source.node]
        inputs = [rerun(graph, x, known) for x in node.inputs]
        constants = {name: rerun(graph, x, known) for name, x in node.constants.items()}
        known[source.node] = node.op(*inputs, **constants)
    found = known[source.node]
    return found[source.output] if isinstance(found, tuple) else found


def head(sites: Sites, stream: Array) -> Array:
    """A stream (B, T, C) -> logits (B, T, V): the last norm and the head, as if it were that of the last block"""
    start = sites.spine[sites.spine.index(sites.tail[0]) - 1]
    with no_grad():
        return np.asarray(rerun(sites.graph, sites.graph.outputs[0], {start: stream}))
