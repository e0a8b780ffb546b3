"""Self-attention on the output of one joint projection.        Derivation: docs/derivations/attention.md

    q, k, v = the thirds of qkv, cut into heads;   y = attention(q, k, v), heads joined

The heads are views of qkv; output and gradient of qkv are written in place: nothing is transposed or copied. Saved are
the arrays that attention saves, so `cr.ops.attention_weights(*saved[:2], causal=True)` gives the maps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import native
from chainrule.autograd import Op
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved, Work
from chainrule.errors import ShapeError
from chainrule.ops._util import examples, shapes
from chainrule.ops.arrays.shape import reshape, transpose
from chainrule.ops.neural.attention import Key, attention, native_gradients
from chainrule.ops.neural.attention import abstract_forward as attention_abstract
from chainrule.ops.neural.attention import composed as attention_composed
from chainrule.ops.neural.attention import cost as attention_cost
from chainrule.ops.neural.attention import native_forward as attention_native_forward
from chainrule.random import key as random_key


def forward(
    qkv: Array,
    *,
    heads: int,
    causal: bool = True,
    dropout: float = 0.0,
    key: Key = None,
    scale: float | None = None,
) -> Result:
    """Causal self-attention, from queries, keys and values in one array.

    qkv (B, T, 3C) -> (B, T, C); the last axis of qkv holds q, k and v, each `heads` heads of C / heads numbers.
    `causal=False` lets every position see all others; the other options are those of `attention`.
    """
    return _joined(attention.forward, qkv, heads, causal, dropout=dropout, key=key, scale=scale)


def backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    q = saved[0]
    parts: Any = attention.backward(_split(dy, 1, q.shape[1])[0], saved, (True,) * 3)
    dqkv = np.stack(parts, axis=2)  # (B, H, 3, T, D)
    return (dqkv.transpose(0, 3, 2, 1, 4).reshape(*dy.shape[:2], 3 * dy.shape[2]),)


def native_forward(qkv: Array, **options: Any) -> Result:
    return _joined(attention_native_forward, qkv, **options)


def native_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    B, H, T, D = saved[0].shape
    dqkv = native.empty((B, T, 3 * H * D))
    native_gradients(tuple(_split(dqkv, 3, H)), _split(dy, 1, H)[0], saved)
    return (dqkv,)


def _joined(
    attend: Callable[..., Any], qkv: Array, heads: int, causal: bool = True, **options: Any
) -> Result:
    if qkv.ndim != 3 or heads < 1 or qkv.shape[2] % (3 * heads):
        raise ShapeError(
            f"packed_attention: qkv {qkv.shape}, {heads} heads (must be (B, T, 3C) with heads dividing C)"
        )
    o, saved = attend(*_split(qkv, 3, heads), causal=causal, **options)
    B, H, T, D = o.shape
    return o.transpose(0, 2, 1, 3).reshape(B, T, H * D), saved


def _split(x: Array, parts: int, heads: int) -> Array:
    """(B, T, parts · H · D) -> (parts, B, H, T, D), a view"""
    B, T, width = x.shape
    return x.reshape(B, T, parts, heads, width // (parts * heads)).transpose(2, 0, 3, 1, 4)


def composed(qkv: Any, *, heads: int, causal: bool = True, **options: Any) -> Any:
    """The composition from reshape, transpose and the composed attention."""
    B, T, width = qkv.shape
    split = transpose(reshape(qkv, shape=(B, T, 3, heads, width // (3 * heads))), axes=(2, 0, 3, 1, 4))
    o = attention_composed(split[0], split[1], split[2], causal=causal, **options)
    return reshape(transpose(o, axes=(0, 2, 1, 3)), shape=(B, T, width // 3))


example = examples(
    shapes((2, 5, 3 * 8), heads=2), shapes((1, 1, 3), heads=1),
    shapes((2, 7, 3 * 6), heads=3, causal=False, scale=0.3),
    shapes((2, 9, 3 * 6), heads=2, dropout=0.3, key=random_key("dropout", 2, seed=7)),
    shapes((1, 33, 3 * 17), heads=1)  # whole vectors of the native kernel, and a remainder
)  # fmt: skip


def abstract_forward(qkv: Array, **options: Any) -> Result:
    return _joined(attention_abstract, qkv, **options)


def cost(needs: Needs, qkv: Array, *, heads: int, causal: bool = True, **options: Any) -> Work:
    return attention_cost(needs * 3, *_split(qkv, 3, heads), causal=causal)


packed_attention = Op(
    "packed_attention", forward, backward, example,
    composed=composed, native=(native_forward, native_backward), strided=True, abstract=abstract_forward,
    cost=cost,
)  # fmt: skip
