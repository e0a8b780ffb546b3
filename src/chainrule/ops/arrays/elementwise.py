"""Elementwise arithmetic with broadcasting.        Derivations: docs/derivations/elementwise.md

Each input is broadcast along the axes it lacks; its gradient is the sum over these axes (`unbroadcast`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from chainrule import native
from chainrule.autograd import Example, Op
from chainrule.autograd.abstract import saves_inputs, saves_output, saves_shapes
from chainrule.autograd.mode import mode
from chainrule.autograd.recording import contiguous
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved, is_float
from chainrule.ops._util import away_from_zero, examples, native_unbroadcast, normal, shapes, unbroadcast


def _positive(rng: np.random.Generator, *shape: int) -> Array:
    return rng.uniform(0.3, 3.0, size=shape)


_pairs = examples(shapes((3, 4), (3, 4)), shapes((2, 3, 4), (4,)), shapes((7, 1), (1, 5)), shapes((), (2, 1)))
_single = examples(shapes((3, 4)), shapes((7, 1)))
_positives = examples(shapes((3, 4), draw=_positive), shapes((7, 1), draw=_positive))

LARGE = 1 << 18  # elements: from here on threads and reused memory are faster than NumPy


def _kernel_serves(a: Array, b: Array) -> bool:
    """The kernel takes b without leading axes of a, or a without those of b. It gives the bits that NumPy gives.

    While a step is recorded it takes copies of what is not contiguous.
    """
    if mode.recording is None:
        return a.size >= LARGE and a.shape == b.shape and a.flags.c_contiguous and b.flags.c_contiguous
    small, large = sorted((a.shape, b.shape), key=len)
    return large[len(large) - len(small) :] == small


def _native(kernel: str, a: Array, b: Array) -> Array:
    a, b = map(contiguous, (a, b) if a.ndim >= b.ndim else (b, a))  # both operations commute
    y = native.empty_like(a)
    getattr(native.kernels(), kernel)(y, a, b)
    return y


def add_forward(a: Array, b: Array) -> Result:
    """y = a + b

    a (...), b (...), which broadcast -> y (...)
    """
    return a + b, (a.shape, b.shape)


def add_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    a_shape, b_shape = saved
    return (  # forward was: y = a + b, local derivative 1 for both                      [EL.1]
        unbroadcast(dy, a_shape) if needs[0] else None,
        unbroadcast(dy, b_shape) if needs[1] else None,
    )


def add_native_forward(a: Array, b: Array) -> Result:
    return (_native("add", a, b), (a.shape, b.shape)) if _kernel_serves(a, b) else add_forward(a, b)


def add_native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    a_shape, b_shape = saved
    return (
        native_unbroadcast(dy, a_shape) if needs[0] else None,
        native_unbroadcast(dy, b_shape) if needs[1] else None,
    )


add = Op(
    "add",
    add_forward,
    add_backward,
    _pairs,
    native=(add_native_forward, add_native_backward),
    strided=True,
    abstract=saves_shapes,
    integers=True,
)


def sub_forward(a: Array, b: Array) -> Result:
    """y = a - b

    a (...), b (...), which broadcast -> y (...)
    """
    return a - b, (a.shape, b.shape)


def sub_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    a_shape, b_shape = saved
    return (  # forward was: y = a - b                                                   [EL.2]
        unbroadcast(dy, a_shape) if needs[0] else None,
        unbroadcast(-dy, b_shape) if needs[1] else None,
    )


sub = Op("sub", sub_forward, sub_backward, _pairs, abstract=saves_shapes, integers=True)


def mul_forward(a: Array, b: Array) -> Result:
    """y = a b

    a (...), b (...), which broadcast -> y (...)
    """
    return a * b, (a, b)


def mul_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    a, b = saved
    return (  # forward was: y = a b; each factor's derivative is the other               [EL.3]
        unbroadcast(dy * b, a.shape) if needs[0] else None,
        unbroadcast(dy * a, b.shape) if needs[1] else None,
    )


def mul_native_forward(a: Array, b: Array) -> Result:
    return (_native("mul", a, b), (a, b)) if _kernel_serves(a, b) else mul_forward(a, b)


def mul_native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    a, b = saved
    product = partial(_native, "mul") if _kernel_serves(a, b) else np.multiply
    return (
        native_unbroadcast(product(dy, b), a.shape) if needs[0] else None,
        native_unbroadcast(product(dy, a), b.shape) if needs[1] else None,
    )


mul = Op(
    "mul", mul_forward, mul_backward, _pairs,
    native=(mul_native_forward, mul_native_backward), abstract=saves_inputs, integers=True,
)  # fmt: skip


def div_forward(a: Array, b: Array) -> Result:
    """y = a / b

    a (...), b (...), which broadcast -> y (...)
    """
    y = a / b
    return y, (a.shape, b, y)


def div_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    a_shape, b, y = saved
    da = dy / b  # forward was: y = a / b                                                  [EL.4]
    return (
        unbroadcast(da, a_shape) if needs[0] else None,
        unbroadcast(-da * y, b.shape) if needs[1] else None,  # -a/b² = -y/b                [EL.5]
    )


def div_example(rng: np.random.Generator) -> Iterator[Example]:
    yield Example((normal(rng, 3, 4), away_from_zero(rng, 3, 4, gap=0.5)))
    yield Example((normal(rng, 2, 3, 4), away_from_zero(rng, 4, gap=0.5)))
    yield Example((normal(rng, 7, 1), away_from_zero(rng, 1, 5, gap=0.5)))


div = Op("div", div_forward, div_backward, div_example)


def neg_forward(x: Array) -> Result:
    """y = -x

    x (...) -> y (...)
    """
    return -x, ()


def neg_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    return (-dy,)


neg = Op("neg", neg_forward, neg_backward, _single, integers=True)


def exp_forward(x: Array) -> Result:
    """y = eˣ; infinite where eˣ exceeds the largest float

    x (...) -> y (...)
    """
    with np.errstate(over="ignore"):
        y = np.exp(x)
    return y, (y,)


def exp_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (y,) = saved
    return (dy * y,)  # forward was: y = eˣ, its own derivative                             [EL.6]


exp = Op("exp", exp_forward, exp_backward, _single)


def log_forward(x: Array) -> Result:
    """y = ln x, the natural logarithm; -inf at 0

    x (...) -> y (...)
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(x), (x,)


def log_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (x,) = saved
    return (dy / x,)  # forward was: y = ln x                                               [EL.7]


log = Op("log", log_forward, log_backward, _positives)


def log1p_forward(x: Array) -> Result:
    """y = ln(1 + x), exact for small x where 1 + x rounds; -inf at -1

    x (...) -> y (...)
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log1p(x), (x,)


def log1p_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (x,) = saved
    return (dy / (1 + x),)  # forward was: y = ln(1 + x)                                     [EL.13]


log1p = Op("log1p", log1p_forward, log1p_backward, _positives)


def sqrt_forward(x: Array) -> Result:
    """y = √x

    x (...) -> y (...)
    """
    y = np.sqrt(x)
    return y, (y,)


def sqrt_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (y,) = saved
    return (dy / (2 * y),)  # forward was: y = √x                                           [EL.8]


sqrt = Op("sqrt", sqrt_forward, sqrt_backward, _positives, abstract=saves_output)


def pow_forward(x: Array, p: Array) -> Result:
    """y = xᵖ; the exponent may be a number or an array and has a gradient too (x > 0 there)

    x (...), p (...), which broadcast -> y (...)
    """
    if not is_float(x) and (p < 0).any():  # 2⁻¹ is no integer
        x = x.astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        y = x**p
    return y, (x, p, y)


def pow_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    x, p, y = saved
    dx = dp = None
    if needs[0]:
        slope = p * np.where(p == 0, 1, x) ** (p - 1)  # x⁰ is flat, at 0 too
        dx = unbroadcast(dy * slope, x.shape)  # forward was: y = xᵖ            [EL.9]
    if needs[1]:
        logs = np.log(np.where(x > 0, x, 1))  # d/dp xᵖ = xᵖ ln x; 0 where x = 0           [EL.10]
        dp = unbroadcast(dy * y * logs, p.shape)
    return dx, dp


def pow_example(rng: np.random.Generator) -> Iterator[Example]:
    yield Example((_positive(rng, 3, 4), np.float64(2.5)))
    yield Example((_positive(rng, 2, 3), normal(rng, 3)))
    yield Example((away_from_zero(rng, 3, 4), 3))


pow = Op("pow", pow_forward, pow_backward, pow_example, integers=True)


def sin_forward(x: Array) -> Result:
    """y = sin x

    x (...) -> y (...)
    """
    return np.sin(x), (x,)


def sin_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (x,) = saved
    return (dy * np.cos(x),)  # forward was: y = sin x                                      [EL.11]


sin = Op("sin", sin_forward, sin_backward, _single)


def cos_forward(x: Array) -> Result:
    """y = cos x

    x (...) -> y (...)
    """
    return np.cos(x), (x,)


def cos_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (x,) = saved
    return (-dy * np.sin(x),)  # forward was: y = cos x                                     [EL.12]


cos = Op("cos", cos_forward, cos_backward, _single)
