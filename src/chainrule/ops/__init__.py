"""All differentiable operations, one file per op or family: forward, backward, native pair, cost, example.

`arrays` has what any array library has, `neural` what networks are made of, `losses` what training minimizes.
Called with Tensors they record themselves; called with NumPy arrays they only compute.
"""

from __future__ import annotations

from typing import Any

from chainrule import lazy
from chainrule.autograd import Op, Tensor
from chainrule.ops._composition import Composition
from chainrule.ops.arrays.corners import abs, clip, maximum, minimum, sign
from chainrule.ops.arrays.einsum import einsum
from chainrule.ops.arrays.elementwise import add, cos, div, exp, log, log1p, mul, neg, pow, sin, sqrt, sub
from chainrule.ops.arrays.indexing import embedding, embedding_bag, gather, getitem, one_hot, put_rows
from chainrule.ops.arrays.matmul import matmul
from chainrule.ops.arrays.order import argmax, argmin, argsort, sort, take_along_axis, topk
from chainrule.ops.arrays.rearrange import (
    astype,
    chunk,
    clone,
    expand,
    flatten,
    masked_fill,
    pad,
    repeat,
    split,
    squeeze,
    stack,
    swapaxes,
    tril,
    triu,
    unsqueeze,
)
from chainrule.ops.arrays.reduce import cumsum, l2_loss, logsumexp, max, mean, min, norm, prod, sum
from chainrule.ops.arrays.shape import broadcast_to, cast, concat, reshape, transpose, where
from chainrule.ops.arrays.statistics import outer, rsqrt, std, var
from chainrule.ops.losses._targets import diagonal_targets, smooth_labels
from chainrule.ops.losses.cross_entropy import cross_entropy
from chainrule.ops.losses.distances import huber, l2_to_reference, mae, mse
from chainrule.ops.losses.likelihood import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy_probs,
    kl_divergence,
    kl_divergence_logits,
)
from chainrule.ops.losses.linear_cross_entropy import linear_cross_entropy
from chainrule.ops.losses.pairs import bradley_terry, negative_sampling
from chainrule.ops.neural.activations import (
    elu,
    leaky_relu,
    log_sigmoid,
    prelu,
    relu,
    sigmoid,
    silu,
    softplus,
    swiglu,
    tanh,
)
from chainrule.ops.neural.attention import attention, attention_weights, causal_mask
from chainrule.ops.neural.batchnorm import (
    batchnorm,
    batchnorm_eval,
    fold_batchnorm,
    groupnorm,
    update_running,
)
from chainrule.ops.neural.dropout import dropout, keep_mask
from chainrule.ops.neural.gelu import erf, gelu, gelu_tanh
from chainrule.ops.neural.layernorm import layernorm
from chainrule.ops.neural.linear import linear
from chainrule.ops.neural.packed_attention import packed_attention
from chainrule.ops.neural.pooling import pool
from chainrule.ops.neural.recurrent import gru_cell, lstm_cell, rnn_cell
from chainrule.ops.neural.recurrent_sequence import gru_sequence, lstm_sequence, rnn_sequence
from chainrule.ops.neural.relative_attention import relative_attention
from chainrule.ops.neural.rmsnorm import rmsnorm
from chainrule.ops.neural.rotary import rotary
from chainrule.ops.neural.softmax import log_softmax, softmax, softmax_jacobian


def all_ops() -> dict[str, Op]:
    """All ops by name; the test battery runs over them."""
    return {value.name: value for value in globals().values() if isinstance(value, Op)}


def compositions() -> dict[str, Composition[..., Any]]:
    """All functions made of ops, by name."""
    return {value.name: value for value in globals().values() if isinstance(value, Composition)}


Tensor.register({**all_ops(), **compositions()})


__all__ = [
    "abs", "add", "all_ops", "argmax", "argmin", "argsort", "astype", "attention", "attention_weights",
    "batchnorm", "batchnorm_eval", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "bradley_terry", "broadcast_to", "cast", "causal_mask", "chunk", "clip", "clone", "compositions", "concat",
    "cos", "cross_entropy", "cross_entropy_probs", "cumsum", "diagonal_targets", "div", "dropout", "einsum", "elu",
    "embedding", "embedding_bag", "erf", "exp", "expand", "flatten", "fold_batchnorm", "gather", "gelu", "gelu_tanh",
    "getitem", "groupnorm", "gru_cell", "gru_sequence", "huber", "keep_mask", "kl_divergence", "kl_divergence_logits",
    "l2_loss", "l2_to_reference", "layernorm", "leaky_relu", "linear", "linear_cross_entropy", "log", "log1p",
    "log_sigmoid", "log_softmax", "logsumexp", "lstm_cell", "lstm_sequence", "mae", "masked_fill", "matmul",
    "max", "maximum", "mean", "min", "minimum", "mse", "mul", "neg", "negative_sampling", "norm", "one_hot",
    "outer", "packed_attention", "pad", "pool", "pow", "prelu", "prod", "put_rows", "relative_attention", "relu",
    "repeat", "reshape", "rmsnorm", "rnn_cell", "rnn_sequence", "rotary", "rsqrt", "sigmoid", "sign", "silu", "sin",
    "smooth_labels", "softmax", "softmax_jacobian", "softplus", "sort", "split", "sqrt", "squeeze", "stack",
    "std", "sub", "sum", "swapaxes", "swiglu", "take_along_axis", "tanh", "topk", "transpose", "tril",
    "triu", "unsqueeze", "update_running", "var", "where"
]  # fmt: skip

lazy.names(__name__)
