"""Direct logit attribution: how much each head and each MLP adds to a logit, by the way of the residual stream alone.

    stream = embedding + Σ parts,   logit = w · norm(stream) + b

With the scale of the norm held at its value the logit is linear in the stream, so the terms of all parts sum to it.
What a part does by way of later layers is theirs. (Elhage et al. 2021)
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.inspect.inside.checks import number
from chainrule.inspect.inside.edits import Edits
from chainrule.inspect.inside.parts import Part
from chainrule.inspect.inside.rerun import rerun
from chainrule.inspect.inside.sites import one_text
from chainrule.inspect.inside.view import View
from chainrule.nn import Layer
from chainrule.trace.graph import Value

SCALE = {"layernorm": 4, "rmsnorm": 2}  # where 1/σ stands in what a norm saves
LINEAR = ("linear", "mul", "getitem", "reshape")  # what may stand between the last norm and the logits


@dataclass(frozen=True)
class Term:
    """What one part adds to a logit."""

    name: str
    """The layer: `h.0.attn`."""
    kind: str
    """embedding, attention, cross_attention, mlp, or constant: biases of the last norm and of the head"""
    value: float
    heads: tuple[float, ...] = ()
    """Of attention, what each head adds; the rest is the bias of its output."""


@dataclass(frozen=True)
class Attribution:
    """A logit, or a difference of two, as a sum."""

    token: int
    minus: int | None
    position: int
    logit: float
    """As the model computes it."""
    terms: tuple[Term, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def attribute(
    model: Layer, ids: Any, token: int, *, minus: int | None = None, position: int = -1, edits: Edits = None
) -> Attribution:
    """The logit of a token at a position, or its difference to that of another, as a sum over heads and MLPs.

    >>> import chainrule as cr
    >>> cr.seed(0)
    >>> model = cr.models.make("gpt", n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> found = cr.inspect.attribute(model, [1, 2, 3], token=4, minus=5)
    >>> [term.name for term in found.terms]
    ['wte', 'wpe', 'h.0.attn', 'h.0.mlp', 'constant']
    >>> abs(sum(term.value for term in found.terms) - found.logit) < 1e-6
    True
    """
    seen = View(model, ids, edits)
    logits, T = seen.logits, len(seen.tokens)
    token, minus, position = check_place(logits, token, minus, position)
    wanted = logits[position].astype(np.float64)
    logit = float(wanted[token] - (0 if minus is None else wanted[minus]))
    start, parts = seen.sites.summed
    if not parts:
        name = type(model).__name__
        raise ConfigError(
            f"attribute: the last norm of {name} reads no sum (must be that of the residual stream)"
        )
    direction, constant = _direction(seen, token, minus, position, logit)
    embedding = Part(_layer(seen, start) or "embedding", "embedding", start, start)
    terms = []
    for part in (embedding, *parts):
        rows = seen.value(part.call)
        row = rows[..., -T:, :].reshape(-1, rows.shape[-1])[position]  # positions of a table have no batch
        value = float(direction @ row.astype(np.float64))
        heads = _by_head(seen, part, direction, position) if part.attention else ()
        terms.append(Term(part.name, part.kind, value, heads))
    terms.append(Term("constant", "constant", constant))
    return Attribution(token, minus, position, logit, tuple(terms))


def check_place(logits: Array, token: int, minus: int | None, position: int) -> tuple[int, int | None, int]:
    """A token, another one and a position of logits (T, V), counted from 0."""
    T, V = logits.shape
    other = None if minus is None else number("token", minus, V, backwards=False)
    return number("token", token, V, backwards=False), other, number("position", position, T)


def _layer(seen: View, call: str) -> str:
    return seen.sites.graph.nodes[seen.sites.names.index(call)].layer


def _direction(seen: View, token: int, minus: int | None, position: int, logit: float) -> tuple[Array, float]:
    """g and b with logit = g · stream + b at a position, the scale of the last norm being constant."""
    sites, graph = seen.sites, seen.sites.graph
    node = sites.names.index(sites.last_norm[1])
    rest = [graph.nodes[i].op.name for i in sites.spine[sites.spine.index(node) + 1 :]]
    if graph.nodes[node].op.name not in SCALE or not set(rest) <= set(LINEAR):
        raise ConfigError(
            f"attribute: {type(seen.model).__name__} ends in {', '.join(rest)} (must be a norm and a linear head)"
        )
    normed = Tensor(seen.value(sites.names[node]), requires_grad=True)  # (1, T, C)
    logits = rerun(graph, graph.outputs[0], {node: normed})
    seed = np.zeros(logits.shape, logits.dtype)
    seed[0, position, token] += 1
    if minus is not None:
        seed[0, position, minus] -= 1
    logits.backward(seed)
    assert normed.grad is not None
    w = normed.grad[0, position].astype(np.float64)
    gain, scale, shift = _norm(seen, node, position)
    g = w * gain * scale
    constant = logit - float(w @ normed.numpy()[0, position].astype(np.float64)) + float(w @ shift)
    centered = graph.nodes[node].op.name == "layernorm"  # forward was: (x - mean) scale gain + shift
    return g - g.mean() if centered else g, constant


def _norm(seen: View, node: int, position: int) -> tuple[Array, ...]:
    """The gain (C,) of the last norm, its scale at a position, and its shift (C,)."""
    graph = seen.sites.graph
    norm = graph.nodes[node]
    x = seen.value(seen.sites.last_norm[0])
    gain, *shift = (rerun(graph, each, {}) for each in norm.inputs[1:])
    _, saved = norm.op.run_forward([x, gain, *shift], norm.constants)
    scale = saved[SCALE[norm.op.name]][0, position]
    found = gain, scale, shift[0] if shift else np.zeros_like(gain)
    return tuple(np.asarray(each, np.float64) for each in found)


def _by_head(seen: View, part: Part, direction: Array, position: int) -> tuple[float, ...]:
    """What each head adds by way of the stream: the output of attention is a linear function of its heads."""
    sites, attention = seen.sites, part.attention
    assert attention is not None
    mixed = Tensor(seen.value(attention.call), requires_grad=True)
    added = rerun(
        sites.graph, Value(sites.names.index(part.call)), {sites.names.index(attention.call): mixed}
    )
    seed = np.zeros(added.shape, added.dtype)
    seed[0, sites.before + position] = direction
    added.backward(seed)
    assert mixed.grad is not None
    product = one_text(mixed.numpy() * mixed.grad).astype(np.float64)  # (H, T, D), or (T, H D)
    if attention.packed:
        product = product.reshape(len(product), attention.heads, -1).transpose(1, 0, 2)
    return tuple(float(x) for x in product.sum((1, 2)))
