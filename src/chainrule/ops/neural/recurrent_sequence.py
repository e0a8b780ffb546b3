"""A recurrent network over a whole sequence: plain, LSTM and GRU.        Derivations: docs/derivations/recurrent.md

The cells of `recurrent` with the loop over time inside: x (B, T, X) is multiplied by W_x in one matmul before the
loop, and the gradients of the weights are one matmul each after it; only the matmul with W_h runs step by step.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from chainrule import native
from chainrule.autograd import Example
from chainrule.autograd.recording import contiguous, copied
from chainrule.autograd.types import Array, Grads, Needs, Results, Saved
from chainrule.ops._util import normal, sum_lead
from chainrule.ops.neural import recurrent
from chainrule.ops.neural._sequence import (
    backwards,
    check,
    examples,
    grads,
    native_before,
    native_grads,
    native_project,
    native_sums,
    native_times,
    native_weight_grad,
    native_without_middle,
    project,
    sequence_op,
    states_before,
)
from chainrule.ops.neural.recurrent import Bias

# -- plain ---------------------------------------------------------------------------------------------------


def rnn_forward(x: Array, h: Array, W_x: Array, W_h: Array, b: Bias = None) -> Results:
    """h_t = tanh(W_x x_t + W_h h_t-1 + b) from h_0 = h: all the states, and the last one.

    x (B, T, X), h (B, H), W_x (H, X), W_h (H, H), b (H,) -> y (B, T, H), h_T (B, H)
    """
    check("rnn_sequence", 1, x, h, W_x, W_h, b)
    a = project(x, W_x, b)
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
    da = backwards(steps)  # (B, T, H)
    return grads(needs, x, h, W_x, W_h, y, da, dh)


def rnn_native_forward(x: Array, h: Array, W_x: Array, W_h: Array, b: Bias) -> Results:
    check("rnn_sequence", 1, x, h, W_x, W_h, b)
    y = native_project(x, W_x, b)  # overwritten by the states
    native.kernels().rnn_forward(y, h, W_h)
    return (y, copied(y[:, -1])), (x, h, W_x, W_h, y)


def rnn_native_backward(dy: tuple[Array, Array], saved: Saved, needs: Needs) -> Grads:
    x, h, W_x, W_h, y = saved
    dstates, dh = dy[0], copied(dy[1])
    da = native.empty_like(y)
    native.kernels().rnn_backward(da, dh, y, W_h, dstates)
    return native_grads(needs, x, h, W_x, W_h, y, da, dh)


rnn_sequence = sequence_op(
    recurrent.rnn_cell, 1, 1, (rnn_forward, rnn_backward), (rnn_native_forward, rnn_native_backward)
)


# -- LSTM ----------------------------------------------------------------------------------------------------


def lstm_forward(x: Array, h: Array, c: Array, W_x: Array, W_h: Array, b: Bias = None) -> Results:
    """`lstm_cell` over a sequence, from the state h, c: all the states h, the last one, and the last c.

    x (B, T, X), h and c (B, H), W_x (4H, X), W_h (4H, H), b (4H,) -> y (B, T, H), h_T and c_T (B, H). The rows of the
    weights are the gates i, f, g, o in this order: PyTorch's weights fit (b is the sum of its two biases).
    """
    check("lstm_sequence", 4, x, h, W_x, W_h, b)
    recurrent.check_cell("lstm_sequence", h, c)
    a = project(x, W_x, b)
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
    before, tanh = states_before(c, cells), np.tanh(cells)  # tanh c is recomputed
    steps = []
    for t in reversed(range(x.shape[1])):
        dh = dh + dstates[:, t]  # [RC.21]
        da, dc = recurrent.lstm_step_grads(
            dh, dc, before[:, t], tanh[:, t], *recurrent.split_gates(gates[:, t], 4)
        )
        steps.append(da)
        dh = da @ W_h
    da = backwards(steps)  # (B, T, 4H)
    return grads(needs, x, h, W_x, W_h, y, da, dh, dc)


def lstm_native_forward(x: Array, h: Array, c: Array, W_x: Array, W_h: Array, b: Bias) -> Results:
    check("lstm_sequence", 4, x, h, W_x, W_h, b)
    recurrent.check_cell("lstm_sequence", h, c)
    gates = native_project(x, W_x, b)  # overwritten by the gates
    y = native.empty((*x.shape[:2], h.shape[1]))
    cells = native.empty_like(y)
    native.kernels().lstm_forward(y, cells, gates, h, c, W_h)
    return (y, copied(y[:, -1]), copied(cells[:, -1])), (x, h, c, W_x, W_h, gates, cells, y)


def lstm_native_backward(dy: tuple[Array, Array, Array], saved: Saved, needs: Needs) -> Grads:
    x, h, c, W_x, W_h, gates, cells, y = saved
    dstates, dh, dc = dy[0], copied(dy[1]), copied(dy[2])
    da = native.empty_like(gates)
    native.kernels().lstm_backward(da, dh, dc, gates, cells, c, W_h, dstates)
    return native_grads(needs, x, h, W_x, W_h, y, da, dh, dc)


lstm_sequence = sequence_op(
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
    check("gru_sequence", 3, x, h, W_x, W_h, b, b_h)
    recurrent.check_reset("gru_sequence", b_h, reset_after)
    a = project(x, W_x, b)
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
    before, (r, z, n) = states_before(h, y), recurrent.split_gates(gates, 3)
    steps = []
    for t in reversed(range(x.shape[1])):
        dh = dh + dstates[:, t]  # [RC.21]
        parts = (r[:, t], z[:, t], n[:, t], None if u_n is None else u_n[:, t])
        *step, dh = recurrent.gru_step_grads(dh, before[:, t], W_h, *parts)
        steps.append(step)
    da, du = (backwards(list(part)) for part in zip(*steps, strict=True))  # (B, T, 3H)
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
    check("gru_sequence", 3, x, h, W_x, W_h, b, b_h)
    recurrent.check_reset("gru_sequence", b_h, reset_after)
    gates = native_project(x, W_x, b)  # overwritten by the gates
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
        before = reset = native_before(h, y)
        if u_n is None:
            reset = native.empty_like(y)
            native.kernels().mul(reset, contiguous(gates[..., :H]), before)
        dW_h = native_weight_grad(needs[3], W_h, (du_rz, before), (du_n, reset))
    sums = native_sums(parts)
    return (
        native_times(da, W_x) if needs[0] else None,
        dh if needs[1] else None,
        native_weight_grad(needs[2], W_x, (da, x)) if needs[2] else None,
        dW_h,
        sums[: 3 * H] if needs[4] else None,
        native_without_middle(sums, 2 * H) if needs[5] else None,
    )


def gru_example(rng: np.random.Generator) -> Iterator[Example]:
    for x, h, *weights in examples(rng, 3, 1):
        yield Example((x, h, *weights))
        after = [*weights, normal(rng, 3 * h.shape[1])] if len(h) > 2 else weights
        yield Example((normal(rng, *x.shape), normal(rng, *h.shape), *after), {"reset_after": True})


gru_sequence = sequence_op(
    recurrent.gru_cell, 3, 1, (gru_forward, gru_backward), (gru_native_forward, gru_native_backward),
    gru_example
)  # fmt: skip
