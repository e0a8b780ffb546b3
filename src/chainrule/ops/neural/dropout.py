"""Inverted dropout.        Derivation: docs/derivations/dropout.md

    y = x k / (1 - p),   k = 1 with probability 1 - p, else 0

The mask is a pure function of (key, shape, p): no state, the same bits for any number of threads, and simple
enough to be redrawn inside a kernel.
"""

from __future__ import annotations

import math

from chainrule import native, random
from chainrule.autograd import Op
from chainrule.autograd.abstract import abstract
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved, Shape
from chainrule.errors import ConfigError
from chainrule.ops._util import examples, shapes


def keep_mask(shape: Shape, p: float, key: tuple[int, ...]) -> Array:
    """True where a value is kept: where the i-th 32-bit word of the stream is at least p · 2³²."""
    n = math.prod(shape)
    words = random.from_key(key).bit_generator.random_raw((n + 1) // 2)  # 64 bits each
    words = words.astype("<u8", copy=False).view("<u4")[:n]  # low half first
    return (words >= threshold(p)).reshape(shape)  # [DO.1]


def threshold(p: float) -> int:
    """The smallest 32-bit word that is kept."""
    return min(round(p * 2**32), 2**32 - 1)


def forward(x: Array, *, p: float, key: tuple[int, ...] | None = None) -> Result:
    """Each value becomes 0 with probability p, else x / (1 - p), so that its mean stays x; p = 0 returns x.

    x (...) -> y (...)

    `key` names the mask: `chainrule.random.key("dropout", step, layer)`.
    """
    _check(p, key)
    if p == 0 or key is None:
        return x, (None, 1.0)
    keep, scale = keep_mask(x.shape, p, key), 1 / (1 - p)
    y = x * keep
    y *= scale  # [DO.2]
    return y, (keep, scale)


def backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    keep, scale = saved
    if keep is None:
        return (dy,)
    dx = dy * keep
    dx *= scale  # forward was: y = x keep / (1 - p)                                                  [DO.3]
    return (dx,)


def native_forward(x: Array, *, p: float, key: tuple[int, ...] | None = None) -> Result:
    _check(p, key)
    if p == 0 or key is None:
        return x, (None, 1.0)
    y, keep, scale = native.empty_like(x), native.empty(x.shape, bool), 1 / (1 - p)
    native.kernels().dropout_forward(y, keep, x, key, threshold(p), scale)
    return y, (keep, scale)


def native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    keep, scale = saved
    if keep is None:
        return (dy,)
    dx = native.empty_like(dy)
    native.kernels().dropout_backward(dx, keep, dy, scale)
    return (dx,)


def _check(p: float, key: tuple[int, ...] | None) -> None:
    if not 0 <= p < 1:
        raise ConfigError(f"dropout: p is {p} (must be at least 0 and below 1)")
    if p > 0 and key is None:
        raise ConfigError(f"dropout: p is {p}, key is None (a mask needs a key: chainrule.random.key)")


example = examples(
    shapes((3, 5), p=0.4, key=random.key("example", 1, seed=0)),
    shapes((7, 1), p=0.1, key=random.key("example", 2, seed=0)), shapes((2, 3), p=0.0),
    # Whole vectors of the native kernel, and a remainder.
    *(shapes((n,), p=0.5, key=random.key("example", n, seed=0)) for n in (16, 257)),
)  # fmt: skip


def abstract_forward(x: Array, *, p: float, key: tuple[int, ...] | None = None) -> Result:
    _check(p, key)
    if p == 0:
        return x, (None, 1.0)
    return abstract(x.shape, x.dtype), (abstract(x.shape, bool), 1 / (1 - p))


dropout = Op(
    "dropout", forward, backward, example, native=(native_forward, native_backward), abstract=abstract_forward
)
