"""All differentiable operations, one file per op or family: forward, backward, native pair, cost, example.

`arrays` has what any array library has, `neural` what networks are made of, `losses` what training minimizes.
Called with Tensors they record themselves; called with NumPy arrays they only compute.
"""

from __future__ import annotations

from chainrule.autograd import Op, Tensor
from chainrule.ops.arrays.elementwise import add, cos, div, exp, log, mul, neg, pow, sin, sqrt, sub
from chainrule.ops.arrays.indexing import embedding, gather, getitem, one_hot
from chainrule.ops.arrays.matmul import matmul
from chainrule.ops.arrays.reduce import logsumexp, max, mean, sum
from chainrule.ops.arrays.shape import broadcast_to, concat, reshape, transpose, where
from chainrule.ops.losses.cross_entropy import cross_entropy, smooth_labels
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
from chainrule.ops.neural.recurrent import gru_cell, lstm_cell, rnn_cell
from chainrule.ops.neural.recurrent_sequence import gru_sequence, lstm_sequence, rnn_sequence
from chainrule.ops.neural.rmsnorm import rmsnorm
from chainrule.ops.neural.rotary import rotary
from chainrule.ops.neural.softmax import log_softmax, softmax, softmax_jacobian


def all_ops() -> dict[str, Op]:
    """All ops by name; the test battery runs over them."""
    return {value.name: value for value in globals().values() if isinstance(value, Op)}


Tensor.ops.update(all_ops())

__all__ = [
    "add", "all_ops", "attention", "attention_weights", "batchnorm", "batchnorm_eval", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "bradley_terry", "broadcast_to", "causal_mask", "concat", "cos",
    "cross_entropy", "cross_entropy_probs", "div", "dropout", "elu", "embedding", "erf", "exp",
    "fold_batchnorm", "gather", "gelu", "gelu_tanh", "getitem", "groupnorm", "gru_cell", "gru_sequence",
    "huber", "keep_mask", "kl_divergence", "kl_divergence_logits", "l2_to_reference", "layernorm",
    "leaky_relu", "linear", "linear_cross_entropy", "log", "log_sigmoid", "log_softmax", "logsumexp",
    "lstm_cell", "lstm_sequence", "mae", "matmul", "max", "mean", "mse", "mul", "neg", "negative_sampling",
    "one_hot", "packed_attention", "pow", "prelu", "relu", "reshape", "rmsnorm", "rnn_cell", "rnn_sequence",
    "rotary", "sigmoid", "silu", "sin", "smooth_labels", "softmax", "softmax_jacobian", "softplus", "sqrt",
    "sub", "sum", "swiglu", "tanh", "transpose", "update_running", "where"
]  # fmt: skip
