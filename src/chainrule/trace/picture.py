"""The data of an architecture picture: the layers of a traced model with their shapes and costs, as plain dicts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from chainrule.trace.cost import components, work
from chainrule.trace.graph import Given, Graph, Value


def picture(graph: Graph) -> dict[str, Any]:
    """Nodes in their order, each with its layer, op, component, shape, parameters and FLOPs; and who feeds whom.

    A parameter counts where it is first used.

    >>> import chainrule as cr, numpy as np
    >>> model = cr.models.make("gpt", n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> found = cr.trace.picture(cr.trace.trace(model, ids=np.zeros((1, 8), int)))
    >>> found["nodes"][4]
    {'id': 4, 'layer': 'h.0.attn.c_attn', 'op': 'linear', 'component': 'attention', 'shape': [1, 8, 48], \
'parameters': 816, 'flops': 12288}
    >>> found["edges"][:3]
    [['ids', 0], [0, 2], [1, 2]]
    """
    owned: Counter[int] = Counter()
    for param, node, _ in graph.parameters():
        owned[id(node)] += param.size
    nodes: list[dict[str, Any]] = []
    edges: list[list[Any]] = []
    for i, (node, component) in enumerate(zip(graph.nodes, components(graph), strict=True)):
        nodes.append({
            "id": i, "layer": node.layer, "op": node.op.name, "component": component,
            "shape": list(node.shapes[0]), "parameters": owned[id(node)], "flops": work(node).forward
        })  # fmt: skip
        for source in (*node.inputs, *node.constants.values()):
            if isinstance(source, Value | Given):
                edges.append([source.node if isinstance(source, Value) else source.name, i])
    return {"nodes": nodes, "edges": edges}
