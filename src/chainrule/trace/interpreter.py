"""The reference interpreter: a graph's ops called again, in NumPy, for the new tokens of a sequence.

It does what a compiled program of the extension does, for anything that can be traced, in float32 or float64. Keys and
values, or the state of a recurrent layer, are carried from call to call; tables by position are read from where the new
tokens are.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from chainrule import ops
from chainrule.autograd import Op, Param, scope
from chainrule.autograd.call import FLOAT32, operands
from chainrule.autograd.mode import mode
from chainrule.autograd.types import Array
from chainrule.machine import one_blas_thread
from chainrule.trace.by_token import BY_ROW, check_by_token, concat_axis, cut_axis
from chainrule.trace.cost import ATTENTION, RECURRENT, is_causal
from chainrule.trace.graph import Given, Graph, Node, Value
from chainrule.trace.lengths import Size, Table
from chainrule.types import Ids

Env = dict[Value, Array]
Getter: TypeAlias = "Callable[[_Pass], Any]"


def matrices(graph: Graph) -> set[int]:
    """Parameters, by identity, that a weight format rounds: matrices of linear layers and embedding tables."""
    found = set()
    for node in graph.nodes:
        if node.op.name == "linear":
            found.add(id(node.inputs[1]))
        elif node.op.name == "embedding" and isinstance(node.constants["ids"], Given):
            found.add(id(node.inputs[0]))
        elif node.op.name in RECURRENT:
            found |= {id(x) for x in node.inputs if isinstance(x, Param) and x.ndim == 2}
    return found


class Interpreter:
    """Runs a graph of `ids` (1, T), and perhaps of `memory` (1, S, C), with a copy of its parameters.

    `round` says what a weight format keeps of a matrix.
    """

    def __init__(self, graph: Graph, round: Callable[[Array], Array]) -> None:
        self.graph = graph
        rounded = matrices(graph)
        self.params = {
            id(param): round(param.array) if id(param) in rounded else param.array.copy()
            for param, _, _ in graph.parameters()
        }
        self.origins = graph.origins()
        self.axes = check_by_token(graph)
        mixing = [i for i, node in enumerate(graph.nodes) if node.op.name not in BY_ROW]
        self.tail = max(mixing, default=-1) + 1
        self.getters = [
            (
                [self._getter(source) for source in node.inputs],
                {name: self._getter(x) for name, x in node.constants.items() if _changes(x)},
            )
            for node in graph.nodes
        ]
        self.state: dict[tuple[int, int], tuple[Array, ...]] = {}  # of a node, for a sequence
        self.sources: list[Env] = []  # what nodes that depend on a source alone have found

    def _getter(self, source: Any) -> Getter:
        """What finds a source in a pass."""
        if isinstance(source, Value):
            return lambda new: new.env[source]
        if isinstance(source, Given):
            return lambda new: new.given[source.name]
        if isinstance(source, Size):
            return lambda new: new.length(source)
        if isinstance(source, Table):
            return lambda new: new.rows(source)
        if _changes(source):
            parts = [self._getter(x) for x in source]
            return lambda new: type(source)(get(new) for get in parts)
        known = self.params[id(source)] if isinstance(source, Param) else source
        return lambda new: known

    def run(
        self,
        result: Array,
        tokens: Ids,
        sequences: Ids,
        counts: Ids,
        past: Ids,
        sources: Ids | None = None,
        kept: Ids | None = None,
    ) -> None:
        """The next counts[i] tokens follow the past[i] of sequences[i], about sources[i] -> result, the last kept[i]
        rows of each"""
        pieces = np.split(tokens, np.cumsum(counts)[:-1])
        rows = np.split(result, np.cumsum(np.ones_like(counts) if kept is None else kept)[:-1])
        with one_blas_thread():
            for i, (piece, sequence, start) in enumerate(zip(pieces, sequences, past, strict=True)):
                about = None if sources is None else self.sources[sources[i]]
                rows[i][...] = _Pass(self, int(sequence), piece, int(start), about).output(len(rows[i]))

    def read(self, memory: Array, counts: Ids) -> None:
        """Source i is the next counts[i] rows of memory; what was read before is forgotten."""
        self.sources = []
        for rows in np.split(memory, np.cumsum(counts)[:-1]):
            found = _Pass(self, -1, np.empty(0, np.int64), 0, None, memory=rows[None])
            self.sources.append(found.of_source())

    def copy(self, source: int, target: int, count: int) -> None:
        """Share the state of a sequence with another one: its arrays are never written to."""
        for node in {node for node, sequence in self.state if sequence == source}:
            self.state[node, target] = self.state[node, source]

    def truncate(self, sequence: int, count: int) -> None:
        """Forget what a sequence has read after its first `count` tokens; the rest is cut when it continues."""
        if not count:
            for node in [node for node, other in self.state if other == sequence]:
                del self.state[node, sequence]

    def pages(self) -> tuple[int, int, int, int]:
        """There are none."""
        return 0, 0, 0, 0

    def fresh(self) -> Interpreter:
        """Another one with the same parameters, which has read nothing."""
        other = copy.copy(self)
        other.state, other.sources = {}, []
        return other

    def grow(self, sequences: int) -> None:
        """There is no limit."""


class _Pass:
    """New tokens of one sequence on their way through the graph."""

    def __init__(
        self,
        owner: Interpreter,
        sequence: int,
        tokens: Ids,
        start: int,
        about: Env | None,
        memory: Array | None = None,
    ) -> None:
        self.owner, self.sequence, self.start = owner, sequence, start
        self.given = {"ids": tokens[None], "memory": memory}
        self.lengths = {"ids": len(tokens), "memory": 0 if memory is None else memory.shape[1]}
        self.env: Env = dict(about or {})

    def output(self, kept: int) -> Array:
        """The last rows of what the graph returns, (kept, V)"""
        for each in mode.interventions:
            each.begin()
        for i, node in enumerate(self.owner.graph.nodes):
            if i == self.owner.tail and self.lengths["ids"] > kept:
                self._keep_last_rows(kept)
            if Value(i) not in self.env:
                self._call(i, node)
        (result,) = self.owner.graph.outputs
        rows: Array = self.env[result][0, -kept:]  # type: ignore[index]
        return rows

    def of_source(self) -> Env:
        for i, node in enumerate(self.owner.graph.nodes):
            if self.owner.origins[i] == {"memory"} or (not self.owner.origins[i] and not _by_position(node)):
                self._call(i, node)
        return self.env

    def _keep_last_rows(self, kept: int) -> None:
        for value, x in self.env.items():
            axis = self.owner.axes[value.node]
            if axis is not None:
                self.env[value] = np.take(x, range(-kept, 0), axis)

    def _call(self, i: int, node: Node) -> None:
        inputs, changing = self.owner.getters[i]
        args = [get(self) for get in inputs]
        constants = node.constants | {name: get(self) for name, get in changing.items()}
        found: Any
        if node.op.name in ATTENTION and is_causal(node):
            found = self._attend(i, node, args, constants)
        elif node.op.name in RECURRENT:
            found = self._recur(i, node, args, constants)
        elif node.op.name == "concat" and self.start and concat_axis(node) == self.owner.axes[i]:
            found = args[-1]  # a prefix, such as trained keys, is in the cache since the first call
        elif node.op.name == "getitem" and self.start and self._cuts_tokens(i, node):
            found = args[0]  # the rows before the tokens are not there any more
        else:
            found = _computed(node.layer, node.op, args, constants)
        for output, value in enumerate(found if isinstance(found, tuple) else (found,)):
            self.env[Value(i, output)] = value

    def rows(self, table: Table) -> Array:
        """The entries of the new positions."""
        start = self.start if table.of == "ids" else 0
        skipped = table.before if start else 0
        stop = table.before + start + self.lengths[table.of]
        return table.rows(skipped + start, stop)

    def length(self, size: Size) -> int:
        """How many rows are new: those before the tokens come with the first."""
        return self.lengths[size.of] + (0 if self.start else size.before)

    def _cuts_tokens(self, i: int, node: Node) -> bool:
        cut = cut_axis(node)
        return cut is not None and cut[0] == self.owner.axes[i]

    def _attend(self, i: int, node: Node, args: list[Array], constants: dict[str, Any]) -> Array:
        """Attention of the new queries to the keys and values of all positions so far."""
        packed, bias = node.op.name == "packed_attention", []
        if packed:
            B, T, _ = args[0].shape
            heads = constants.pop("heads")
            q, k, v = args[0].reshape(B, T, 3, heads, -1).transpose(2, 0, 3, 1, 4)  # (B, H, T, D) each
        else:
            q, k, v, *bias = args
        if self.start:
            *past, prefix = self.owner.state[i, self.sequence]
            k, v = (
                np.concatenate([old[..., : int(prefix) + self.start, :], new], axis=-2)
                for old, new in zip(past, (k, v), strict=True)
            )
        else:
            prefix = np.asarray(k.shape[-2] - self.lengths["ids"])
        self.owner.state[i, self.sequence] = k, v, prefix
        op: Any = ops.relative_attention if bias else ops.attention
        mixed: Array = _computed(node.layer, op, [q, k, v, *bias], constants | {"causal": True})
        return mixed.transpose(0, 2, 1, 3).reshape(B, T, -1) if packed else mixed

    def _recur(self, i: int, node: Node, args: list[Array], constants: dict[str, Any]) -> tuple[Array, ...]:
        """A recurrent layer from where the sequence is; at its beginning from the state of the graph, zeros."""
        states = len(node.shapes) - 1
        if self.start:
            args[1 : 1 + states] = self.owner.state[i, self.sequence]
        found: tuple[Array, ...] = _computed(node.layer, node.op, args, constants)
        self.owner.state[i, self.sequence] = found[1:]
        return found


def _changes(x: Any) -> bool:
    """True for what differs from pass to pass."""
    if isinstance(x, Value | Given | Size | Table):
        return True
    return isinstance(x, tuple | list) and any(map(_changes, x))


def _computed(layer: str, op: Op, args: list[Any], constants: dict[str, Any]) -> Any:
    """What an op computes; if calls are captured or changed, under the name of its layer."""
    if mode.captures or mode.interventions:
        with scope(layer):
            return op(*args, **constants)
    if not all(x is None or (type(x) is np.ndarray and x.dtype is FLOAT32) for x in args):
        args = operands(args, op.name, op.integers)
    return op.run_forward(args, constants)[0]


def _by_position(node: Node) -> bool:
    """True if the node depends on the number of tokens, or on their positions."""
    found = [*node.inputs, *node.constants.values()]
    found += [x for each in found if isinstance(each, tuple | list) for x in each]
    return any(isinstance(x, Size | Table) and x.of == "ids" for x in found)
