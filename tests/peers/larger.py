"""Inputs of realistic sizes for every op: where float32 sums are long and kernels take their fast paths."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chainrule.autograd import Example
from chainrule.random import key

Maker = Callable[[np.random.Generator], list[Example]]
B, T, C, H, V = 3, 65, 48, 4, 257


def one(rng: np.random.Generator) -> list[Example]:
    return [Example((3 * rng.normal(size=(B, T, C)),))]


def two(rng: np.random.Generator) -> list[Example]:
    wide = (rng.normal(size=(B, T, C)), rng.normal(size=(T, 1)))
    return [Example((rng.normal(size=(T, V)), rng.normal(size=(T, V)))), Example(wide)]


def two_alike(rng: np.random.Generator) -> list[Example]:
    return [Example((rng.normal(size=(B, T, C)), rng.normal(size=(B, T, C))))]


def positive(rng: np.random.Generator) -> list[Example]:
    return [Example((rng.uniform(0.05, 20.0, size=(T, V)),))]


def axes(rng: np.random.Generator) -> list[Example]:
    return [Example((rng.normal(size=(B, T, C)),), {"axis": axis}) for axis in (-1, (0, 1), None)]


def along(rng: np.random.Generator) -> list[Example]:
    return [Example((5 * rng.normal(size=(B, T, V)),), {"axis": axis}) for axis in (-1, 1)]


def distributions(rng: np.random.Generator) -> list[Example]:
    p, q = rng.dirichlet(np.full(C, 2.0), size=(2, B, T))
    return [Example((p, q)), Example((p, q), {"reduction": "sum"})]


def normalized(parameters: int) -> Maker:
    def make(rng: np.random.Generator) -> list[Example]:
        x = 2 + 3 * rng.normal(size=(B, T, C))  # far from centered
        return [Example((x, *rng.normal(size=(parameters, C))))]

    return make


def cell(gates: int, states: int, *steps: int, **kwargs: object) -> Maker:
    """A cell on T rows; with `steps` of time a whole sequence."""

    def make(rng: np.random.Generator) -> list[Example]:
        x, state, n = rng.normal(size=(T, *steps, C)), rng.normal(size=(states, T, V)), gates * V
        W_x, W_h, b = rng.normal(size=(n, C)) / C**0.5, rng.normal(size=(n, V)) / V**0.5, rng.normal(size=n)
        return [Example((x, *state, W_x, W_h, b), kwargs)]

    return make


def gru_sequence(rng: np.random.Generator) -> list[Example]:
    return cell(3, 1, 9)(rng) + cell(3, 1, 9, reset_after=True)(rng)


def pow_(rng: np.random.Generator) -> list[Example]:
    return [Example((rng.uniform(0.1, 5.0, size=(T, C)), rng.normal(size=C)))]


def div(rng: np.random.Generator) -> list[Example]:
    return [Example((rng.normal(size=(B, T, C)), rng.uniform(0.3, 3.0, size=(T, 1))))]


def matmul(rng: np.random.Generator) -> list[Example]:
    return [
        Example((rng.normal(size=(B, H, T, C)), rng.normal(size=(B, H, C, T)))),
        Example((rng.normal(size=(B, T, V)), rng.normal(size=(V, C)))),
    ]


def linear(rng: np.random.Generator) -> list[Example]:
    return [Example((rng.normal(size=(B, T, C)), rng.normal(size=(V, C)), rng.normal(size=V)))]


def embedding(rng: np.random.Generator) -> list[Example]:
    return [Example((rng.normal(size=(V, C)),), {"ids": rng.integers(0, V, size=(8, T))})]


def embedding_bag(rng: np.random.Generator) -> list[Example]:
    ids, weights = rng.integers(0, V, size=(8, T)), rng.normal(size=(8, T)).astype(np.float32)
    return [Example((rng.normal(size=(V, C)),), {"ids": ids, "weights": weights})]


def put_rows(rng: np.random.Generator) -> list[Example]:
    return [Example((rng.normal(size=(V, C)), rng.normal(size=(8, C))), {"ids": rng.permutation(V)[:8]})]


def gather(rng: np.random.Generator) -> list[Example]:
    return [Example((rng.normal(size=(B, T, V)),), {"ids": rng.integers(0, V, size=(B, T))})]


def getitem(rng: np.random.Generator) -> list[Example]:
    x = rng.normal(size=(B, T, C))
    pieces = (slice(None), slice(3, 60, 2), -1)
    return [Example((x,), {"index": index}) for index in (pieces, rng.integers(0, B, size=100))]


def prelu(rng: np.random.Generator) -> list[Example]:
    return [Example((rng.normal(size=(B, T, C)), rng.uniform(0.1, 0.5, size=C)))]


def cross_entropy(rng: np.random.Generator) -> list[Example]:
    logits, ids = 4 * rng.normal(size=(B, T, V)), rng.integers(0, V, size=(B, T))
    weighted, ignored = {"weights": rng.uniform(size=(B, T))}, {"ignore_index": int(ids[0, 0])}
    smooth = {"label_smoothing": 0.1}
    settings: list[dict[str, object]] = [
        {"targets": ids},
        {"targets": ids, **smooth, **ignored},
        {"targets": ids, **weighted, **ignored},
        {"targets": ids, **weighted, **smooth, "exclude_true": True, "reduction": "sum"},
        {"targets": rng.dirichlet(np.ones(V), size=(B, T)), **smooth, "reduction": "none"},
    ]
    return [Example((logits,), kwargs) for kwargs in settings]


def linear_cross_entropy(rng: np.random.Generator) -> list[Example]:
    x, W = rng.normal(size=(B, T, C)), 0.3 * rng.normal(size=(V, C))
    return [Example((x, W), example.kwargs) for example in cross_entropy(rng)]


def cross_entropy_probs(rng: np.random.Generator) -> list[Example]:
    p = rng.dirichlet(np.full(C, 2.0), size=(B, T))
    return [Example((p,), {"targets": rng.integers(0, C, size=(B, T))}), Example((p,), {"targets": p[::-1]})]


def binary_cross_entropy(rng: np.random.Generator) -> list[Example]:
    return [Example((rng.uniform(0.05, 0.95, size=(T, C)),), {"targets": rng.integers(0, 2, size=(T, C))})]


def binary_cross_entropy_with_logits(rng: np.random.Generator) -> list[Example]:
    logits, targets = 5 * rng.normal(size=(T, C)), rng.uniform(size=(T, C))
    return [Example((logits,), {"targets": targets, "reduction": "sum"})]


def batchnorm_eval(rng: np.random.Generator) -> list[Example]:
    statistics = {"mean": rng.normal(size=C), "var": rng.uniform(0.1, 4.0, size=C)}
    return [Example((rng.normal(size=(B, T, C)), *rng.normal(size=(2, C))), statistics)]


def dropout(rng: np.random.Generator) -> list[Example]:
    return [Example((rng.normal(size=(B, T, C)),), {"p": 0.25, "key": key("dropout", 3, seed=5)})]


def attention(rng: np.random.Generator) -> list[Example]:
    q, k, v = rng.normal(size=(3, B, H, T, 32))
    padding = np.arange(T) < np.array([T, 20, 1])[:, None, None, None]  # (B, 1, 1, T)
    return [
        Example((q, k, v), {"causal": True}),
        Example((q, k[:, :2], v[:, :2]), {"mask": padding}),
        Example((q[:, :, :7], k, v), {"causal": True, "mask": padding}),
        Example((q, k, v), {"causal": True, "dropout": 0.1, "key": key("dropout", 4, seed=5)}),
    ]


def pool(rng: np.random.Generator) -> list[Example]:
    x, mask = rng.normal(size=(B, T, C)), np.arange(T) < np.array([T, 20, 1])[:, None]
    return [Example((x,), {"mask": mask, "kind": kind}) for kind in ("mean", "last", "max")]


def relative_attention(rng: np.random.Generator) -> list[Example]:
    q, k, v = rng.normal(size=(3, B, H, T, 32))
    bias = rng.normal(size=(H, 2 * T + 7))
    padding = np.arange(T) < np.array([T, 20, 1])[:, None, None, None]  # (B, 1, 1, T)
    return [
        Example((q, k, v, bias), {"mask": padding}),
        Example((q[:, :, :7], k, v, bias), {"causal": True, "scale": 1.0}),
    ]


def packed_attention(rng: np.random.Generator) -> list[Example]:
    qkv = rng.normal(size=(B, T, 3 * C))
    dropped = {"dropout": 0.1, "key": key("dropout", 4, seed=5)}
    return [Example((qkv,), {"heads": H}), Example((qkv,), {"heads": H, "causal": False, **dropped})]


def rotary(rng: np.random.Generator) -> list[Example]:
    x = rng.normal(size=(B, H, T, 32))
    return [Example((x,), {"positions": np.arange(2000, 2000 + T), "interleaved": i}) for i in (False, True)]


def negative_sampling(rng: np.random.Generator) -> list[Example]:
    center, positive = rng.normal(size=(2, T, C)) / 3
    return [Example((center, positive, rng.normal(size=(T, 15, C)) / 3))]


def bradley_terry(rng: np.random.Generator) -> list[Example]:
    chosen, rejected = 4 * rng.normal(size=(2, V))
    return [Example((chosen, rejected)), Example((chosen, rejected), {"reduction": "sum"})]


def moved(**kwargs: object) -> Maker:
    return lambda rng: [Example((rng.normal(size=(B, T, C)),), kwargs)]


def concat(rng: np.random.Generator) -> list[Example]:
    return [Example((rng.normal(size=(B, T, C)), rng.normal(size=(B, 7, C))), {"axis": 1})]


def where(rng: np.random.Generator) -> list[Example]:
    condition = rng.random((T, C)) < 0.3
    return [Example((condition, rng.normal(size=(B, T, C)), rng.normal(size=C)))]


def take_along_axis(rng: np.random.Generator) -> list[Example]:
    return [Example((rng.normal(size=(B, T, C)),), {"ids": rng.integers(0, T, size=(B, 100, C)), "axis": 1})]


def prod(rng: np.random.Generator) -> list[Example]:
    return [Example((rng.uniform(0.7, 1.4, size=(B, T, C)),), {"axis": axis}) for axis in (-1, (0, 1))]


LARGER: dict[str, Maker] = {
    **dict.fromkeys(["add", "sub", "mul", "maximum", "minimum"], two),
    **dict.fromkeys(["neg", "exp", "sin", "cos", "abs", "sign", "l2_loss"], one),
    **dict.fromkeys(["sigmoid", "tanh", "relu", "leaky_relu", "elu", "silu"], one),
    **dict.fromkeys(["gelu", "gelu_tanh", "softplus", "log_sigmoid"], one),
    **dict.fromkeys(["log", "sqrt", "log1p"], positive),
    **dict.fromkeys(["sum", "mean", "max", "min", "norm", "logsumexp"], axes),
    **dict.fromkeys(["softmax", "log_softmax", "cumsum"], along),
    **dict.fromkeys(["swiglu", "mse", "mae", "huber", "kl_divergence_logits"], two_alike),
    "div": div,
    "pow": pow_,
    "matmul": matmul,
    "linear": linear,
    "reshape": moved(shape=(-1, C)),
    "transpose": moved(axes=(1, 0, 2)),
    "broadcast_to": moved(shape=(2, B, T, C)),
    "concat": concat,
    "where": where,
    "cast": moved(dtype=np.float64),
    "clip": moved(min=-0.5, max=1.0),
    "prod": prod,
    "take_along_axis": take_along_axis,
    "getitem": getitem,
    "embedding": embedding,
    "embedding_bag": embedding_bag,
    "put_rows": put_rows,
    "gather": gather,
    "prelu": prelu,
    "cross_entropy": cross_entropy,
    "linear_cross_entropy": linear_cross_entropy,
    "cross_entropy_probs": cross_entropy_probs,
    "binary_cross_entropy": binary_cross_entropy,
    "binary_cross_entropy_with_logits": binary_cross_entropy_with_logits,
    "kl_divergence": distributions,
    "negative_sampling": negative_sampling,
    "bradley_terry": bradley_terry,
    "layernorm": normalized(2),
    "rmsnorm": normalized(1),
    "batchnorm": normalized(2),
    "batchnorm_eval": batchnorm_eval,
    "dropout": dropout,
    "attention": attention,
    "packed_attention": packed_attention,
    "relative_attention": relative_attention,
    "pool": pool,
    "rotary": rotary,
    "rnn_cell": cell(1, 1),
    "lstm_cell": cell(4, 2),
    "gru_cell": cell(3, 1),
    "rnn_sequence": cell(1, 1, 9),
    "lstm_sequence": cell(4, 2, 9),
    "gru_sequence": gru_sequence,
}
