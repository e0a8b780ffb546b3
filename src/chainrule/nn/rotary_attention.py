"""Causal attention with rotary positions, as in Llama and GPT-NeoX."""

from __future__ import annotations

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.recording import constant
from chainrule.autograd.types import Array
from chainrule.nn.adapters import KeyValuePrefix
from chainrule.nn.apart import Apart
from chainrule.nn.init import Init, xavier_uniform
from chainrule.nn.layer import Layer
from chainrule.nn.linear import Linear
from chainrule.nn.norm import RMSNorm


class RotaryAttention(Layer):
    """Each position looks at itself and at those before it, and positions are rotations of queries and keys.

    Pair i of a head of `size` numbers turns by `frequencies[i]` radians per position, and stands still if that is 0;
    without frequencies nothing turns. `kv_heads` fewer than `heads` are each shared by a group of query heads.
    `bias` says if queries, keys and values have one, and if the output has one. With `qk_norm`, the ε of an RMS norm,
    each head of queries and keys is normalized before it turns.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        kv_heads: int,
        size: int,
        frequencies: Array | None,
        *,
        bias: tuple[bool, bool] = (False, False),
        qk_norm: float | None = None,
        init: Init = xavier_uniform,
    ) -> None:
        inner, outer = bias
        self.size = size
        self.frequencies = frequencies
        self.q_proj = Linear(dim, heads * size, bias=inner, init=init)
        self.k_proj = Linear(dim, kv_heads * size, bias=inner, init=init)
        self.v_proj = Linear(dim, kv_heads * size, bias=inner, init=init)
        self.o_proj = Linear(heads * size, dim, bias=outer, init=init)
        self.prefix: KeyValuePrefix | None = None
        self.q_norm = None if qk_norm is None else RMSNorm(size, eps=qk_norm)
        self.k_norm = None if qk_norm is None else RMSNorm(size, eps=qk_norm)

    def forward(self, hidden: Tensor, texts: Apart | None = None) -> Tensor:
        """hidden (B, T, C) -> (B, T, C); with `texts` each sees itself alone"""
        B, T, _ = hidden.shape
        q, k, v = (self._split(proj(hidden)) for proj in (self.q_proj, self.k_proj, self.v_proj))
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))  # (B, H or Hk, T, D)
        if self.frequencies is not None:
            # (T,) or (B, 1, T)
            positions = constant(np.arange(T)) if texts is None else texts.positions[:, None]
            q, k = (ops.rotary(x, positions=positions, frequency=self.frequencies) for x in (q, k))
        mask = None if texts is None else texts.mask
        if self.prefix is not None:
            (k, v), mask = self.prefix(k, v), self.prefix.visible(mask)
        mixed = ops.attention(q, k, v, causal=True, mask=mask)  # (B, H, T, D)
        return self.o_proj(mixed.transpose(0, 2, 1, 3).reshape(B, T, -1))

    def _split(self, x: Tensor) -> Tensor:
        B, T, width = x.shape
        return x.reshape(B, T, width // self.size, self.size)  # (B, T, H or Hk, D)
