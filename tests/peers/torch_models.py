"""The models of text as PyTorch computes them, from our weights under our names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call
from torch.nn.utils.rnn import pack_padded_sequence

from tests.peers.torch_layers import Weights, lstm_weights
from tests.peers.torch_ops import PEERS

IGNORE = -1
State = list[tuple[Tensor, ...]]  # of each recurrent layer


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """The mean over the targets that count."""
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=IGNORE)


# -- windows of n tokens -------------------------------------------------------------------------------------

Predict = Callable[[Weights, Tensor], Tensor]  # contexts (N, n) -> logits (N, V)


def contexts(ids: Tensor, n: int, nothing: int) -> Tensor:
    """ids (B, T) -> (B, T, n)"""
    return F.pad(ids, (n - 1, 0), value=nothing).unfold(1, n, 1)


def windows(n: int, nothing: int, predict: Predict) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """Logits and loss of a model that sees n tokens; a batch norm sees only the positions that count."""

    def logits(w: Weights, ids: Tensor) -> Tensor:
        return predict(w, contexts(ids, n, nothing).flatten(0, 1)).unflatten(0, ids.shape)

    def loss(w: Weights, ids: Tensor, targets: Tensor) -> Tensor:
        counts = targets != IGNORE
        return F.cross_entropy(predict(w, contexts(ids, n, nothing)[counts]), targets[counts])

    return logits, loss


def mlp(n_layer: int, *, training: bool = True) -> Predict:
    def predict(w: Weights, seen: Tensor) -> Tensor:
        x = F.embedding(seen, w["embedding.weight"]).flatten(1)
        for i in range(n_layer):
            x = torch.tanh(normalized(w, i, F.linear(x, *linear(w, f"mlp.layers.{i}")), training))
        return F.linear(x, *linear(w, f"mlp.layers.{n_layer}"))

    return predict


def linear(w: Weights, name: str) -> tuple[Tensor, Tensor | None]:
    return w[f"{name}.weight"], w.get(f"{name}.bias")


def normalized(w: Weights, i: int, x: Tensor, training: bool) -> Tensor:
    name = f"mlp.norms.{i}"
    if f"{name}.weight" not in w:
        return x
    statistics = (None, None) if training else (w[f"{name}.running_mean"], w[f"{name}.running_var"])
    return F.batch_norm(x, *statistics, w[f"{name}.weight"], w[f"{name}.bias"], training=training)


def neural_ngram(w: Weights, seen: Tensor) -> Tensor:
    """The product with one-hot vectors that ours does not form; "nothing yet" is a column cut off."""
    n, V, _ = w["weight"].shape
    one_hot = F.one_hot(seen, V + 1)[..., :V].to(w["weight"].dtype)
    return sum((one_hot[:, j] @ w["weight"][j] for j in range(n)), torch.zeros((), dtype=w["weight"].dtype))


# -- recurrent -----------------------------------------------------------------------------------------------


def cell(op: str, w: Weights, name: str, x: Tensor, state: tuple[Tensor, ...] | None = None) -> Any:
    """One layer over a sequence: outputs (B, T, H), and the state after it."""
    weights = [w[f"{name}.{part}"] for part in ("weight_x", "weight_h", "bias")]
    after = f"{name}.bias_h" in w  # PyTorch's own GRU; ours is that of E-004-14
    H = weights[1].shape[1]
    state = state or (x.new_zeros(len(x), H),) * (2 if op == "lstm" else 1)
    options = {"b_h": w[f"{name}.bias_h"], "reset_after": True} if after else {}
    outputs, *last = PEERS[f"{op}_sequence"](x, *state, *weights, **options)
    return outputs, tuple(last)


def recurrent(op: str, w: Weights, ids: Tensor, state: State | None = None) -> tuple[Tensor, State]:
    """ids (B, T) -> logits (B, T, V), and the states after it"""
    x, after = F.embedding(ids, w["embedding.weight"]), []
    for i in range(sum(name.endswith("weight_x") for name in w)):
        x, last = cell(op, w, f"cells.layers.{i}", x, state[i] if state else None)
        after.append(last)
    return F.linear(x, w["head.weight"]), after


def encoder_decoder(w: Weights, source: Tensor, inputs: Tensor) -> Tensor:
    encoded, state = cell("gru", w, "encoder", F.embedding(source, w["embedding.weight"]))
    decoded, _ = cell("gru", w, "decoder", F.embedding(inputs, w["embedding.weight"]), state)
    if "join.weight" in w:
        q, k, v = (
            F.linear(x, w[f"attention.{p}_proj.weight"])
            for p, x in (("q", decoded), ("k", encoded), ("v", encoded))
        )
        found = F.linear(F.scaled_dot_product_attention(q, k, v), w["attention.out_proj.weight"])
        decoded = torch.tanh(F.linear(torch.cat([decoded, found], -1), *linear(w, "join")))
    return F.linear(decoded, *linear(w, "head"))


# -- a label for a sequence: PyTorch never sees the padding --------------------------------------------------


def head(summary: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda w, ids, lengths: F.linear(summary(w, ids, lengths), *linear(w, "head"))


def bag_of_words(w: Weights, ids: Tensor, lengths: Tensor) -> Tensor:
    return bags([row[:n] for row, n in zip(ids, lengths, strict=True)], w["embedding.weight"])


def bags(rows: list[Tensor], table: Tensor) -> Tensor:
    """The mean of the vectors of each row."""
    starts = torch.tensor([0, *map(len, rows)][:-1]).cumsum(0)
    return F.embedding_bag(torch.cat(rows), table, starts, mode="mean")


def last_state(op: str) -> Callable[..., Tensor]:
    def summary(w: Weights, ids: Tensor, lengths: Tensor) -> Tensor:
        rows = (
            F.embedding(row[None, :n], w["embedding.weight"]) for row, n in zip(ids, lengths, strict=True)
        )
        return torch.cat([cell(op, w, "cell", row)[1][0] for row in rows])

    return summary


def both_ways(w: Weights, ids: Tensor, lengths: Tensor) -> Tensor:
    """The last states of a torch.nn.LSTM in two directions, of a packed sequence."""
    x, C = F.embedding(ids, w["embedding.weight"]), w["cells.ahead.weight_h"].shape[1]
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    names = lstm_weights(w, {"cells.ahead": "l0", "cells.back": "l0_reverse"})
    peer = torch.nn.LSTM(x.shape[-1], C, bidirectional=True, batch_first=True)
    _, (h, _) = functional_call(peer, names, (packed,))
    return torch.cat([h[0], h[1]], -1)


# -- word2vec ------------------------------------------------------------------------------------------------


def hidden(w: Weights, inputs: Tensor) -> Tensor:
    """Of a word (skip-gram), or of the words around one (CBOW), -1 where there is none."""
    if inputs.ndim == 1:
        return w["input.weight"][inputs]
    return bags([row[row >= 0] for row in inputs], w["input.weight"])


def word_scores(w: Weights, inputs: Tensor) -> Tensor:
    return hidden(w, inputs) @ w["output.weight"].T


def sampled_loss(w: Weights, inputs: Tensor, targets: Tensor, negatives: Tensor) -> Tensor:
    """- ln σ(u_o · v) - Σ_k ln σ(-u_k · v) of each pair, one pair at a time."""
    losses = [
        -F.logsigmoid(w["output.weight"][o] @ v) - F.logsigmoid(-(w["output.weight"][drawn] @ v)).sum()
        for v, o, drawn in zip(hidden(w, inputs), targets, negatives, strict=True)
    ]
    return torch.stack(losses).mean()
