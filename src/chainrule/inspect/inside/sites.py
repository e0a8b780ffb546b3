"""Where things happen in a forward pass: the residual stream, the blocks along it, and what each part adds to it.

    logits ← head ← norm ← add ← add ← … ← embedding            the spine: of each call its first input

Found in the trace of a model, so that no model has to say it. Names are those of `cr.capture` and `cr.intervene`.
"""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from chainrule.autograd import enable_grad
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, DataError
from chainrule.inspect.inside.checks import as_rows, check_network, number
from chainrule.inspect.inside.parts import Attention, Block, Part
from chainrule.inspect.probe import evaluating
from chainrule.models import Model
from chainrule.models.seq2seq.encoder_decoder import EncoderDecoder
from chainrule.nn import Layer
from chainrule.suggest import hinted
from chainrule.trace.cost import ATTENTION, RECURRENT, block_of, heads_of, part_of
from chainrule.trace.graph import Graph, Value, origin, trace


def arguments(model: Layer, ids: Any) -> tuple[Any, ...]:
    """What `forward` is called with: ids (T,) or (B, T), or a tuple, such as the (source, target) of a translator."""
    check_network(model)
    given = ids if isinstance(ids, tuple) else (ids,)
    if isinstance(model, EncoderDecoder):
        if len(given) not in (2, 3):
            name = type(model).__name__
            raise ConfigError(f"{name}: got {len(given)} arrays of ids (must be a pair: source, target)")
        given = (given[0], None, given[1]) if len(given) == 2 else given
    return tuple(None if x is None else as_rows(x) for x in given)


@dataclass(eq=False)
class Sites:
    """The calls of a forward pass by what they are."""

    graph: Graph

    @cached_property
    def names(self) -> list[str]:
        """The names of the calls, by node."""
        return self.graph.names()

    @cached_property
    def spine(self) -> list[int]:
        """The nodes from the embedding to the output."""
        return self._down(self.graph.outputs[0])

    @cached_property
    def source_spine(self) -> list[int]:
        """The nodes from the embedding of a source to what cross-attention reads; empty without a source."""
        for i in self._crossing:
            reader = self.block_at(i)
            found = self._down(self.graph.nodes[i].inputs[1])
            return [j for j in found if self.block_at(j) != reader]
        return []

    def _down(self, source: Any) -> list[int]:
        found = []
        while isinstance(source, Value):
            found.append(source.node)
            source = self.graph.nodes[source.node].inputs[0]
        return found[::-1]

    @cached_property
    def _crossing(self) -> list[int]:
        """Attention whose queries and keys depend on different inputs."""
        origins = self.graph.origins()
        return [
            i
            for i, node in enumerate(self.graph.nodes)
            if node.op.name in ATTENTION
            and node.op.name != "packed_attention"
            and origin(node.inputs[0], origins) != origin(node.inputs[1], origins)
        ]

    @cached_property
    def blocks(self) -> dict[str, Block]:
        """The blocks by name, those of a source first."""
        last = {self.block_at(i): i for i in (*self.source_spine, *self.spine)}  # on the spine
        return {name: self._block(name, i) for name, i in last.items() if name}

    def _block(self, name: str, last: int) -> Block:
        inside = [i for i, node in enumerate(self.graph.nodes) if block_of(node.layer) == name]
        attentions = tuple(self.attention(i) for i in inside if self.graph.nodes[i].op.name in ATTENTION)
        cells = [self.names[i] for i in inside if self.graph.nodes[i].op.name in RECURRENT]
        added = [self.sums[i] for i in inside if i in self.sums]
        mlps = [source for source in added if self._kind(source)[0] == "mlp"]
        neurons = self._read_by_matrix(mlps[-1]) if mlps else None
        return Block(name, self.names[last], attentions, neurons, cells[0] if cells else None)

    def attention(self, i: int) -> Attention:
        node = self.graph.nodes[i]
        heads = heads_of(node)[0].shape[-3]
        return Attention(self.names[i], heads, i in self._crossing, node.op.name == "packed_attention")

    @cached_property
    def sums(self) -> dict[int, Value]:
        """What each sum along the stream adds to it."""
        on_spine = (*self.source_spine, *self.spine)
        found = {i: self.graph.nodes[i].inputs[-1] for i in on_spine if self.graph.nodes[i].op.name == "add"}
        return {i: source for i, source in found.items() if isinstance(source, Value)}

    def _read_by_matrix(self, source: Any) -> str | None:
        """The call whose value the last matrix on the way to `source` reads."""
        while isinstance(source, Value):
            node = self.graph.nodes[source.node]
            source = node.inputs[0]
            if node.op.name == "linear":
                return self.names[source.node] if isinstance(source, Value) else None
        return None

    @cached_property
    def streams(self) -> dict[str, str]:
        """The call whose value is the residual stream, before the first block and after each."""
        found = {}
        for label, spine in (("source", self.source_spine), ("embedding", self.spine)):
            names = [self.block_at(i) for i in spine]
            first = next((at for at, name in enumerate(names) if name), 0)
            if first:
                found[label] = self.names[spine[first - 1]]
            found |= {name: self.blocks[name].stream for name in dict.fromkeys(names) if name}
        return found

    @cached_property
    def parts(self) -> list[Part]:
        """What is added to the stream, of a source first, in order."""
        return [self._part(i) for i in self.sums]

    def _part(self, i: int) -> Part:
        source = self.sums[i]
        kind, attention = self._kind(source)
        layer = self.graph.nodes[source.node].layer
        return Part(part_of(layer) or layer, kind, self.names[source.node], self.names[i], attention)

    def block_at(self, i: int) -> str:
        """The block of node i; empty outside of blocks."""
        return block_of(self.graph.nodes[i].layer)

    @cached_property
    def last_norm(self) -> list[str]:
        """The calls of the last norm on the spine and of what it reads; empty if there is none."""
        at = max((at for at, i in enumerate(self.spine) if "norm" in self.graph.nodes[i].op.name), default=0)
        return [self.names[i] for i in self.spine[at - 1 : at + 1]] if at else []

    @cached_property
    def summed(self) -> tuple[str, list[Part]]:
        """The call and the parts whose sum the last norm reads: the stream since the norm before it."""
        if not self.last_norm:
            raise ConfigError("inspect: there is no norm before the output (must be a transformer)")
        at, parts = self.spine.index(self.names.index(self.last_norm[0])), []
        while self.spine[at] in self.sums or self.graph.nodes[self.spine[at]].op.name == "getitem":
            if self.spine[at] in self.sums:  # a getitem drops the rows of a soft prompt
                parts.append(self._part(self.spine[at]))
            at -= 1
        return self.names[self.spine[at]], parts[::-1]

    @cached_property
    def before(self) -> int:
        """Rows of a soft prompt before those of the tokens."""
        cuts = [self.graph.nodes[i] for i in self.spine if self.graph.nodes[i].op.name == "getitem"]
        sizes = [(cut.arrays[0].shape, cut.shapes[0]) for cut in cuts]
        return sum(old[1] - new[1] for old, new in sizes if len(old) == len(new) == 3)

    @cached_property
    def tail(self) -> list[int]:
        """The nodes of the spine after the last block, and after what drops the rows of a soft prompt."""
        last = max((at for at, i in enumerate(self.spine) if self.block_at(i)), default=-1)
        return [i for i in self.spine[last + 1 :] if self.graph.nodes[i].op.name != "getitem"]

    def _kind(self, source: Value) -> tuple[str, Attention | None]:
        """What a part of the stream is made by: the nodes behind it, down to the spine."""
        spine, behind, embeds = {*self.spine, *self.source_spine}, [source.node], False
        for i in behind:
            node = self.graph.nodes[i]
            if node.op.name in ATTENTION:
                found = self.attention(i)
                return "cross_attention" if found.cross else "attention", found
            embeds = embeds or node.op.name == "embedding"
            inputs = (x.node for x in node.inputs if isinstance(x, Value) and x.node not in spine)
            behind += [i for i in inputs if i not in behind]
        inside = self.block_at(source.node)
        return "mlp" if inside and not embeds else "embedding", None

    # -- names that a user writes ------------------------------------------------------------------------------

    def block(self, which: str | int) -> Block:
        """A block by its name, or by its number among all blocks."""
        if not isinstance(which, str):
            return list(self.blocks.values())[number("block", which, len(self.blocks))]
        if which not in self.blocks:
            rule = hinted(f"must be one of {', '.join(self.blocks) or 'none'}", which, self.blocks)
            raise ConfigError(f"inspect: no block {which!r} ({rule})")
        return self.blocks[which]

    def attending(self, which: str | int, cross: bool = False) -> Attention:
        """The attention of a block to its own text, or to the source."""
        block = self.block(which)
        found = [each for each in block.attentions if each.cross is cross]
        if not found:
            kind = "cross-attention" if cross else "attention"
            raise ConfigError(f"inspect: block {block.name} has no {kind} (must be a block that attends)")
        return found[0]

    def stream(self, which: str | int) -> str:
        """The call whose value is the stream after a block; before the first block it is called `embedding`."""
        if isinstance(which, str) and which in self.streams:
            return self.streams[which]
        return self.block(which).stream


def sites(model: Model | Layer, ids: Any) -> Sites:
    """The sites of a model's forward pass over ids as `arguments` takes them; nothing is computed.

    >>> import chainrule as cr
    >>> model = cr.models.make("gpt", n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> found = cr.inspect.sites(model, [1, 2, 3])
    >>> found.streams
    {'embedding': 'add', 'h.0': 'h.0.add#2'}
    >>> [(part.name, part.kind, part.call) for part in found.parts[1:]]
    [('h.0.attn', 'attention', 'h.0.attn.c_proj.linear'), \
('h.0.mlp', 'mlp', 'h.0.mlp.c_proj.linear')]
    """
    return Sites(forward_graph(model, arguments(model, ids)))


def forward_graph(model: Layer, given: tuple[Any, ...], *, learning: bool = False) -> Graph:
    """The forward pass in evaluation, traced; if it is `learning`, with what waits for a backward pass."""
    quiet = np.errstate(all="ignore")  # a trace knows shapes: its numbers mean nothing
    with quiet, evaluating(model), enable_grad() if learning else nullcontext():
        return trace(lambda **named: model(*named.values()), **_named(model, given))


def _named(model: Layer, given: tuple[Any, ...]) -> dict[str, Any]:
    names = [*inspect.signature(model.forward).parameters][: len(given)]
    if len(names) < len(given):
        raise ConfigError(f"{type(model).__name__}: got {len(given)} arrays (must be at most {len(names)})")
    return dict(zip(names, given, strict=True))


def one_text(x: Array) -> Array:
    """The only row of a batch."""
    if len(x) != 1:
        raise DataError(f"inspect: {len(x)} texts (must be one: ids (T,) or (1, T))")
    return x[0]
