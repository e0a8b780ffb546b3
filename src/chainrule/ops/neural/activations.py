"""Elementwise activation functions.        Derivations: docs/derivations/activations.md"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from chainrule import native
from chainrule.autograd import Example, Op
from chainrule.autograd.abstract import abstract, saves_inputs, saves_output
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved
from chainrule.errors import ConfigError, ShapeError
from chainrule.ops._util import away_from_zero, examples, native_map, normal, shapes, unbroadcast
from chainrule.ops.arrays.elementwise import add, div, exp, log, mul, neg, sub


def _wide(rng: np.random.Generator, *shape: int) -> Array:
    return 3 * normal(rng, *shape)


smooth_example = examples(
    shapes((3, 4)), shapes((2, 7, 1), draw=_wide),
    *(shapes((n,), draw=_wide) for n in (16, 33, 257))  # whole vectors of the native kernels, and a remainder
)  # fmt: skip

_kinked = [shapes(shape, draw=away_from_zero) for shape in ((3, 4), (2, 7, 1), (33,))]


def logistic(x: Array) -> Array:
    """σ(x) = 1 / (1 + e⁻ˣ), a new array."""
    with np.errstate(over="ignore"):  # e⁻ˣ = inf gives 1/inf = 0, the right limit
        y = np.asarray(np.exp(-x))
    y += 1
    np.divide(1, y, out=y)
    return y


def sigmoid_forward(x: Array) -> Result:
    """y = 1 / (1 + e⁻ˣ), between 0 and 1

    x (...) -> y (...)
    """
    y = logistic(x)
    return y, (y,)


def sigmoid_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (y,) = saved
    return (dy * (y * (1 - y)),)  # forward was: y = σ(x)                                          [AC.1]


sigmoid = Op(
    "sigmoid", sigmoid_forward, sigmoid_backward, smooth_example,
    composed=lambda x: div(1, add(1, exp(neg(x)))),
    native=native_map("sigmoid", "sigmoid_backward", saves_output=True), abstract=saves_output,
)  # fmt: skip


def tanh_forward(x: Array) -> Result:
    """y = (eˣ - e⁻ˣ) / (eˣ + e⁻ˣ), between -1 and 1

    x (...) -> y (...)
    """
    y = np.tanh(x)
    return y, (y,)


def tanh_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (y,) = saved
    return (dy * (1 - y * y),)  # forward was: y = tanh x                                          [AC.2]


tanh = Op(
    "tanh", tanh_forward, tanh_backward, smooth_example,
    composed=lambda x: div(sub(exp(x), exp(neg(x))), add(exp(x), exp(neg(x)))),
    native=native_map("tanh", "tanh_backward", saves_output=True), abstract=saves_output,
)  # fmt: skip


def relu_forward(x: Array, *, at_zero: float = 0.0) -> Result:
    """y = max(x, 0); the derivative at exactly 0 is `at_zero`, 0 or 1

    x (...) -> y (...)
    """
    if at_zero not in (0, 1):
        raise ConfigError(f"relu: at_zero is {at_zero} (must be 0 or 1)")
    y = np.maximum(x, 0)
    return y, (x if at_zero else y, at_zero)  # y > 0 where x > 0, and the next layer keeps y anyway


def relu_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    kept, at_zero = saved
    active = kept >= 0 if at_zero else kept > 0
    return (dy * active,)  # forward was: y = max(x, 0); the diagonal Jacobian is never built      [AC.3]


_relu_forward, _relu_backward = native_map("relu_forward", "relu_backward", saves_output=True)


def relu_native_forward(x: Array, *, at_zero: float = 0.0) -> Result:
    if at_zero:
        return relu_forward(x, at_zero=at_zero)
    y, _ = _relu_forward(x)
    return y, (y, at_zero)


def relu_native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    return (relu_backward if saved[1] else _relu_backward)(dy, saved, needs)


def relu_abstract(x: Array, *, at_zero: float = 0.0) -> Result:
    y = abstract(x.shape, x.dtype)
    return y, (x if at_zero else y, at_zero)


relu = Op(
    "relu", relu_forward, relu_backward, examples(*_kinked),
    native=(relu_native_forward, relu_native_backward), abstract=relu_abstract,
)  # fmt: skip


def leaky_relu_forward(x: Array, *, slope: float = 0.01) -> Result:
    """y = x for x > 0, slope · x otherwise

    x (...) -> y (...)
    """
    return np.maximum(x, 0) + slope * np.minimum(x, 0), (x > 0, slope)


def leaky_relu_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    active, slope = saved
    return (dy * active + slope * (dy * ~active),)  # forward was: y = max(x, 0) + slope min(x, 0) [AC.4]


leaky_relu = Op(
    "leaky_relu", leaky_relu_forward, leaky_relu_backward,
    examples(*_kinked, shapes((5,), draw=away_from_zero, slope=0.3)),
    composed=lambda x, *, slope=0.01: sub(relu(x), mul(slope, relu(neg(x)))),
)  # fmt: skip


def prelu_forward(x: Array, alpha: Array) -> Result:
    """y = x for x > 0, α x otherwise, α learnable, () or (C,) or broadcasting to x"""
    try:
        fits = np.broadcast_shapes(x.shape, alpha.shape) == x.shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"prelu: alpha is {alpha.shape}, x is {x.shape} (alpha must broadcast to x)")
    return np.maximum(x, 0) + alpha * np.minimum(x, 0), (x, alpha)


def prelu_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    x, alpha = saved
    dx = dalpha = None
    if needs[0]:
        active = x > 0  # forward was: y = max(x, 0) + α min(x, 0)
        dx = dy * active + alpha * (dy * ~active)  #                                               [AC.5]
    if needs[1]:
        dalpha = unbroadcast(dy * np.minimum(x, 0), alpha.shape)  #                                [AC.6]
    return dx, dalpha


def prelu_example(rng: np.random.Generator) -> Iterator[Example]:
    yield Example((away_from_zero(rng, 3, 4), np.array(0.25)))
    yield Example((away_from_zero(rng, 2, 7, 3), rng.normal(size=3)))
    yield Example((away_from_zero(rng, 2, 3), np.array([[0.1], [-0.4]])))


prelu = Op(
    "prelu", prelu_forward, prelu_backward, prelu_example,
    composed=lambda x, alpha: sub(relu(x), mul(alpha, relu(neg(x)))),
)  # fmt: skip


def elu_forward(x: Array, *, alpha: float = 1.0) -> Result:
    """y = x for x > 0, α (eˣ - 1) otherwise

    x (...) -> y (...)
    """
    if alpha < 0:
        raise ConfigError(f"elu: alpha is {alpha} (must be at least 0)")
    return np.maximum(x, 0) + alpha * np.expm1(np.minimum(x, 0)), (x, alpha)


def elu_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    x, alpha = saved  # forward was: y = max(x, 0) + α (e^min(x, 0) - 1)
    return (dy * np.where(x > 0, 1, alpha * np.exp(np.minimum(x, 0))),)  #                         [AC.7]


elu = Op(
    "elu", elu_forward, elu_backward, examples(*_kinked, shapes((5,), draw=away_from_zero, alpha=0.3)),
    composed=lambda x, *, alpha=1.0: add(relu(x), mul(alpha, sub(exp(neg(relu(neg(x)))), 1))),
)  # fmt: skip


def softplus_forward(x: Array) -> Result:
    """y = ln(1 + eˣ), a smooth max(x, 0)

    x (...) -> y (...)
    """
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), (x,)  #                                [AC.8]


def softplus_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (x,) = saved
    return (dy * logistic(x),)  # forward was: y = ln(1 + eˣ)                                      [AC.9]


softplus = Op(
    "softplus", softplus_forward, softplus_backward, smooth_example, composed=lambda x: log(add(1, exp(x)))
)


def log_sigmoid_forward(x: Array) -> Result:
    """y = ln σ(x) = -softplus(-x), finite where σ(x) itself rounds to 0

    x (...) -> y (...)
    """
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))), (x,)  #                                [AC.10]


def log_sigmoid_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (x,) = saved
    return (dy * logistic(-x),)  # forward was: y = -softplus(-x)                                  [AC.11]


log_sigmoid = Op(
    "log_sigmoid", log_sigmoid_forward, log_sigmoid_backward, smooth_example,
    composed=lambda x: log(sigmoid(x)),
)  # fmt: skip


def silu_forward(x: Array) -> Result:
    """y = x σ(x), also called swish

    x (...) -> y (...)
    """
    return x * logistic(x), (x,)


def silu_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (x,) = saved
    return (dy * _silu_and_slope(x)[1],)


def _silu_and_slope(x: Array) -> tuple[Array, Array]:
    s = logistic(x)
    y = x * s
    return y, s + y * (1 - s)  #                                                                   [AC.12]


silu = Op(
    "silu", silu_forward, silu_backward, smooth_example,
    composed=lambda x: mul(x, sigmoid(x)), native=native_map("silu_forward", "silu_backward"),
    recompute=lambda saved: saved, abstract=saves_inputs,
)  # fmt: skip


def swiglu_forward(gate: Array, up: Array) -> Result:
    """y = silu(gate) · up, both (..., C)"""
    _check_pair(gate, up)
    y = gate * logistic(gate)
    y *= up
    return y, (gate, up)


def swiglu_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    gate, up = saved
    a, slope = _silu_and_slope(gate)  # forward was: y = a up, a = silu(gate)
    return (
        dy * up * slope if needs[0] else None,  #                                                  [AC.13]
        dy * a if needs[1] else None,  #                                                           [AC.14]
    )


def swiglu_native_forward(gate: Array, up: Array) -> Result:
    _check_pair(gate, up)
    y = native.empty_like(gate)
    native.kernels().swiglu_forward(y, gate, up)
    return y, (gate, up)


def swiglu_native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    dgate, dup = native.empty_like(dy), native.empty_like(dy)  # they differ by a factor: computed together
    native.kernels().swiglu_backward(dgate, dup, *saved, dy)
    return dgate, dup


def _check_pair(gate: Array, up: Array) -> None:
    if gate.shape != up.shape:
        raise ShapeError(f"swiglu: gate has shape {gate.shape}, up has shape {up.shape} (must be equal)")


swiglu = Op(
    "swiglu", swiglu_forward, swiglu_backward,
    examples(shapes((3, 4), (3, 4)), shapes((2, 1, 7), (2, 1, 7)), shapes((257,), (257,))),
    composed=lambda gate, up: mul(silu(gate), up), native=(swiglu_native_forward, swiglu_native_backward),
    recompute=lambda saved: saved, abstract=saves_inputs,
)  # fmt: skip
