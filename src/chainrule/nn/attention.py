"""Multi-head attention, and the transformer block."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.nn.activation import Activation
from chainrule.nn.adapters import KeyValuePrefix
from chainrule.nn.init import Init, xavier_uniform
from chainrule.nn.layer import Layer
from chainrule.nn.linear import Linear
from chainrule.nn.mlp import FeedForward
from chainrule.nn.norm import LayerNorm
from chainrule.random import next_key


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, **options: Any) -> Tensor:
    """Attention, with a bias for each distance (H, 2N - 1) if there is one; options as in `ops.attention`"""
    if bias is None:
        return ops.attention(q, k, v, **options)
    return ops.relative_attention(q, k, v, bias, **options)


class MultiHeadAttention(Layer):
    """Queries from `x`, keys and values from `x` too (self-attention) or from `context` (cross-attention).

    `kv_heads` fewer than `heads` are each shared by a group of query heads. A head has dim / heads numbers, or
    `head_size` of them; its values may have another size, `value_size`. `out_proj=False` ends at the concatenation of
    the heads, without the output projection.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        kv_heads: int | None = None,
        head_size: int | None = None,
        value_size: int | None = None,
        context_dim: int | None = None,
        bias: bool = False,
        out_proj: bool = True,
        dropout: float = 0.0,
        init: Init = xavier_uniform,
    ) -> None:
        kv_heads = heads if kv_heads is None else kv_heads
        if heads < 1 or (head_size is None and dim % heads):
            raise ConfigError(
                f"MultiHeadAttention: {dim} features, {heads} heads (must divide, unless head_size is given)"
            )
        if kv_heads < 1 or heads % kv_heads:
            raise ConfigError(f"MultiHeadAttention: {heads} heads, {kv_heads} key/value heads (must divide)")
        size = dim // heads if head_size is None else head_size
        value_size = size if value_size is None else value_size
        if size < 1 or value_size < 1:
            raise ConfigError(
                f"MultiHeadAttention: head_size is {size}, value_size {value_size} (must be at least 1)"
            )
        if not 0 <= dropout < 1:
            raise ConfigError(f"MultiHeadAttention: dropout is {dropout!r} (must be at least 0 and below 1)")
        source = dim if context_dim is None else context_dim
        self.heads = heads
        self.kv_heads = kv_heads
        self.dropout = dropout
        self.q_proj = Linear(dim, heads * size, bias=bias, init=init)
        self.k_proj = Linear(source, kv_heads * size, bias=bias, init=init)
        self.v_proj = Linear(source, kv_heads * value_size, bias=bias, init=init)
        self.out_proj = Linear(heads * value_size, dim, bias=bias, init=init) if out_proj else None
        self.prefix: KeyValuePrefix | None = None

    def forward(
        self, x: Tensor, context: Tensor | None = None, *, causal: bool = False, mask: Array | None = None
    ) -> Tensor:
        """x (B, T, C), context (B, S, context_dim), mask as in `ops.attention`, (B, H, T, S) -> (B, T, C)"""
        source = x if context is None else context
        q = self._split(self.q_proj(x), self.heads)  # (B, H, T, D)
        k, v = self.k_proj(source), self.v_proj(source)
        k, v = self._split(k, self.kv_heads), self._split(v, self.kv_heads)  # (B, Hk, S, D), (B, Hk, S, Dv)
        if self.prefix is not None:
            if mask is not None:  # one column may stand for all keys, but not for those of the prefix
                mask = np.broadcast_to(mask, (*np.shape(mask)[:-1], k.shape[2]))
            k, v = self.prefix(k, v)
            mask = self.prefix.visible(mask)
        p = self.dropout if self.training else 0.0
        key = next_key("dropout") if p else None
        mixed = ops.attention(q, k, v, causal=causal, mask=mask, dropout=p, key=key)  # (B, H, T, Dv)
        B, H, T, Dv = mixed.shape
        joined = mixed.transpose(0, 2, 1, 3).reshape(B, T, H * Dv)
        return joined if self.out_proj is None else self.out_proj(joined)

    def _split(self, x: Tensor, heads: int) -> Tensor:
        B, T, width = x.shape
        return x.reshape(B, T, heads, width // heads).transpose(0, 2, 1, 3)  # (B, H, T, D)


class TransformerBlock(Layer):
    """Attention, then a feed-forward part, each with a residual connection and a layer norm.

    `norm="pre"`: x + f(norm(x)), and a stack of blocks ends in one more norm; `norm="post"`: norm(x + f(x)).
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        hidden: int | None = None,
        *,
        norm: str = "pre",
        causal: bool = False,
        activation: str | Activation = "relu",
        bias: bool = False,
        dropout: float = 0.0,
        init: Init = xavier_uniform,
    ) -> None:
        if norm not in ("pre", "post"):
            raise ConfigError(f"TransformerBlock: norm {norm!r} (must be pre or post)")
        self.norm = norm
        self.causal = causal
        self.ln_1 = LayerNorm(dim)
        self.attn = MultiHeadAttention(dim, heads, bias=bias, dropout=dropout, init=init)
        self.ln_2 = LayerNorm(dim)
        self.mlp = FeedForward(dim, hidden, activation=activation, dropout=dropout, init=init)

    def forward(self, x: Tensor, *, mask: Array | None = None) -> Tensor:
        """x (B, T, C), mask as in MultiHeadAttention -> (B, T, C)"""
        if self.norm == "pre":
            x = x + self.attn(self.ln_1(x), causal=self.causal, mask=mask)
            return x + self.mlp(self.ln_2(x))
        x = self.ln_1(x + self.attn(x, causal=self.causal, mask=mask))
        return self.ln_2(x + self.mlp(x))
