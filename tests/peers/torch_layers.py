"""Every layer as PyTorch computes it, from our weights under our names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call
from transformers.models.t5.modeling_t5 import T5Attention

from chainrule import nn, ops, random
from tests.peers.torch_ops import PEERS

Weights = dict[str, Tensor]
Shape = tuple[int, ...]
STEP = 2  # of the random numbers: what the layers draw is a function of it


@dataclass
class Case:
    layer: Callable[[], nn.Layer]
    peer: Callable[..., Any]  # (weights by our names, *inputs) -> outputs
    inputs: tuple[Shape | np.ndarray, ...]  # shapes of random floats, or integer arrays
    kwargs: dict[str, Any] = field(default_factory=dict)  # of our forward


def module(
    make: Callable[[], torch.nn.Module], rename: Callable[[Weights], Weights] = lambda w: w
) -> Callable[..., Any]:
    """A torch module called with our weights under its names."""
    return lambda weights, *inputs: functional_call(make(), rename(weights), inputs)


def channels_second(make: Callable[[], torch.nn.Module]) -> Callable[..., Tensor]:
    """Torch's norms of images keep their channels in axis 1, ours in the last."""
    return lambda weights, x: functional_call(make(), weights, (x.movedim(-1, 1),)).movedim(1, -1)


def batch_norm(size: int) -> torch.nn.Module:
    return torch.nn.BatchNorm1d(size, track_running_stats=False)  # those have a test of their own


def in_projection(w: Weights, prefix: str = "") -> Weights:
    """q, k and v as one matrix, as torch.nn.MultiheadAttention keeps them; no bias there means zeros."""
    stacked = {}
    for kind in ("weight", "bias"):
        if f"{prefix}q_proj.{kind}" in w:
            stacked[f"in_proj_{kind}"] = torch.cat([w[f"{prefix}{p}_proj.{kind}"] for p in "qkv"])
            stacked[f"out_proj.{kind}"] = w[f"{prefix}out_proj.{kind}"]
    return stacked


def distance_bias(w: Weights) -> Tensor:
    buckets = T5Attention._relative_position_bucket(torch.arange(-4, 5), True, 8, 6)
    return w["weight"][buckets].T


def self_attention(w: Weights, x: Tensor, blocked: Tensor | None = None) -> Tensor:
    peer = torch.nn.MultiheadAttention(12, 3, bias="q_proj.bias" in w, batch_first=True)
    kwargs = {"attn_mask": blocked, "need_weights": False}
    return functional_call(peer, in_projection(w), (x, x, x), kwargs)[0]


def causal_attention(w: Weights, x: Tensor) -> Tensor:
    return self_attention(w, x, torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1))


def masked_attention(w: Weights, x: Tensor) -> Tensor:
    return self_attention(w, x, torch.tensor(~ALLOWED).repeat_interleave(3, 0))  # one mask per head there


def cross_attention(w: Weights, x: Tensor, context: Tensor) -> Tensor:
    peer = torch.nn.MultiheadAttention(12, 3, kdim=7, vdim=7, batch_first=True)
    names = {f"{p}_proj_weight": w[f"{p}_proj.weight"] for p in "qkv"}
    names["in_proj_bias"] = torch.cat([w[f"{p}_proj.bias"] for p in "qkv"])
    names |= {f"out_proj.{kind}": w[f"out_proj.{kind}"] for kind in ("weight", "bias")}
    return functional_call(peer, names, (x, context, context), {"need_weights": False})[0]


def rotary_attention(w: Weights, x: Tensor) -> Tensor:
    """RMS norms of each head, rotations of pairs (i, i + D/2), two key heads for four query heads."""
    B, T, _ = x.shape
    frequency = torch.tensor([1.0, 0.1], dtype=x.dtype)
    angles = torch.arange(T, dtype=x.dtype)[:, None] * frequency.repeat(2)  # (T, D)

    def split(name: str) -> Tensor:
        return F.linear(x, w[f"{name}_proj.weight"], w[f"{name}_proj.bias"]).view(B, T, -1, 4)

    def turned(name: str) -> Tensor:
        heads = split(name)
        heads = heads / (heads.square().mean(-1, keepdim=True) + 1e-5).sqrt() * w[f"{name}_norm.weight"]
        heads = heads.transpose(1, 2)  # (B, H, T, D)
        first, second = heads.chunk(2, -1)
        return heads * angles.cos() + torch.cat([-second, first], -1) * angles.sin()

    q, k, v = turned("q"), turned("k"), split("v").transpose(1, 2)
    k, v = (y.repeat_interleave(2, dim=1) for y in (k, v))
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return F.linear(mixed.transpose(1, 2).reshape(B, T, -1), w["o_proj.weight"])


def grouped_attention(w: Weights, x: Tensor) -> Tensor:
    q, k, v = (F.linear(x, w[f"{p}_proj.weight"]).unflatten(-1, (-1, 3)).transpose(1, 2) for p in "qkv")
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True).transpose(1, 2).flatten(2)


def block_weights(w: Weights) -> Weights:
    names = {f"self_attn.{name}": value for name, value in in_projection(w, "attn.").items()}
    ours_of = {"linear1": "mlp.fc1", "linear2": "mlp.fc2", "norm1": "ln_1", "norm2": "ln_2"}
    for theirs, ours in ours_of.items():
        names |= {f"{theirs}.{kind}": w[f"{ours}.{kind}"] for kind in ("weight", "bias")}
    return names


def block(activation: str, *, pre: bool, causal: bool) -> Callable[..., Tensor]:
    def peer(w: Weights, x: Tensor) -> Tensor:
        options = {"dropout": 0.0, "activation": activation, "batch_first": True, "norm_first": pre}
        layer = torch.nn.TransformerEncoderLayer(12, 3, 20, **options)
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1) if causal else None
        return functional_call(layer, block_weights(w), (x,), {"src_mask": future})

    return peer


def sequential(*layers: torch.nn.Module | tuple[str, torch.nn.Module]) -> Callable[..., Tensor]:
    """Modules one after the other; those with weights come as (our name, module)."""

    def peer(weights: Weights, x: Tensor) -> Tensor:
        for layer in layers:
            name, part = layer if isinstance(layer, tuple) else ("", layer)
            own = {key: weights[f"{name}.{key}"] for key, _ in part.named_parameters()}
            x = functional_call(part, own, (x,))
        return x

    return peer


def adapter(w: Weights, x: Tensor, name: str = "") -> Tensor:
    narrow = torch.tanh(F.linear(x, w[f"{name}down.weight"], w[f"{name}down.bias"]))
    return x + F.linear(narrow, w[f"{name}up.weight"], w[f"{name}up.bias"])


def adapted(w: Weights, x: Tensor) -> Tensor:
    return adapter(w, F.linear(x, w["base.weight"], w["base.bias"]), "adapter.")


def before(rows: Tensor, x: Tensor) -> Tensor:
    """Learned rows (..., P, C) before those of each text of x (B, ..., T, C)."""
    return torch.cat([rows.expand(len(x), *rows.shape), x], dim=-2)


def prefix(w: Weights, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    return before(w["keys"], k), before(w["values"], v)


def token_rows(w: Weights, ids: Tensor) -> Tensor:
    table = w["base.weight"].index_copy(0, torch.tensor([4, 1]), w["token_rows"])
    return F.embedding(ids, table)


def soft_prompt(w: Weights, ids: Tensor) -> Tensor:
    return before(w["prompt"], F.embedding(ids, w["base.weight"]))


def dropout(_: Weights, x: Tensor) -> Tensor:
    return PEERS["dropout"](x, p=0.3, key=random.key("dropout", STEP, 1))  # the first key of the step


def lora(w: Weights, x: Tensor) -> Tensor:
    return F.linear(x, w["base.weight"] + 2.0 * w["lora_B"] @ w["lora_A"], w["base.bias"])


def packed_lora(w: Weights, x: Tensor) -> Tensor:
    """A pair for the queries and one for the values; the keys between them do not change."""
    change = [torch.zeros(*x.shape[:-1], 4, dtype=x.dtype) for _ in range(3)]
    for place, name in ((0, "q"), (2, "v")):
        change[place] = x @ w[f"lora_A.{name}"].T @ w[f"lora_B.{name}"].T * 2.0
    return F.linear(x, w["base.weight"], w["base.bias"]) + torch.cat(change, dim=-1)


def gated(w: Weights, x: Tensor) -> Tensor:
    return F.linear(F.silu(x @ w["gate_proj.weight"].T) * (x @ w["up_proj.weight"].T), w["down_proj.weight"])


def recurrent(make: Callable[..., torch.nn.Module]) -> Callable[..., Any]:
    def peer(w: Weights, x: Tensor) -> Any:
        names = {"weight_ih_l0": w["weight_x"], "weight_hh_l0": w["weight_h"], "bias_ih_l0": w["bias"]}
        names["bias_hh_l0"] = w.get("bias_h", torch.zeros_like(w["bias"]))
        outputs, state = functional_call(make(5, 6, batch_first=True), names, (x,))
        return outputs, *(s[0] for s in (state if isinstance(state, tuple) else (state,)))

    return peer


def lstm_weights(w: Weights, places: Mapping[str, str]) -> Weights:
    """Of several layers, as one torch.nn.LSTM names them: `places` are our prefixes and its suffixes."""
    names: dict[str, Tensor] = {}
    for ours, theirs in places.items():
        names[f"weight_ih_{theirs}"], names[f"weight_hh_{theirs}"] = (
            w[f"{ours}.weight_x"],
            w[f"{ours}.weight_h"],
        )
        names[f"bias_ih_{theirs}"] = w[f"{ours}.bias"]
        names[f"bias_hh_{theirs}"] = torch.zeros_like(w[f"{ours}.bias"])
    return names


def stacked(w: Weights, x: Tensor) -> Any:
    peer = torch.nn.LSTM(5, 6, num_layers=2, batch_first=True)
    outputs, (h, c) = functional_call(peer, lstm_weights(w, {"layers.0": "l0", "layers.1": "l1"}), (x,))
    return outputs, h[0], c[0], h[1], c[1]


def bidirectional(w: Weights, x: Tensor) -> Tensor:
    peer = torch.nn.LSTM(5, 6, bidirectional=True, batch_first=True)
    outputs: Tensor = functional_call(peer, lstm_weights(w, {"ahead": "l0", "back": "l0_reverse"}), (x,))[0]
    return outputs


def gru(w: Weights, x: Tensor) -> tuple[Tensor, Tensor]:
    """The equations of E-004-14; those of torch.nn.GRU are `reset_after`."""
    return PEERS["gru_sequence"](x, x.new_zeros(len(x), 6), w["weight_x"], w["weight_h"], w["bias"])


def sinusoidal(layout: str) -> Callable[..., Tensor]:
    """The formula of the paper, one entry at a time."""

    def peer(_: Weights, x: Tensor) -> Tensor:
        T, d = x.shape[-2:]
        table = torch.empty(T, d, dtype=torch.float64)
        for j in range(d):
            cosine, pair = divmod(j, (d + 1) // 2) if layout == "half" else (j % 2, j // 2)
            angle = torch.arange(T, dtype=torch.float64) / 10000 ** (2 * pair / d)
            table[:, j] = torch.cos(angle) if cosine else torch.sin(angle)
        return x + table.to(x.dtype)

    return peer


# -- the cases -----------------------------------------------------------------------------------------------

IDS = np.random.default_rng(0).integers(0, 11, size=(3, 8))
ALLOWED = np.random.default_rng(1).random((2, 5, 5)) < 0.6
ALLOWED[0, 2] = False  # a query that sees nothing

CASES: dict[str, Case] = {
    "Linear": Case(lambda: nn.Linear(5, 7), module(lambda: torch.nn.Linear(5, 7)), ((4, 3, 5),)),
    "Sequential": Case(
        lambda: nn.Sequential(nn.Linear(5, 7), ops.tanh, nn.Linear(7, 2)),
        module(lambda: torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 2))),
        ((4, 3, 5),),
    ),
    "Linear without bias": Case(
        lambda: nn.Linear(5, 7, bias=False), module(lambda: torch.nn.Linear(5, 7, bias=False)), ((4, 5),)
    ),
    "Embedding": Case(lambda: nn.Embedding(11, 6), module(lambda: torch.nn.Embedding(11, 6)), (IDS,)),
    "LayerNorm": Case(lambda: nn.LayerNorm(9), module(lambda: torch.nn.LayerNorm(9)), ((4, 3, 9),)),
    "LayerNorm without bias": Case(
        lambda: nn.LayerNorm(9, bias=False), module(lambda: torch.nn.LayerNorm(9, bias=False)), ((4, 3, 9),)
    ),
    "RMSNorm": Case(lambda: nn.RMSNorm(9), module(lambda: torch.nn.RMSNorm(9, eps=1e-6)), ((4, 3, 9),)),
    "BatchNorm": Case(lambda: nn.BatchNorm(6), module(lambda: batch_norm(6)), ((8, 6),)),
    "BatchNorm of sequences": Case(
        lambda: nn.BatchNorm(6), channels_second(lambda: batch_norm(6)), ((4, 5, 6),)
    ),
    "GroupNorm": Case(
        lambda: nn.GroupNorm(3, 12), channels_second(lambda: torch.nn.GroupNorm(3, 12)), ((4, 5, 12),)
    ),
    "GroupNorm of images": Case(
        lambda: nn.GroupNorm(2, 6), channels_second(lambda: torch.nn.GroupNorm(2, 6)), ((2, 4, 3, 6),)
    ),
    "InstanceNorm": Case(
        lambda: nn.InstanceNorm(6),
        channels_second(lambda: torch.nn.InstanceNorm1d(6, affine=True)),
        ((4, 5, 6),),
    ),
    "PReLU": Case(
        lambda: nn.PReLU(6), module(lambda: torch.nn.PReLU(6), lambda w: {"weight": w["alpha"]}), ((8, 6),)
    ),
    "PReLU with one slope": Case(
        lambda: nn.PReLU(), module(lambda: torch.nn.PReLU(), lambda w: {"weight": w["alpha"]}), ((3, 4, 5),)
    ),
    "Dropout": Case(lambda: nn.Dropout(0.3), dropout, ((6, 7),)),
    "MultiHeadAttention": Case(lambda: nn.MultiHeadAttention(12, 3), self_attention, ((2, 5, 12),)),
    "MultiHeadAttention with biases": Case(
        lambda: nn.MultiHeadAttention(12, 3, bias=True), causal_attention, ((2, 5, 12),), {"causal": True}
    ),
    "MultiHeadAttention with a mask": Case(
        lambda: nn.MultiHeadAttention(12, 3, bias=True),
        masked_attention,
        ((2, 5, 12),),
        {"mask": ALLOWED[:, None]},
    ),
    "MultiHeadAttention across": Case(
        lambda: nn.MultiHeadAttention(12, 3, context_dim=7, bias=True),
        cross_attention,
        ((2, 5, 12), (2, 4, 7)),
    ),
    "MultiHeadAttention with shared heads": Case(
        lambda: nn.MultiHeadAttention(12, 4, kv_heads=2, out_proj=False), grouped_attention, ((2, 5, 12),)
    ),
    "RotaryAttention": Case(
        lambda: nn.RotaryAttention(12, 4, 2, 4, np.array([1.0, 0.1]), bias=(True, False), qk_norm=1e-5),
        rotary_attention,
        ((2, 5, 12),),
    ),
    "TransformerBlock": Case(
        lambda: nn.TransformerBlock(12, 3, 20, bias=True, causal=True, activation="gelu"),
        block("gelu", pre=True, causal=True),
        ((2, 5, 12),),
    ),
    "TransformerBlock with post-norm": Case(
        lambda: nn.TransformerBlock(12, 3, 20, bias=True, norm="post"),
        block("relu", pre=False, causal=False),
        ((2, 5, 12),),
    ),
    "MLP": Case(
        lambda: nn.MLP([5, 8, 7, 3], "tanh"),
        sequential(
            ("layers.0", torch.nn.Linear(5, 8)),
            torch.nn.Tanh(),
            ("layers.1", torch.nn.Linear(8, 7)),
            torch.nn.Tanh(),
            ("layers.2", torch.nn.Linear(7, 3)),
        ),
        ((6, 5),),
    ),
    "MLP with batch norm": Case(
        lambda: nn.MLP([5, 8, 3], "relu", norm="batch"),
        sequential(
            ("layers.0", torch.nn.Linear(5, 8, bias=False)),
            ("norms.0", batch_norm(8)),
            torch.nn.ReLU(),
            ("layers.1", torch.nn.Linear(8, 3)),
        ),
        ((6, 5),),
    ),
    "FeedForward": Case(
        lambda: nn.FeedForward(6, activation="gelu"),
        sequential(("fc1", torch.nn.Linear(6, 24)), torch.nn.GELU(), ("fc2", torch.nn.Linear(24, 6))),
        ((2, 5, 6),),
    ),
    "GatedFeedForward": Case(lambda: nn.GatedFeedForward(6, 10), gated, ((2, 5, 6),)),
    "Adapter": Case(lambda: nn.Adapter(8, 3, activation="tanh"), adapter, ((2, 5, 8),)),
    "Adapted": Case(
        lambda: nn.Adapted(nn.Linear(5, 8), nn.Adapter(8, 3, activation="tanh")), adapted, ((2, 4, 5),)
    ),
    "LoRALinear": Case(lambda: nn.LoRALinear(nn.Linear(5, 8), 2, alpha=4.0), lora, ((2, 4, 5),)),
    "PackedLoRALinear": Case(
        lambda: nn.PackedLoRALinear(nn.Linear(5, 12), 2, alpha=4.0, rows={"q": (0, 4), "v": (8, 12)}),
        packed_lora,
        ((2, 3, 5),),
    ),
    "KeyValuePrefix": Case(lambda: nn.KeyValuePrefix(3, 2, 4), prefix, ((2, 2, 5, 4), (2, 2, 5, 4))),
    "TokenRows": Case(lambda: nn.TokenRows(nn.Embedding(11, 6), [4, 1]), token_rows, (IDS,)),
    "SoftPrompt": Case(lambda: nn.SoftPrompt(nn.Embedding(11, 6), 3), soft_prompt, (IDS,)),
    "LearnedPositions": Case(
        lambda: nn.LearnedPositions(9, 6), lambda w, x: x + w["weight"][:7], ((2, 7, 6),)
    ),
    "DistanceBias": Case(lambda: nn.DistanceBias(8, 3, 5, farthest=6), distance_bias, ()),
    "SinusoidalPositions": Case(lambda: nn.SinusoidalPositions(6), sinusoidal("interleaved"), ((2, 7, 6),)),
    "SinusoidalPositions in halves": Case(
        lambda: nn.SinusoidalPositions(7, layout="half"), sinusoidal("half"), ((50, 7),)
    ),
    "RNN": Case(lambda: nn.RNN(5, 6), recurrent(torch.nn.RNN), ((3, 7, 5),)),
    "LSTM": Case(lambda: nn.LSTM(5, 6), recurrent(torch.nn.LSTM), ((3, 7, 5),)),
    "GRU": Case(lambda: nn.GRU(5, 6), gru, ((3, 7, 5),)),
    "GRU reset after": Case(lambda: nn.GRU(5, 6, reset_after=True), recurrent(torch.nn.GRU), ((3, 7, 5),)),
    "Stack": Case(lambda: nn.Stack([nn.LSTM(5, 6), nn.LSTM(6, 6)]), stacked, ((3, 7, 5),)),
    "Bidirectional": Case(
        lambda: nn.Bidirectional(nn.LSTM(5, 6), nn.LSTM(5, 6)), bidirectional, ((3, 7, 5),)
    ),
}
