"""From a graph to a decoder program: the instructions of the C++ extension over new tokens, with a cache.

Values live in registers, each a row of numbers for every new token. A value is written as late as possible: a sum of
matmuls stays a sum until it is read, so that what belongs together becomes one instruction.

    linear + activation                 one matmul that ends in the activation
    hidden + linear(...)                a matmul that is added to its register
    linears of q, k, v; of gate and up  side by side in one register, one matrix
    reshapes and transposes of heads    nothing: how a register is read
    rmsnorm of heads, rotary, keys and
    values before those of the tokens   part of attention
    activation · linear                 gate and up side by side, one instruction
    embedding(arange(T)), sinusoids     rows by position, added to the embedding
    rows before those of the tokens     a prompt that every text begins with
    what follows the last attention     computed for the last token of each sequence only
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from chainrule.autograd import Param
from chainrule.autograd.types import Array
from chainrule.trace.by_token import ELEMENTWISE, ROWWISE, concat_axis, cut_axis
from chainrule.trace.cost import RECURRENT, is_causal
from chainrule.trace.graph import Graph, Node, Value
from chainrule.trace.lengths import Size, Table
from chainrule.trace.registers import Registers
from chainrule.trace.terms import (
    Embedded,
    Heads,
    Instruction,
    Linear,
    Register,
    SourceRows,
    Sum,
    Unsupported,
    Weight,
    cut,
    fits,
    joined,
    numbers,
    scaled,
)

ACTIVATIONS = ("gelu", "gelu_tanh", "relu", "silu")
MIXING = ("attention", "cross_attention", "recurrent")  # instructions that look at other rows


def lower(graph: Graph) -> list[Instruction]:
    """The program of a graph of `ids` (1, T), and perhaps `memory` (1, S, C): its result is the last register."""
    lowering = _Lowering(graph)
    for i, node in enumerate(graph.nodes):
        lowering.node(i, node)
    (result,) = graph.outputs
    value = lowering.values[result]
    if not isinstance(value, Sum) or not all(isinstance(term, Linear) for term in value.terms):
        raise Unsupported("lower: a program ends in a linear layer")
    lowering.written(result)
    for i, step in enumerate(lowering.instructions):
        if not fits(step) or (step.name == "embedding") != (i == 0):
            raise Unsupported(f"lower: {step.name} does not fit its registers, or is not where it must be")
    return _last_rows(lowering.instructions)


def _last_rows(program: list[Instruction]) -> list[Instruction]:
    """After the last look at other rows, as soon as all that is needed is in one register, keep last rows only."""
    first = 1 + max((i for i, step in enumerate(program) if step.name in MIXING), default=0)
    for i in range(first, len(program)):
        written = {step.out for step in program[:i]}
        live = written & {x for step in program[i:] for x in step.needed}
        if len(live) == 1:
            (old,) = live
            new = Register(old.width)
            now: dict[Register | None, Register] = {old: new}
            rest = [
                replace(
                    step, reads=tuple(now.get(x, x) for x in step.reads), base=now.get(step.base, step.base)
                )
                for step in program[i:]
            ]
            return [*program[:i], Instruction("last", new, (old,)), *rest]
    raise Unsupported("lower: no single register holds the last row")


def _has_size(constants: dict[str, Any]) -> bool:
    return any(isinstance(x, Size) for c in constants.values() for x in (c if type(c) is tuple else (c,)))


def _norms_of(node: Node, q: Heads, k: Heads) -> tuple[tuple[Array, float], ...] | None:
    """The norms of queries and keys: both with one ε, or none."""
    if q.norm is None and k.norm is None:
        return None
    if q.norm is None or k.norm is None or q.norm[1] != k.norm[1]:
        raise Unsupported(f"lower: {node.name} normalizes its queries and keys unlike")
    return q.norm, k.norm


def _prefix_of(node: Node, q: Heads, k: Heads, v: Heads) -> tuple[Array, Array] | None:
    """Keys and values before those of the tokens, (H, P, D) each: as many of both, or none."""
    if q.prefix is None and k.prefix is None and v.prefix is None:
        return None
    if q.prefix is not None or k.prefix is None or v.prefix is None or k.prefix.shape != v.prefix.shape:
        raise Unsupported(f"lower: {node.name} has prefixes of unlike sizes")
    return k.prefix, v.prefix


class _Lowering(Registers):
    """The graph, node by node."""

    def node(self, i: int, node: Node) -> None:
        if not self.origins[i]:
            self.values[Value(i)] = self._constant(node)
            return
        name = node.op.name
        kind = "activation" if name in ACTIVATIONS else "recurrent" if name in RECURRENT else name
        method = getattr(self, f"_{kind}", None)
        if method is None:
            raise Unsupported(f"lower: {node.name} has no instruction")
        found = method(node)
        for output, value in enumerate(found if isinstance(found, tuple) else (found,)):
            self.values[Value(i, output)] = value

    def _constant(self, node: Node) -> Any:
        """A node that depends on no input is computed now; one that depends on positions alone, for all of them."""
        args = [self.source(s) for s in node.inputs]
        tables = [x for x in (*args, *node.constants.values()) if isinstance(x, Table)]
        by_row = node.op.name == "embedding" or node.op.name in ELEMENTWISE | ROWWISE
        if (tables or _has_size(node.constants)) and not by_row:
            raise Unsupported(f"lower: {node.name} of what depends on positions")
        args = [x.array if isinstance(x, Table) else numbers(x) for x in args]
        constants = {k: x.array if isinstance(x, Table) else x for k, x in node.constants.items()}
        found = np.asarray(node.op(*args, **constants))
        return replace(tables[0], array=found, axis=found.ndim - 2) if tables else found

    def _embedding(self, node: Node) -> Any:
        table = self.source(node.inputs[0])
        if not isinstance(table, Param | np.ndarray):
            raise Unsupported(f"lower: {node.name} has a table that is computed")
        return Embedded(Weight((table,)))

    def _linear(self, node: Node) -> Any:
        x, W, b = node.inputs
        weight, bias = self.source(W), self.source(b)
        plain = isinstance(weight, Param | np.ndarray) and isinstance(bias, Param | np.ndarray | None)
        if node.constants.get("layout", "out_in") != "out_in" or not plain:
            raise Unsupported(f"lower: {node.name} has a weight that is computed")
        matrix, bias = Weight((weight,)), None if bias is None else numbers(bias)
        if isinstance(self.source(x), SourceRows):
            return SourceRows(matrix, bias)
        return Sum((Linear(self.written(x), matrix, bias),), matrix.shape[0])

    def _add(self, node: Node) -> Any:
        a, b = map(self.source, node.inputs)
        if isinstance(a, Table):
            a, b = b, a
        if isinstance(a, Embedded) and isinstance(b, Table):
            positions = b.array.reshape(b.array.shape[-2:])
            return replace(a, positions=positions if a.positions is None else a.positions + positions)
        terms = [self.terms(source) for source in node.inputs]
        return Sum((*terms[0], *terms[1]), node.shapes[0][-1])

    def _mul(self, node: Node) -> Any:
        a, b = node.inputs
        a, b = (b, a) if isinstance(a, np.ndarray) else (a, b)
        if isinstance(a, Value) and isinstance(b, Value):
            return self._gated(node, a, b)
        if not isinstance(b, np.ndarray) or b.size != 1:
            raise Unsupported(f"lower: {node.name} multiplies by a computed value")
        factor, value = float(b.reshape(())), self.source(a)
        if isinstance(value, Embedded) and value.positions is None:
            return replace(value, scale=value.scale * factor)
        terms, width = self.terms(a), node.shapes[0][-1]
        if all(isinstance(term, Linear) and term.activation is None for term in terms):
            return Sum(tuple(scaled(term, factor) for term in terms), width)  # type: ignore[arg-type]
        return self.emit("scale", width, (self.add_up(terms, width),), factor=factor)

    def _gated(self, node: Node, a: Value, b: Value) -> Any:
        """f(gate) · up, both linear layers"""
        gate, up = self.lazy(a), self.lazy(b)
        term = gate.terms[0] if isinstance(gate, Sum) and len(gate.terms) == 1 else None
        if not isinstance(term, Linear) or term.activation is None or not isinstance(up, Sum):
            raise Unsupported(f"lower: {node.name} multiplies by a computed value")
        x = self.columns(node, [Sum((replace(term, activation=None),), gate.width), up])
        return self.emit("gated", node.shapes[0][-1], (x,), activation=term.activation)

    def _activation(self, node: Node) -> Any:
        terms = self.terms(node.inputs[0])
        if len(terms) == 1 and isinstance(terms[0], Linear) and not terms[0].activation:
            return Sum((replace(terms[0], activation=node.op.name),), node.shapes[0][-1])
        x = self.add_up(terms, node.shapes[0][-1])
        return self.emit("activation", x.width, (x,), activation=node.op.name)

    def _layernorm(self, node: Node) -> Any:
        if node.constants.get("eps_mode", "inside") != "inside":
            raise Unsupported(f"lower: {node.name} has its eps outside of the root")
        gamma, beta = (numbers(self.source(s)) for s in node.inputs[1:])
        return self.row_step(node, "layernorm", gamma=gamma, beta=beta, eps=node.constants.get("eps", 1e-5))

    def _rmsnorm(self, node: Node) -> Any:
        x, gamma = map(self.source, node.inputs)
        gamma, eps = numbers(gamma), node.constants.get("eps", 1e-6)
        if isinstance(x, Heads) and x.plain:
            return replace(x, norm=(gamma, eps))
        return self.row_step(node, "rmsnorm", gamma=gamma, eps=eps)

    def _swiglu(self, node: Node) -> Any:
        x = self.columns(node, [self.lazy(source) for source in node.inputs])
        return self.emit("swiglu", node.shapes[0][-1], (x,))

    def _concat(self, node: Node) -> Any:
        *before, last = map(self.source, node.inputs)
        rows = [numbers(x) for x in before if isinstance(x, Param | np.ndarray)]
        if len(rows) == len(before) and concat_axis(node) == -2:
            joined = np.concatenate(rows, axis=-2)[0]  # of the one text that is traced
            if isinstance(last, Heads) and last.transposed and last.prefix is None:
                return replace(last, prefix=joined)
            if (
                isinstance(last, Embedded)
                and last.positions is None
                and last.scale == 1
                and last.prompt is None
            ):
                return replace(last, prompt=joined)
        raise Unsupported(f"lower: {node.name} joins something else than a prefix of heads or of embeddings")

    def _getitem(self, node: Node) -> Any:
        value, found = self.source(node.inputs[0]), cut_axis(node)
        if found is not None and found[0] == -2 and len(node.shapes[0]) == 3:
            return value  # the rows of a prompt are never the last
        linears = value.terms if isinstance(value, Sum) else ()
        if not all(isinstance(term, Linear) and not term.activation for term in linears) or not linears:
            raise Unsupported(f"lower: {node.name} of something other than a linear layer")
        if found is None or found[0] != -1:
            raise Unsupported(f"lower: {node.name} takes more than a slice of features")
        return Sum(tuple(cut(term, found[1]) for term in linears), node.shapes[0][-1])  # type: ignore[arg-type]

    def _reshape(self, node: Node) -> Any:
        value, shape = self.source(node.inputs[0]), node.shapes[0]
        if isinstance(value, Heads):  # joined again
            whole = len(shape) == 3 and shape[-1] == node.arrays[0].shape[-1] * value.heads
            if whole and not value.transposed and value.plain:
                return value.rows
        elif shape == node.arrays[0].shape:
            return value
        elif len(shape) == 4 and shape[2] * shape[3] == node.arrays[0].shape[-1]:
            return Heads(self.lazy(node.inputs[0]), shape[2])
        raise Unsupported(f"lower: {node.name} from {node.arrays[0].shape} to {shape}")

    def _transpose(self, node: Node) -> Any:
        value = self.source(node.inputs[0])
        if not isinstance(value, Heads) or tuple(node.constants["axes"] or ()) != (0, 2, 1, 3):
            raise Unsupported(f"lower: {node.name} by {node.constants['axes']}")
        return replace(value, transposed=not value.transposed)  # the rows are where they were

    def _rotary(self, node: Node) -> Any:
        value, constants = self.source(node.inputs[0]), node.constants
        positions = constants["positions"]
        plain = isinstance(positions, Table) and np.array_equal(
            positions.array, np.arange(len(positions.array))
        )
        fresh = isinstance(value, Heads) and value.transposed and replace(value, norm=None).plain
        if not fresh or not plain or constants.get("interleaved"):
            raise Unsupported(f"lower: {node.name} of other pairs or positions")
        D = node.shapes[0][-1]
        frequency = constants.get("frequency")
        if frequency is None:
            frequency = constants.get("base", 10000.0) ** (-np.arange(0, D, 2) / D)
        return replace(value, frequency=np.asarray(frequency, np.float64))

    def _packed_attention(self, node: Node) -> Any:
        heads = node.constants["heads"]
        scale = self._scale(node, node.shapes[0][-1] // heads)
        arguments = {"heads": heads, "kv_heads": heads, "scale": scale, "frequency": None}
        return self.emit("attention", node.shapes[0][-1], (self.written(node.inputs[0]),), **arguments)

    def _attention(self, node: Node) -> Any:
        q, k, v, *bias = map(self.source, node.inputs)
        scale = self._scale(node, node.arrays[0].shape[-1])
        one_size = node.arrays[2].shape[-1] == node.arrays[0].shape[-1]
        if not one_size or not all(isinstance(x, Heads) and x.transposed for x in (q, k, v)):
            raise Unsupported(f"lower: {node.name} of queries, keys and values whose heads differ in size")
        width = node.shapes[0][1] * node.shapes[0][3]
        if isinstance(k.rows, SourceRows):
            out = self._source_attention(node, width, q, k, v, scale)
        else:
            if not np.array_equal(q.frequency, k.frequency) or not replace(v, prefix=None).plain:
                raise Unsupported(f"lower: {node.name} rotates its queries and keys differently")
            x = self.columns(node, [q.rows, k.rows, v.rows])
            arguments = {"heads": q.heads, "kv_heads": k.heads, "scale": scale, "frequency": q.frequency}
            arguments |= {"norms": _norms_of(node, q, k), "prefix": _prefix_of(node, q, k, v)}
            arguments["bias"] = self._by_distance(node, bias[0]) if bias else None
            out = self.emit("attention", width, (x,), **arguments)
        return Heads(out, q.heads, transposed=True)

    _relative_attention = _attention

    def _by_distance(self, node: Node, bias: Any) -> Array:
        """(H, 2N - 1), for distances from -(N - 1) to N - 1 -> (H, S): those of the keys up to the query"""
        if not isinstance(bias, Param | np.ndarray):
            raise Unsupported(f"lower: {node.name} has a bias that depends on the text")
        N, S = (bias.shape[1] + 1) // 2, node.arrays[1].shape[-2]
        return numbers(bias)[:, N - S : N]

    def _scale(self, node: Node, size: int) -> float:
        """What scores are multiplied by in attention to tokens before, or to all of a source"""
        ids = all("ids" in self.origins[s.node] for s in node.inputs[:3] if isinstance(s, Value))
        if node.constants.get("mask") is not None or node.constants.get("dropout") or is_causal(node) != ids:
            raise Unsupported(f"lower: {node.name} with a mask or dropout of its own")
        scale = node.constants.get("scale")
        return float(1 / np.sqrt(np.float32(size)) if scale is None else scale)

    def _source_attention(self, node: Node, width: int, q: Heads, k: Heads, v: Heads, scale: float) -> Any:
        linear = all(isinstance(x.rows, SourceRows) and x.rows.weight for x in (k, v))
        plain = node.op.name == "attention" and all(x.plain for x in (q, k, v))
        if not linear or not plain or q.heads != k.heads:
            raise Unsupported(f"lower: {node.name} whose keys and values are not linear layers of a source")
        weight = Weight((*k.rows.weight.parts, *v.rows.weight.parts))
        bias = joined([k.rows.bias, v.rows.bias], [len(x.rows.weight.parts[0]) for x in (k, v)])
        x = self.columns(node, [q.rows])
        arguments = {"heads": q.heads, "scale": scale, "weight": weight, "bias": bias}
        return self.emit("cross_attention", width, (x,), **arguments)

    def _recurrent(self, node: Node) -> tuple[Any, ...]:
        x, *rest = node.inputs
        states = len(node.shapes) - 1
        start, (W_x, W_h, *biases) = rest[:states], rest[states:]
        if any(not isinstance(state, np.ndarray) or state.any() for state in start):
            raise Unsupported(f"lower: {node.name} begins with another state than zeros")
        if not all(isinstance(weight, Param | np.ndarray | None) for weight in (W_x, W_h, *biases)):
            raise Unsupported(f"lower: {node.name} has a weight that is computed")
        b, b_h = (None if b is None else numbers(b) for b in (*biases, None)[:2])  # type: ignore[arg-type]
        linear = Linear(self.written(x), Weight((W_x,)), b)  # type: ignore[arg-type]
        inputs = self.add_up((linear,), len(W_x))  # type: ignore[arg-type]
        kind, reset_after = node.op.name.removesuffix("_sequence"), node.constants.get("reset_after", False)
        arguments = {"kind": kind, "weight": Weight((W_h,)), "bias": b_h, "reset_after": reset_after}  # type: ignore[arg-type]
        return self.emit("recurrent", node.shapes[0][-1], (inputs,), **arguments), *(None,) * states
