"""A recurrent network over a whole sequence: plain, LSTM and GRU.        Derivations: docs/derivations/recurrent.md

The cells of `recurrent` with the loop over time inside: x (B, T, X) is multiplied by W_x in one matmul before the
loop, and the gradients of the weights are one matmul each after it; only the matmul with W_h runs step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from chainrule import native
from chainrule.autograd import Example, Op
from chainrule.autograd.abstract import abstract
from chainrule.autograd.op import Examples
from chainrule.autograd.recording import contiguous, copied
from chainrule.autograd.types import Array, Grads, Into, Needs, Results, Saved, Work
from chainrule.errors import ShapeError
from chainrule.ops._util import normal, rows, sum_lead
from chainrule.ops.arrays.shape import concat
from chainrule.ops.neural import recurrent
from chainrule.ops.neural.recurrent import Bias

Pair: TypeAlias = tuple[Callable[..., Any], Callable[..., Any]]  # forward and backward


def _check(op: str, gates: int, x: Array, state: Array, W_x: Array, W_h: Array, *biases: Bias) -> None:
    if x.ndim != 3 or x.shape[1] == 0:
        raise ShapeError(f"{op}: x has shape {x.shape} (must be (B, T, X) with T at least 1)")
    recurrent.check_sizes(op, gates, x[:, 0], state, W_x, W_h, *biases)


def _project(x: Array, W_x: Array, b: Bias) -> Array:
    """x W_xᵀ + b for all steps in one matmul: (B, T, gates·H)"""
    a = rows(x) @ W_x.T  # [RC.20]
    return (a if b is None else a + b).reshape(*x.shape[:2], len(W_x))


def _before(h: Array, y: Array, out: Array | None = None) -> Array:
    """The state before each step: h, then y without its last step, (B, T, H)"""
    return np.concatenate((h[:, None], y[:, :-1]), axis=1, out=out)


def _backwards(steps: list[Any]) -> Array:
    """Steps collected from the last to the first, in the order of time: (B, T, ...)"""
    return np.stack(steps[::-1], axis=1)


# B, T, X, H of the examples
SIZES = ((3, 4, 2, 5), (1, 1, 7, 1), (2, 3, 1, 7), (7, 2, 5, 16), (2, 3, 33, 65))


def _examples(rng: np.random.Generator, gates: int, states: int) -> Iterator[list[Array]]:
    """x, the states, W_x, W_h and perhaps b; weights scaled so that states stay moderate"""
    for B, T, X, H in SIZES:
        n = gates * H
        weights = [normal(rng, n, X) / X**0.5, normal(rng, n, H) / H**0.5, normal(rng, n)]
        inputs = [normal(rng, B, T, X), *(normal(rng, B, H) for _ in range(states))]
        yield [*inputs, *weights[: 2 if B == 1 else 3]]


def _composed(cell: Op, states: int) -> Callable[..., Any]:
    """The composition from cells with this many states, their outputs joined."""

    def composed(x: Any, *rest: Any, **constants: Any) -> Any:
        state, weights = rest[:states], rest[states:]
        outputs = []
        for t in range(x.shape[1]):
            after: Any = cell(x[:, t], *state, *weights, **constants)
            state = after if isinstance(after, tuple) else (after,)
            outputs.append(state[0].reshape(x.shape[0], 1, state[0].shape[-1]))  # (B, 1, H)
        return concat(*outputs, axis=1), *state

    return composed


def _abstract(op: str, gates: int, states: int) -> Callable[..., Any]:
    """The forward pass on shapes alone. Gates are saved by LSTM and GRU, with c or, in PyTorch's GRU, u_n."""

    def abstract_forward(x: Array, *rest: Any, reset_after: bool = False) -> tuple[Any, Saved]:
        h, *weights = rest[0], *rest[states:]
        _check(op, gates, x, h, *weights)
        y = abstract((*x.shape[:2], h.shape[1]), x.dtype)
        saved: Saved = (x, *rest[: states + 2])
        if gates > 1:
            beside = abstract(y.shape, x.dtype) if states == 2 or reset_after else None
            saved += (abstract((*x.shape[:2], len(weights[0])), x.dtype), beside)
        return (y, *(abstract(h.shape, x.dtype) for _ in range(states))), (*saved, y)

    return abstract_forward


def _cost(states: int) -> Callable[..., Work]:
    def cost(needs: Needs, *inputs: Any, reset_after: bool = False) -> Work:
        B, T, _ = inputs[0].shape
        W_x, W_h = (2 * B * T * W.size for W in inputs[states + 1 : states + 3])
        dW_x, dW_h = (bool(need) for need in needs[states + 1 : states + 3])
        # Backward goes through every state, needed or not.
        return Work(W_x + W_h, W_x * (bool(needs[0]) + dW_x) + W_h * (1 + dW_h))

    return cost


def _sequence(
    cell: Op, gates: int, states: int, pair: Pair, native_pair: Pair, example: Examples | None = None
) -> Op:
    """The op over x, `states` first states, W_x, W_h and biases, whose steps are those of `cell`."""
    name = cell.name.replace("_cell", "_sequence")

    def native_forward(x: Array, *rest: Any, **constants: Any) -> Any:
        one_step = x.ndim == 3 and x.shape[1] == 1  # packing W_h is not worth it
        return (pair[0] if one_step else native_pair[0])(x, *rest, **constants)

    def plain(rng: np.random.Generator) -> Iterator[Example]:
        return (Example(tuple(inputs)) for inputs in _examples(rng, gates, states))

    return Op(
        name, *pair, example or plain, composed=_composed(cell, states), native=(native_forward, native_pair[1]),
        abstract=_abstract(name, gates, states), cost=_cost(states),
    )  # fmt: skip


def _grads(
    needs: Needs, x: Array, h: Array, W_x: Array, W_h: Array, y: Array, da: Array, *dstates: Array
) -> Grads:
    """The gradients of x, the first states, W_x, W_h and b, from da (B, T, gates·H), of what goes into the gates"""
    need_x, *need_states, need_W_x, need_W_h, need_b = needs
    return (
        da @ W_x if need_x else None,
        *(dstate if need else None for dstate, need in zip(dstates, need_states, strict=True)),
        recurrent.weight_grad(da, x) if need_W_x else None,  # one matmul over all B T rows    [RC.22]
        recurrent.weight_grad(da, _before(h, y)) if need_W_h else None,
        sum_lead(da) if need_b else None,
    )


# -- shared by the native pairs, whose kernels do only the loop over time ------------------------------------------


def _native_project(x: Array, W_x: Array, b: Bias) -> Array:
    return native.matmul(rows(x), W_x.T, bias=b).reshape(*x.shape[:2], len(W_x))  # [RC.20]


def _native_times(da: Array, W_x: Array) -> Array:
    return native.matmul(rows(da), W_x).reshape(*da.shape[:2], W_x.shape[1])


def _native_weight_grad(need: Any, W: Array, *pairs: tuple[Array, Array]) -> Array:
    """dW = daᵀ x over all B T rows, for each pair a block of its rows; added in place if it has one    [RC.22]"""
    into = isinstance(need, Into)
    dW: Array = need.array if into else native.empty_like(W)
    first = 0
    for da, x in pairs:
        last = first + da.shape[-1]
        native.matmul(rows(da).T, rows(x), out=dW[first:last], accumulate=into)
        first = last
    return dW


def _native_before(h: Array, y: Array) -> Array:
    """The state before each step, (B, T, H)"""
    before, copy = native.empty_like(y), native.kernels().copy
    copy(before[:, 0], h)
    copy(before[:, 1:], y[:, :-1])
    return before


def _native_without_middle(sums: Array, first: int) -> Array:
    """The first numbers of `sums` and as many of the last ones as make 3 H of 4 H: without those of da_n"""
    H = len(sums) - first - (len(sums) - first) // 2
    found, copy = native.empty((first + H,)), native.kernels().copy
    copy(found[:first], sums[:first])
    copy(found[first:], sums[-H:])
    return found


def _native_sums(da: Array) -> Array:
    sums = native.cleared(da.shape[-1:])
    native.kernels().column_sums(sums, rows(da))
    return sums


def _native_grads(
    needs: Needs, x: Array, h: Array, W_x: Array, W_h: Array, y: Array, da: Array, *dstates: Array
) -> Grads:
    need_x, *need_states, need_W_x, need_W_h, need_b = needs
    return (
        _native_times(da, W_x) if need_x else None,
        *(dstate if need else None for dstate, need in zip(dstates, need_states, strict=True)),
        _native_weight_grad(need_W_x, W_x, (da, x)) if need_W_x else None,
        _native_weight_grad(need_W_h, W_h, (da, _native_before(h, y))) if need_W_h else None,
        _native_sums(da) if need_b else None,
    )


# -- plain ---------------------------------------------------------------------------------------------------


def rnn_forward(x: Array, h: Array, W_x: Array, W_h: Array, b: Bias = None) -> Results:
    """h_t = tanh(W_x x_t + W_h h_t-1 + b) from h_0 = h: all the states, and the last one.

    x (B, T, X), h (B, H), W_x (H, X), W_h (H, H), b (H,) -> y (B, T, H), h_T (B, H)
    """
    _check("rnn_sequence", 1, x, h, W_x, W_h, b)
    a = _project(x, W_x, b)
    state, states = h, []
    for t in range(x.shape[1]):
        state = np.tanh(a[:, t] + state @ W_h.T)  # [RC.1]
        states.append(state)
    y = np.stack(states, axis=1)  # (B, T, H)
    return (y, state), (x, h, W_x, W_h, y)


def rnn_backward(dy: tuple[Array, Array], saved: Saved, needs: Needs) -> Grads:
    x, h, W_x, W_h, y = saved
    dstates, dh = dy
    steps = []
    for t in reversed(range(x.shape[1])):
        dh = dh + dstates[:, t]  # each state is an output and feeds the next step    [RC.21]
        steps.append(dh * (1 - y[:, t] ** 2))  # [RC.2]
        dh = steps[-1] @ W_h
    da = _backwards(steps)  # (B, T, H)
    return _grads(needs, x, h, W_x, W_h, y, da, dh)


def rnn_native_forward(x: Array, h: Array, W_x: Array, W_h: Array, b: Bias) -> Results:
    _check("rnn_sequence", 1, x, h, W_x, W_h, b)
    y = _native_project(x, W_x, b)  # overwritten by the states
    native.kernels().rnn_forward(y, h, W_h)
    return (y, copied(y[:, -1])), (x, h, W_x, W_h, y)


def rnn_native_backward(dy: tuple[Array, Array], saved: Saved, needs: Needs) -> Grads:
    x, h, W_x, W_h, y = saved
    dstates, dh = dy[0], copied(dy[1])
    da = native.empty_like(y)
    native.kernels().rnn_backward(da, dh, y, W_h, dstates)
    return _native_grads(needs, x, h, W_x, W_h, y, da, dh)


rnn_sequence = _sequence(
    recurrent.rnn_cell, 1, 1, (rnn_forward, rnn_backward), (rnn_native_forward, rnn_native_backward)
)


# -- LSTM ----------------------------------------------------------------------------------------------------


def lstm_forward(x: Array, h: Array, c: Array, W_x: Array, W_h: Array, b: Bias = None) -> Results:
    """`lstm_cell` over a sequence, from the state h, c: all the states h, the last one, and the last c.

    x (B, T, X), h and c (B, H), W_x (4H, X), W_h (4H, H), b (4H,) -> y (B, T, H), h_T and c_T (B, H). The rows of the
    weights are the gates i, f, g, o in this order: PyTorch's weights fit (b is the sum of its two biases).
    """
    _check("lstm_sequence", 4, x, h, W_x, W_h, b)
    recurrent.check_cell("lstm_sequence", h, c)
    a = _project(x, W_x, b)
    state, cell, states, cells, gates = h, c, [], [], []
    for t in range(x.shape[1]):
        state, cell, _, *parts = recurrent.lstm_step(a[:, t] + state @ W_h.T, cell)
        states.append(state)
        cells.append(cell)
        gates.append(np.concatenate(parts, axis=-1))
    y = np.stack(states, axis=1)  # (B, T, H)
    return (y, state, cell), (x, h, c, W_x, W_h, np.stack(gates, axis=1), np.stack(cells, axis=1), y)


def lstm_backward(dy: tuple[Array, Array, Array], saved: Saved, needs: Needs) -> Grads:
    x, h, c, W_x, W_h, gates, cells, y = saved
    dstates, dh, dc = dy
    before, tanh = _before(c, cells), np.tanh(cells)  # tanh c is recomputed
    steps = []
    for t in reversed(range(x.shape[1])):
        dh = dh + dstates[:, t]  # [RC.21]
        da, dc = recurrent.lstm_step_grads(
            dh, dc, before[:, t], tanh[:, t], *recurrent.split_gates(gates[:, t], 4)
        )
        steps.append(da)
        dh = da @ W_h
    da = _backwards(steps)  # (B, T, 4H)
    return _grads(needs, x, h, W_x, W_h, y, da, dh, dc)


def lstm_native_forward(x: Array, h: Array, c: Array, W_x: Array, W_h: Array, b: Bias) -> Results:
    _check("lstm_sequence", 4, x, h, W_x, W_h, b)
    recurrent.check_cell("lstm_sequence", h, c)
    gates = _native_project(x, W_x, b)  # overwritten by the gates
    y = native.empty((*x.shape[:2], h.shape[1]))
    cells = native.empty_like(y)
    native.kernels().lstm_forward(y, cells, gates, h, c, W_h)
    return (y, copied(y[:, -1]), copied(cells[:, -1])), (x, h, c, W_x, W_h, gates, cells, y)


def lstm_native_backward(dy: tuple[Array, Array, Array], saved: Saved, needs: Needs) -> Grads:
    x, h, c, W_x, W_h, gates, cells, y = saved
    dstates, dh, dc = dy[0], copied(dy[1]), copied(dy[2])
    da = native.empty_like(gates)
    native.kernels().lstm_backward(da, dh, dc, gates, cells, c, W_h, dstates)
    return _native_grads(needs, x, h, W_x, W_h, y, da, dh, dc)


lstm_sequence = _sequence(
    recurrent.lstm_cell, 4, 2, (lstm_forward, lstm_backward), (lstm_native_forward, lstm_native_backward)
)


# -- GRU -----------------------------------------------------------------------------------------------------


def gru_forward(
    x: Array, h: Array, W_x: Array, W_h: Array, b: Bias = None, b_h: Bias = None, *, reset_after: bool = False
) -> Results:
    """`gru_cell` over a sequence, from the state h: all the states, and the last one.

    x (B, T, X), h (B, H), W_x (3H, X), W_h (3H, H), b (3H,) -> y (B, T, H), h_T (B, H). The rows of the weights are
    the gates r, z, n in this order. `reset_after=True` is PyTorch's GRU, with its second bias b_h (3H,).
    """
    _check("gru_sequence", 3, x, h, W_x, W_h, b, b_h)
    recurrent.check_reset("gru_sequence", b_h, reset_after)
    a = _project(x, W_x, b)
    state, states, gates, products = h, [], [], []
    for t in range(x.shape[1]):
        state, *parts, u_n = recurrent.gru_step(a[:, t], state, W_h, b_h, reset_after)
        states.append(state)
        gates.append(np.concatenate(parts, axis=-1))
        products.append(u_n)
    y = np.stack(states, axis=1)  # (B, T, H)
    u_n = np.stack(products, axis=1) if reset_after else None
    return (y, state), (x, h, W_x, W_h, np.stack(gates, axis=1), u_n, y)


def gru_backward(dy: tuple[Array, Array], saved: Saved, needs: Needs) -> Grads:
    x, h, W_x, W_h, gates, u_n, y = saved
    dstates, dh = dy
    before, (r, z, n) = _before(h, y), recurrent.split_gates(gates, 3)
    steps = []
    for t in reversed(range(x.shape[1])):
        dh = dh + dstates[:, t]  # [RC.21]
        parts = (r[:, t], z[:, t], n[:, t], None if u_n is None else u_n[:, t])
        *step, dh = recurrent.gru_step_grads(dh, before[:, t], W_h, *parts)
        steps.append(step)
    da, du = (_backwards(list(part)) for part in zip(*steps, strict=True))  # (B, T, 3H)
    return (
        da @ W_x if needs[0] else None,
        dh if needs[1] else None,
        recurrent.weight_grad(da, x) if needs[2] else None,  # [RC.22]
        recurrent.gru_weight_grad(du, before, r, z, n, u_n) if needs[3] else None,
        sum_lead(da) if needs[4] else None,
        sum_lead(du) if needs[5] else None,
    )


def gru_native_forward(
    x: Array, h: Array, W_x: Array, W_h: Array, b: Bias, b_h: Bias, *, reset_after: bool = False
) -> Results:
    _check("gru_sequence", 3, x, h, W_x, W_h, b, b_h)
    recurrent.check_reset("gru_sequence", b_h, reset_after)
    gates = _native_project(x, W_x, b)  # overwritten by the gates
    y = native.empty((*x.shape[:2], h.shape[1]))
    u_n = native.empty_like(y) if reset_after else None
    if reset_after:
        native.kernels().gru_after_forward(y, gates, u_n, h, W_h, b_h)
    else:
        native.kernels().gru_forward(y, gates, h, W_h)
    return (y, copied(y[:, -1])), (x, h, W_x, W_h, gates, u_n, y)


def gru_native_backward(dy: tuple[Array, Array], saved: Saved, needs: Needs) -> Grads:
    x, h, W_x, W_h, gates, u_n, y = saved
    dstates, dh, H = dy[0], copied(dy[1]), h.shape[1]
    # da_r, da_z, da_n, and du_n if it differs
    parts = native.empty((*x.shape[:2], (3 if u_n is None else 4) * H))
    if u_n is None:
        native.kernels().gru_backward(parts, dh, gates, y, h, W_h, dstates)
    else:
        native.kernels().gru_after_backward(parts, dh, gates, u_n, y, h, W_h, dstates)
    da, du_rz, du_n = parts[..., : 3 * H], parts[..., : 2 * H], parts[..., -H:]
    dW_h = None
    if needs[3]:
        before = reset = _native_before(h, y)
        if u_n is None:
            reset = native.empty_like(y)
            native.kernels().mul(reset, contiguous(gates[..., :H]), before)
        dW_h = _native_weight_grad(needs[3], W_h, (du_rz, before), (du_n, reset))
    sums = _native_sums(parts)
    return (
        _native_times(da, W_x) if needs[0] else None,
        dh if needs[1] else None,
        _native_weight_grad(needs[2], W_x, (da, x)) if needs[2] else None,
        dW_h,
        sums[: 3 * H] if needs[4] else None,
        _native_without_middle(sums, 2 * H) if needs[5] else None,
    )


def gru_example(rng: np.random.Generator) -> Iterator[Example]:
    for x, h, *weights in _examples(rng, 3, 1):
        yield Example((x, h, *weights))
        after = [*weights, normal(rng, 3 * h.shape[1])] if len(h) > 2 else weights
        yield Example((normal(rng, *x.shape), normal(rng, *h.shape), *after), {"reset_after": True})


gru_sequence = _sequence(
    recurrent.gru_cell, 3, 1, (gru_forward, gru_backward), (gru_native_forward, gru_native_backward),
    gru_example
)  # fmt: skip
