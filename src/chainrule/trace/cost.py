"""What a call in a traced model costs, and under which component it is counted."""

from __future__ import annotations

import math

import numpy as np

from chainrule.autograd import Param
from chainrule.autograd.abstract import abstract, memory_of
from chainrule.autograd.types import Array, Work
from chainrule.ops.losses.linear_cross_entropy import held_logits
from chainrule.ops.neural.attention import cost as attention_cost
from chainrule.trace.graph import Given, Graph, Node, origin

FLOAT = 4  # bytes of a float32
GAPS = 1.4  # of a block that is recomputed: arrays that come and go do not fill the memory they leave
COMPONENTS = ("embedding", "attention", "mlp", "norms", "head")
EMBEDDINGS = ("embedding", "embedding_bag")
ATTENTION = ("attention", "packed_attention", "relative_attention")
RECURRENT = ("rnn_sequence", "gru_sequence", "lstm_sequence")
PRODUCTS = ("linear", "linear_cross_entropy", "concat", *RECURRENT)


def components(graph: Graph) -> list[str]:
    """Under which name each node is counted, by its op and by the layer that called it.

    In a numbered layer (`h.0`) all that lies beside attention (in `h.0.attn`) belongs to it, and other products to the
    MLP. Products outside of such layers are the head's.
    """
    attending = {part_of(node.layer) for node in graph.nodes if node.op.name in ATTENTION}
    return [_component(node, attending) for node in graph.nodes]


def _component(node: Node, attending: set[str]) -> str:
    kind, part = node.op.name, part_of(node.layer)
    if kind in EMBEDDINGS:
        return "embedding"
    if "norm" in kind:
        return "norms"
    if kind in RECURRENT:
        return "recurrent"
    if kind in ATTENTION or (part and part in attending):
        return "attention"
    return "mlp" if part else "head"


def part_of(layer: str) -> str:
    """`h.0.attn` for a layer inside a numbered layer; empty for other layers."""
    names = layer.split(".")
    number = max((i for i, name in enumerate(names) if name.isdigit()), default=None)
    return "" if number is None else ".".join(names[: number + 2])


def block_of(layer: str) -> str:
    """`h.0` for a layer that is or lies inside of a numbered one; empty for other layers."""
    names = layer.split(".")
    number = next((i for i, name in enumerate(names) if name.isdigit()), None)
    return "" if number is None else ".".join(names[: number + 1])


def kept(graph: Graph) -> list[int]:
    """Of each node the bytes of floats and masks that wait for the backward pass, parameters aside.

    Views of one array count once, where it is first kept.
    """
    known = {memory_of(param.array)[0] for param, _, _ in graph.parameters()}
    found = []
    for node in graph.nodes:
        arrays = (x for x in node.kept if isinstance(x, np.ndarray) and x.ndim and x.dtype.kind in "fb")
        new = {identity: nbytes for identity, nbytes in map(memory_of, arrays) if identity not in known}
        known |= set(new)
        found.append(sum(new.values()))
    return found


def kept_recomputing(graph: Graph) -> int:
    """The bytes of `kept` if blocks are recomputed: all that one block, the largest, computes with, and only the inputs
    of the others."""
    known = {memory_of(param.array)[0] for param, _, _ in graph.parameters()}
    outside, blocks, inputs, learning = 0, dict[str, int](), dict[str, int](), set[str]()
    for node, nbytes in zip(graph.nodes, kept(graph), strict=True):
        if name := block_of(node.layer):
            read = dict(memory_of(x) for x in node.arrays if isinstance(x, np.ndarray))
            blocks[name] = blocks.get(name, 0) + sum(size for each, size in read.items() if each not in known)
            known |= set(read)
            inputs.setdefault(name, FLOAT * int(np.size(node.arrays[0])))
            learning |= {name} if nbytes else set()  # before the first that learns nothing waits
        else:
            outside += nbytes
    if not learning:
        return outside
    largest = max(learning, key=blocks.__getitem__)
    others = sum(inputs[name] for name in learning if name != largest)
    return outside + round(GAPS * blocks[largest]) + others


def for_a_moment(graph: Graph) -> int:
    """Bytes that a backward pass makes and drops again at most: a chunk of logits, and the gradients of one call."""
    logits, others = [0], [0]
    for node in graph.nodes:
        if node.op.name == "linear_cross_entropy":
            x, W = node.arrays[:2]
            N = x.size // x.shape[-1]
            logits.append(W.dtype.itemsize * held_logits(N, *W.shape))
        elif any(node.needs):
            pairs = zip(node.arrays, node.inputs, node.needs, strict=False)
            activations = [x.size for x, source, needed in pairs if needed and not isinstance(source, Param)]
            others.append(FLOAT * (sum(activations) + sum(map(math.prod, node.shapes))))
    return max(logits) + max(others)


def work(node: Node, *, dense: bool = False, past: int = 0) -> Work:
    """The FLOPs of one call; `past` positions are in the cache already, `dense` counts masked scores too."""
    if node.op.cost is None:
        return Work()
    needs = node.needs or (False,) * len(node.arrays)
    if node.op.name not in ATTENTION:
        return node.op.cost(needs, *node.arrays, **node.constants)
    q, k, v = heads_of(node)
    if is_causal(node):
        k, v = (abstract((*x.shape[:-2], x.shape[-2] + past, x.shape[-1])) for x in (k, v))
    needs = 3 * needs if len(needs) == 1 else needs[:3]
    return attention_cost(needs, q, k, v, causal=is_causal(node) and not dense)


def heads_of(node: Node) -> tuple[Array, Array, Array]:
    """Queries, keys and values of attention, (..., heads, positions, size) each; only shapes are known."""
    if node.op.name != "packed_attention":
        q, k, v = node.arrays[:3]
        return q, k, v
    B, T, width = node.arrays[0].shape
    heads = node.constants["heads"]
    x = abstract((B, heads, T, width // (3 * heads)), node.arrays[0].dtype)
    return x, x, x


def is_causal(node: Node) -> bool:
    """True for attention to positions before, which a cache keeps."""
    return bool(node.constants.get("causal", node.op.name == "packed_attention"))


def cached_numbers(graph: Graph, past: int = 0) -> int:
    """Keys and values that decoding keeps: of the positions before, and of another sequence that is attended to."""
    origins, found = graph.origins(), 0
    for node in graph.nodes:
        if node.op.name in ATTENTION:
            _, k, v = heads_of(node)
            T = k.shape[-2]
            if is_causal(node):
                found += (k.size + v.size) // T * (T + past)
            elif origin(node.inputs[0], origins) != origin(node.inputs[1], origins):
                found += k.size + v.size
    return found


def matrices(graph: Graph) -> list[Param]:
    """Parameters that a weight format may hold in fewer bits: matrices of matmuls and tables of tokens."""

    def packed(node: Node) -> bool:
        return node.op.name in PRODUCTS or isinstance(node.constants.get("ids"), Given)

    return [param for param, node, _ in graph.parameters() if param.ndim == 2 and packed(node)]
