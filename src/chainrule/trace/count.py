"""Parameters, FLOPs and memory of a model, exactly, before it exists: its training step is traced, not run.

    model = GPT.abstract(config)                        shapes only: a model of any size takes no memory

parameters      numbers that learn, by component
flops           of a batch, forward and backward, by component
training_memory weights, gradients, optimizer, and what waits for the backward pass
running_memory  weights and the cache of a model that generates
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import add
from typing import Any, Literal, Protocol

from chainrule.autograd import Param
from chainrule.autograd.stored import StoredParam
from chainrule.autograd.types import Work
from chainrule.errors import ConfigError
from chainrule.random import seeded
from chainrule.trace.cost import (
    COMPONENTS,
    FLOAT,
    cached_numbers,
    components,
    for_a_moment,
    kept,
    kept_recomputing,
    matrices,
    work,
)
from chainrule.trace.graph import Graph, Value, trace
from chainrule.types import WeightFormat

MASKED_FRACTION = 0.15  # of the words, in the training of BERT
MOMENTS = 2  # numbers that AdamW keeps per parameter
# Per weight of a matrix, as in generate/engine/weights.py
BITS = {
    "fp32": 32.0,
    "bf16": 16.0,
    "fp16": 16.0,
    "int8": 8.5,
    "int4": 4.5,
    "q8_0": 8.5,
    "q4_0": 4.5,
    "q4_1": 5.0,
    "q5_0": 5.5,
    "q5_1": 6.0,
    "q4_k": 4.5,
    "q5_k": 5.5,
    "q6_k": 6.5625,
}
STORED = "stored"


@dataclass(frozen=True)
class Batch:
    """How much goes through a model at once: rows of so many tokens."""

    rows: int = 1
    tokens: int = 1
    source: int = 0
    """Tokens in a row of the encoder's text, if there is an encoder."""
    masked: int = 0
    """Words asked for in all rows together, of a model of masked words."""
    past: int = 0
    """Tokens that a cache already holds."""


class Model(Protocol):
    """A model that can be counted: the part of `models.Model` that is used here."""

    @property
    def reads(self) -> Sequence[str]: ...
    def example_batch(self, rows: int, tokens: int, source: int = 0, masked: int = 0) -> tuple[Any, Any]: ...
    def loss(self, inputs: Any, targets: Any) -> Any: ...
    def count(self, *, trainable: bool = False) -> int: ...


def step_batch(model: Model, rows: int, tokens: int) -> Batch:
    """A training batch, with a source as long as the text and with masked words, for models that read them."""
    source = tokens if "source" in model.reads else 0
    masked = round(MASKED_FRACTION * rows * tokens) if "masked" in model.reads else 0
    return Batch(rows, tokens, source, masked)


def step_graph(model: Model, batch: Batch) -> Graph:
    """The loss of a batch, traced."""
    inputs, targets = model.example_batch(batch.rows, batch.tokens, batch.source, batch.masked)
    several = isinstance(inputs, tuple)
    whole = getattr(inputs, "_make", tuple)  # a model may read its inputs by name
    given = {f"input{i}": x for i, x in enumerate(inputs if several else (inputs,))}

    def loss(**given: Any) -> Any:
        arrays = given.values()
        return model.loss(whole(arrays) if several else next(iter(arrays)), targets)

    with seeded(0):  # dropout must not advance the random stream
        return trace(loss, **given)


def parameters(model: Model) -> dict[str, int]:
    """Trainable parameters by component; a tied matrix counts once, where it is used first.

    >>> import chainrule as cr
    >>> from chainrule.scaling import parameters
    >>> parameters(cr.models.Seq2Seq.abstract(cr.models.Seq2SeqConfig.base()))
    {'embedding': 25600000, 'attention': 18874368, 'mlp': 25196544, 'norms': 30720, 'head': 25650000}
    """
    graph = step_graph(model, step_batch(model, 1, 1))
    found = dict.fromkeys(COMPONENTS, 0)
    where = dict(zip(map(id, graph.nodes), components(graph), strict=True))
    for param, node, _ in graph.parameters():
        found[where[id(node)]] = found.get(where[id(node)], 0) + param.size
    unused = model.count() - sum(found.values())  # by the loss, such as the pooler of a bare BERT
    return found | {"head": found["head"] + unused}


def flops(model: Model, batch: Batch, *, dense: bool = False) -> dict[str, Work]:
    """The FLOPs of one pass over a batch, by component.

    Under a causal mask half of the scores are thrown away; `dense` counts them, as the NumPy reference computes them.

    >>> import chainrule as cr
    >>> from chainrule.scaling import Batch, flops, total
    >>> total(flops(cr.models.GPT.abstract(cr.models.GPTConfig()), Batch(rows=32, tokens=128))).forward
    7251951616
    """
    graph = step_graph(model, batch)
    found = dict.fromkeys(COMPONENTS, Work())
    for node, component in zip(graph.nodes, components(graph), strict=True):
        if node.op.cost is not None:
            spent = work(node, dense=dense, past=batch.past)
            found[component] = Work(*map(add, found.get(component, Work()), spent))
    return found


def total(works: dict[str, Work]) -> Work:
    """All components together."""
    return Work(*(sum(column) for column in zip(*works.values(), strict=True)))


def kept_for_backward(model: Model, batch: Batch) -> int:
    """Bytes of the floats and masks that wait for the backward pass, parameters aside; views of one count once."""
    return sum(kept(step_graph(model, batch)))


def training_memory(model: Model, batch: Batch) -> dict[str, int]:
    """Bytes that training by AdamW holds at the end of a forward pass."""
    return _between_steps(model) | {"activations": kept_for_backward(model, batch)}


def _between_steps(model: Model) -> dict[str, int]:
    """Bytes that training by AdamW holds all the time."""
    learning = FLOAT * model.count(trainable=True)
    return {"weights": FLOAT * model.count(), "gradients": learning, "optimizer": MOMENTS * learning}


def step_memory(model: Model, batch: Batch, *, recompute: bool = False) -> int:
    """Bytes of a training step at its highest: what training holds, and what a backward pass makes for a moment.

    With `recompute` the activations of one block wait for the backward pass, and the inputs of the others.
    """
    graph = step_graph(model, batch)
    activations = kept_recomputing(graph) if recompute else sum(kept(graph))
    return sum(_between_steps(model).values()) + activations + for_a_moment(graph)


def running_memory(
    model: Model, batch: Batch, weights: WeightFormat | Literal["stored"] = "fp32"
) -> dict[str, int]:
    """Bytes of a model that generates: its weights in a format of `generate.Decoder`, and keys and values so far."""
    graph = step_graph(model, batch)
    packed = matrices(graph)
    # Vectors and learned positions stay in float32.
    rest = model.count() - sum(param.size for param in packed)
    bits = sum(param.size * BITS[_format(param, weights)] for param in packed)
    cached = cached_numbers(graph, batch.past)
    return {"weights": round(bits / 8) + FLOAT * rest, "cache": FLOAT * cached}


def _format(param: Param, weights: str) -> str:
    """The format of a matrix: that of all, or the one in which its file has it."""
    if weights != STORED:
        return weights
    return (param.stored_format if isinstance(param, StoredParam) else None) or "fp32"


def lora(model: Model, rank: int) -> int:
    """Trainable numbers when every query and value matrix gets a change of this rank: r (n_in + n_out) each."""
    graph = step_graph(model, step_batch(model, 1, 1))
    attentions = [node for node in graph.nodes if node.op.name in ("attention", "relative_attention")]
    if not attentions:
        raise ConfigError(
            "lora: no layer projects queries and values apart (must have attention of three inputs)"
        )
    matrices = (_projection(graph, node.inputs[place]) for node in attentions for place in (0, 2))
    return sum(rank * sum(shape) for shape in matrices)


def _projection(graph: Graph, source: Any) -> tuple[int, ...]:
    """The shape of the matrix that made queries, keys or values."""
    assert isinstance(source, Value)
    node = graph.nodes[source.node]
    return tuple(node.arrays[1].shape) if node.op.name == "linear" else _projection(graph, node.inputs[0])
