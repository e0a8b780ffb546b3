"""The data of an architecture picture: the calls of a traced model with their shapes and costs, as plain dicts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from chainrule.trace.cost import block_of, components, kept, work
from chainrule.trace.graph import Given, Graph, Value

COSTS = ("parameters", "flops", "kept")


def picture(graph: Graph) -> dict[str, Any]:
    """Nodes in their order, each with its op, shapes and costs; who feeds whom; and blocks with their sums.

    Costs are parameters, FLOPs of a forward pass, and bytes kept for a backward pass. A parameter counts where it is
    first used, an array where it is first kept. `name` is that of the call in `cr.capture` and `cr.intervene`. A block
    is a numbered layer.

    >>> import chainrule as cr, numpy as np
    >>> model = cr.models.make("gpt", n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> found = cr.trace.picture(cr.trace.trace(model, ids=np.zeros((1, 8), int)))
    >>> found["nodes"][4]
    {'id': 4, 'name': 'h.0.attn.c_attn.linear', 'layer': 'h.0.attn.c_attn', 'block': 'h.0', 'op': 'linear', \
'component': 'attention', 'inputs': [[1, 8, 16], [48, 16], [48]], 'shape': [1, 8, 48], 'parameters': 816, \
'flops': 12288, 'kept': 512}
    >>> found["edges"][:3]
    [['ids', 0], [0, 2], [1, 2]]
    >>> found["blocks"]
    [{'name': 'h.0', 'nodes': [3, 4, 5, 6, 7, 8, 9, 10, 11, 12], 'parameters': 3280, 'flops': 51456, 'kept': 8384}]
    """
    owned: Counter[int] = Counter()
    for param, node, _ in graph.parameters():
        owned[id(node)] += param.size
    nodes: list[dict[str, Any]] = []
    edges: list[list[Any]] = []
    rows = zip(graph.nodes, graph.names(), components(graph), kept(graph), strict=True)
    for i, (node, name, component, nbytes) in enumerate(rows):
        nodes.append({
            "id": i, "name": name, "layer": node.layer, "block": block_of(node.layer), "op": node.op.name,
            "component": component, "inputs": [list(x.shape) for x in node.arrays if x is not None],
            "shape": list(node.shapes[0]), "parameters": owned[id(node)], "flops": work(node).forward,
            "kept": nbytes
        })  # fmt: skip
        for source in (*node.inputs, *node.constants.values()):
            if isinstance(source, Value | Given):
                edges.append([source.node if isinstance(source, Value) else source.name, i])
    return {"nodes": nodes, "edges": edges, "blocks": _blocks(nodes)}


def _blocks(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = dict.fromkeys(node["block"] for node in nodes if node["block"])
    inside = {name: [node for node in nodes if node["block"] == name] for name in names}
    return [
        {"name": name, "nodes": [node["id"] for node in found]}
        | {cost: sum(node[cost] for node in found) for cost in COSTS}
        for name, found in inside.items()
    ]
