"""One step of a recurrent network: plain, LSTM and GRU.        Derivations: docs/derivations/recurrent.md

The matrix that multiplies [x, h] is stored as two halves, W_x (gates·H, X) and W_h (gates·H, H), with one bias
b (gates·H,) or none. Leading axes are a batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from chainrule.autograd import Example, Op
from chainrule.autograd.types import Array, Grads, Needs, Result, Results, Saved
from chainrule.errors import ConfigError, ShapeError
from chainrule.ops._util import normal, sum_lead
from chainrule.ops.arrays.elementwise import add, mul, sub
from chainrule.ops.neural.activations import logistic, sigmoid, tanh
from chainrule.ops.neural.linear import linear

Bias: TypeAlias = Array | None


def split_gates(a: Any, count: int) -> list[Any]:
    """The last axis of an array or a Tensor in `count` equal parts."""
    H = a.shape[-1] // count
    return [a[..., i * H : (i + 1) * H] for i in range(count)]


def weight_grad(da: Array, x: Array) -> Array:
    """dW of a = x Wᵀ, summed over the batch."""
    return da.reshape(-1, da.shape[-1]).T @ x.reshape(-1, x.shape[-1])  # (out, in)


def check_sizes(op: str, gates: int, x: Array, h: Array, W_x: Array, W_h: Array, *biases: Bias) -> None:
    if 0 in (x.ndim, h.ndim) or x.shape[:-1] != h.shape[:-1]:
        raise ShapeError(f"{op}: x has shape {x.shape}, h {h.shape} (must agree in all but the last axis)")
    X, H = x.shape[-1], h.shape[-1]
    n = gates * H
    bias_shapes = (("bias", b, (n,)) for b in biases)
    for name, array, shape in (("W_x", W_x, (n, X)), ("W_h", W_h, (n, H)), *bias_shapes):
        if array is not None and array.shape != shape:
            raise ShapeError(
                f"{op}: {name} has shape {array.shape}, x size {X}, h size {H} (must be {shape})"
            )


def _example(rng: np.random.Generator, gates: int, *lead: int, X: int, H: int) -> list[Array]:
    """x, h, W_x, W_h, b"""
    n = gates * H
    return [normal(rng, *shape) for shape in ((*lead, X), (*lead, H), (n, X), (n, H), (n,))]


# -- plain ---------------------------------------------------------------------------------------------------


def rnn_forward(x: Array, h: Array, W_x: Array, W_h: Array, b: Bias = None) -> Result:
    """h' = tanh(W_x x + W_h h + b): x (..., X), h (..., H), W_x (H, X), W_h (H, H), b (H,) -> h' (..., H)"""
    check_sizes("rnn_cell", 1, x, h, W_x, W_h, b)
    a = x @ W_x.T + h @ W_h.T  # (..., H)
    y = np.tanh(a if b is None else a + b)  # [RC.1]
    return y, (x, h, W_x, W_h, y)


def rnn_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    x, h, W_x, W_h, y = saved
    da = dy * (1 - y * y)  # forward was: y = tanh(a)    [RC.2]
    return (  # forward was: a = x W_xᵀ + h W_hᵀ + b    [RC.3]
        da @ W_x if needs[0] else None,
        da @ W_h if needs[1] else None,
        weight_grad(da, x) if needs[2] else None,
        weight_grad(da, h) if needs[3] else None,
        sum_lead(da) if needs[4] else None,
    )


def rnn_example(rng: np.random.Generator) -> Iterator[Example]:
    yield Example((*_example(rng, 1, 3, X=4, H=5),))
    yield Example((*_example(rng, 1, X=1, H=7)[:4],))
    yield Example((*_example(rng, 1, 2, 3, X=2, H=1),))


rnn_cell = Op(
    "rnn_cell", rnn_forward, rnn_backward, rnn_example,
    composed=lambda x, h, W_x, W_h, b=None: tanh(add(linear(x, W_x, b), linear(h, W_h))),
)  # fmt: skip


# -- LSTM ----------------------------------------------------------------------------------------------------


def lstm_forward(x: Array, h: Array, c: Array, W_x: Array, W_h: Array, b: Bias = None) -> Results:
    """c' = f c + i g,  h' = o tanh(c'), with i, f, o = σ(·) and g = tanh(·) of W_x x + W_h h + b.

    x (..., X), h and c (..., H), W_x (4H, X), W_h (4H, H), b (4H,) -> h', c' (..., H). The rows of the
    weights are the gates i, f, g, o in this order: PyTorch's weights fit (b is the sum of its two biases).
    """
    check_sizes("lstm_cell", 4, x, h, W_x, W_h, b)
    check_cell("lstm_cell", h, c)
    a = x @ W_x.T + h @ W_h.T  # (..., 4H)
    h_new, c_new, t, *gates = lstm_step(a if b is None else a + b, c)
    return (h_new, c_new), (x, h, c, W_x, W_h, *gates, t)


def lstm_backward(dy: tuple[Array, Array], saved: Saved, needs: Needs) -> Grads:
    x, h, c, W_x, W_h, *gates, t = saved
    da, dc = lstm_step_grads(*dy, c, t, *gates)
    return (
        da @ W_x if needs[0] else None,
        da @ W_h if needs[1] else None,
        dc if needs[2] else None,
        weight_grad(da, x) if needs[3] else None,
        weight_grad(da, h) if needs[4] else None,
        sum_lead(da) if needs[5] else None,
    )


def check_cell(op: str, h: Array, c: Array) -> None:
    if c.shape != h.shape:
        raise ShapeError(f"{op}: c has shape {c.shape}, h has {h.shape} (must be equal)")


def lstm_step(a: Array, c: Array) -> tuple[Array, ...]:
    """h', c', tanh(c') and the gates i, f, g, o, from the sum a (..., 4H) before the gates and c (..., H)"""
    a_i, a_f, a_g, a_o = split_gates(a, 4)
    i, f, g, o = logistic(a_i), logistic(a_f), np.tanh(a_g), logistic(a_o)  # [RC.4]
    c_new = f * c + i * g  # [RC.5]
    t = np.tanh(c_new)
    return o * t, c_new, t, i, f, g, o  # [RC.6]


def lstm_step_grads(
    dh_new: Array, dc_new: Array, c: Array, t: Array, i: Array, f: Array, g: Array, o: Array
) -> tuple[Array, Array]:
    """da (..., 4H) and dc (..., H); t is tanh(c')"""
    dc_new = dc_new + dh_new * o * (1 - t * t)  # forward was: h' = o tanh(c')    [RC.7]
    da_i = dc_new * g * i * (1 - i)  # forward was: c' = f c + i g    [RC.8]
    da_f = dc_new * c * f * (1 - f)
    da_g = dc_new * i * (1 - g * g)
    da_o = dh_new * t * o * (1 - o)
    return np.concatenate((da_i, da_f, da_g, da_o), axis=-1), dc_new * f  # [RC.9]


def lstm_composed(x: Any, h: Any, c: Any, W_x: Any, W_h: Any, b: Any = None) -> Any:
    """The composition from small ops."""
    a_i, a_f, a_g, a_o = split_gates(add(linear(x, W_x, b), linear(h, W_h)), 4)
    c = add(mul(sigmoid(a_f), c), mul(sigmoid(a_i), tanh(a_g)))
    return mul(sigmoid(a_o), tanh(c)), c


def lstm_example(rng: np.random.Generator) -> Iterator[Example]:
    for lead, X, H, last in (((3,), 4, 5, 5), ((), 1, 7, 4), ((2, 3), 2, 1, 5)):
        x, h, *weights = _example(rng, 4, *lead, X=X, H=H)[:last]
        yield Example((x, h, normal(rng, *lead, H), *weights))


lstm_cell = Op("lstm_cell", lstm_forward, lstm_backward, lstm_example, composed=lstm_composed)


# -- GRU -----------------------------------------------------------------------------------------------------


def gru_forward(
    x: Array, h: Array, W_x: Array, W_h: Array, b: Bias = None, b_h: Bias = None, *, reset_after: bool = False
) -> Result:
    """h' = (1 - z) h + z n, with r, z = σ(W_x x + W_h h + b) and n = tanh(W_x x + W_h (r h) + b).

    x (..., X), h (..., H), W_x (3H, X), W_h (3H, H), b (3H,) -> h' (..., H). The rows of the weights are the
    gates r, z, n in this order.

    `reset_after=True` is PyTorch's cell and takes its weights: r multiplies the whole term of h, which has its own
    bias b_h (3H,), n = tanh(W_x x + b + r (W_h h + b_h)), and z keeps the state: h' = (1 - z) n + z h.
    """
    check_sizes("gru_cell", 3, x, h, W_x, W_h, b, b_h)
    check_reset("gru_cell", b_h, reset_after)
    a = x @ W_x.T if b is None else x @ W_x.T + b  # (..., 3H)
    h_new, *gates = gru_step(a, h, W_h, b_h, reset_after)
    return h_new, (x, h, W_x, W_h, *gates)


def gru_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    x, h, W_x, W_h, *gates = saved
    da, du, dh = gru_step_grads(dy, h, W_h, *gates)
    return (
        da @ W_x if needs[0] else None,
        dh if needs[1] else None,
        weight_grad(da, x) if needs[2] else None,
        gru_weight_grad(du, h, *gates) if needs[3] else None,
        sum_lead(da) if needs[4] else None,
        sum_lead(du) if needs[5] else None,
    )


def check_reset(op: str, b_h: Bias, reset_after: bool) -> None:
    if b_h is not None and not reset_after:
        raise ConfigError(f"{op}: b_h is given, reset_after is False (b is the only bias there)")


def gru_step(a: Array, h: Array, W_h: Array, b_h: Bias, reset_after: bool) -> tuple[Any, ...]:
    """h', the gates r, z, n and, with `reset_after`, u_n (else None), from a = W_x x + b (..., 3H) and h (..., H)"""
    H = h.shape[-1]
    a_r, a_z, a_n = split_gates(a, 3)
    if reset_after:
        u_r, u_z, u_n = split_gates(h @ W_h.T if b_h is None else h @ W_h.T + b_h, 3)
        r, z = logistic(a_r + u_r), logistic(a_z + u_z)
        n = np.tanh(a_n + r * u_n)  # [RC.17]
        return n + z * (h - n), r, z, n, u_n
    u_r, u_z = split_gates(h @ W_h[: 2 * H].T, 2)
    r, z = logistic(a_r + u_r), logistic(a_z + u_z)  # [RC.10]
    n = np.tanh(a_n + (r * h) @ W_h[2 * H :].T)  # [RC.11]
    return h + z * (n - h), r, z, n, None  # [RC.12]


def gru_step_grads(
    dy: Array, h: Array, W_h: Array, r: Array, z: Array, n: Array, u_n: Array | None
) -> tuple[Array, Array, Array]:
    """da and du (..., 3H), the gradients of the terms of x and of h, and dh (..., H)"""
    H = h.shape[-1]
    if u_n is not None:
        da_n = dy * (1 - z) * (1 - n * n)  # forward was: h' = n + z (h - n), n = tanh(a_n + r u_n)    [RC.18]
        da_rz = np.concatenate((da_n * u_n * r * (1 - r), dy * (h - n) * z * (1 - z)), axis=-1)  # (..., 2H)
        du = np.concatenate((da_rz, da_n * r), axis=-1)  # (..., 3H)    [RC.19]
        return np.concatenate((da_rz, da_n), axis=-1), du, dy * z + du @ W_h
    dz = dy * (n - h)  # forward was: h' = h + z (n - h)    [RC.13]
    da_n = dy * z * (1 - n * n)
    dm = da_n @ W_h[2 * H :]  # forward was: n = tanh(a_n + m W_nᵀ), m = r h    [RC.14]
    da_rz = np.concatenate((dm * h * r * (1 - r), dz * z * (1 - z)), axis=-1)  # (..., 2H)    [RC.15]
    da = np.concatenate((da_rz, da_n), axis=-1)  # (..., 3H)
    return da, da, dy * (1 - z) + dm * r + da_rz @ W_h[: 2 * H]  # three paths into h    [RC.16]


def gru_weight_grad(du: Array, h: Array, r: Array, z: Array, n: Array, u_n: Array | None) -> Array:
    """dW_h, summed over the batch."""
    if u_n is not None:
        return weight_grad(du, h)
    du_rz, du_n = du[..., : 2 * h.shape[-1]], du[..., 2 * h.shape[-1] :]
    return np.concatenate((weight_grad(du_rz, h), weight_grad(du_n, r * h)))


def gru_composed(
    x: Any, h: Any, W_x: Any, W_h: Any, b: Any = None, b_h: Any = None, *, reset_after: bool = False
) -> Any:
    """The composition from small ops."""
    H = h.shape[-1]
    a_r, a_z, a_n = split_gates(linear(x, W_x, b), 3)
    if reset_after:
        u_r, u_z, u_n = split_gates(linear(h, W_h, b_h), 3)
        r, z = sigmoid(add(a_r, u_r)), sigmoid(add(a_z, u_z))
        n = tanh(add(a_n, mul(r, u_n)))
        return add(mul(sub(1, z), n), mul(z, h))
    u_r, u_z = split_gates(linear(h, W_h[: 2 * H]), 2)
    r, z = sigmoid(add(a_r, u_r)), sigmoid(add(a_z, u_z))
    n = tanh(add(a_n, linear(mul(r, h), W_h[2 * H :])))
    return add(mul(sub(1, z), h), mul(z, n))


def gru_example(rng: np.random.Generator) -> Iterator[Example]:
    yield Example((*_example(rng, 3, 3, X=4, H=5),))
    yield Example((*_example(rng, 3, X=1, H=7)[:4],))
    yield Example((*_example(rng, 3, 2, 3, X=2, H=1), normal(rng, 3)), {"reset_after": True})
    yield Example((*_example(rng, 3, 3, X=4, H=5), None), {"reset_after": True})


gru_cell = Op("gru_cell", gru_forward, gru_backward, gru_example, composed=gru_composed)
