"""Every op as PyTorch computes it: one entry per op, with the op's own arguments and defaults.

Positional arguments arrive as torch tensors, keyword arguments as the op gets them, arrays as tensors.
Where torch.nn.functional has the operation it is used; the rest is written from elementary functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

import chainrule as cr
from tests.peers.torch_losses import LOSSES, rows

Axis = int | tuple[int, ...] | None

PEERS: dict[str, Callable[..., Any]] = {
    **LOSSES,
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "neg": torch.neg,
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "pow": torch.pow,
    "sin": torch.sin,
    "cos": torch.cos,
    "matmul": torch.matmul,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "silu": F.silu,
    "gelu": F.gelu,
    "log_sigmoid": F.logsigmoid,
    "abs": torch.abs,
    "sign": torch.sign,
    "log1p": torch.log1p,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
}


def peer(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Enter `fn` under its name (`sum_` as "sum")."""
    PEERS[fn.__name__.rstrip("_")] = fn
    return fn


def axes(x: Tensor, axis: Axis) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis


# -- linear algebra, reductions, shapes, indexing ------------------------------------------------------------


@peer
def linear(x: Tensor, W: Tensor, b: Tensor | None = None, *, layout: str = "out_in") -> Tensor:
    return F.linear(x, W if layout == "out_in" else W.T, b)


@peer
def sum_(x: Tensor, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return torch.sum(x, axes(x, axis), keepdim=keepdims)


@peer
def mean(x: Tensor, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return torch.mean(x, axes(x, axis), keepdim=keepdims)


@peer
def max_(x: Tensor, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return torch.amax(x, axes(x, axis), keepdim=keepdims)  # amax: equal maxima share the gradient, as in ours


@peer
def l2_loss(x: Tensor) -> Tensor:
    return x.square().sum() / 2


@peer
def logsumexp(x: Tensor, *, axis: Axis = -1, keepdims: bool = False) -> Tensor:
    return torch.logsumexp(x, axes(x, axis), keepdim=keepdims)


@peer
def reshape(x: Tensor, *, shape: Any) -> Tensor:
    return torch.reshape(x, (shape,) if isinstance(shape, int) else shape)


@peer
def transpose(x: Tensor, *, axes: Any = None) -> Tensor:
    return torch.permute(x, tuple(range(x.ndim))[::-1] if axes is None else axes)


@peer
def broadcast_to(x: Tensor, *, shape: Any) -> Tensor:
    return torch.broadcast_to(x, (shape,) if isinstance(shape, int) else shape)


@peer
def concat(*xs: Tensor, axis: int = 0) -> Tensor:
    return torch.cat(xs, axis)


@peer
def where(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    # A float condition has a gradient in ours: 0, since it only decides.
    return torch.where(condition != 0, a, b) + (0 * condition if condition.is_floating_point() else 0)


@peer
def cast(x: Tensor, *, dtype: Any) -> Tensor:
    return x.to(getattr(torch, np.dtype(dtype).name))


@peer
def min_(x: Tensor, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return torch.amin(x, axes(x, axis), keepdim=keepdims)


@peer
def prod(x: Tensor, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    for a in sorted((a % x.ndim for a in axes(x, axis)), reverse=True):  # torch takes one axis at a time
        x = torch.prod(x, a, keepdim=keepdims)
    return x


@peer
def norm(x: Tensor, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return torch.linalg.vector_norm(x, dim=axes(x, axis), keepdim=keepdims)


@peer
def cumsum(x: Tensor, *, axis: int = -1) -> Tensor:
    return torch.cumsum(x, axis)


@peer
def clip(x: Tensor, *, min: float | None = None, max: float | None = None) -> Tensor:
    return torch.clamp(x, min, max)


@peer
def take_along_axis(x: Tensor, *, ids: Any, axis: int = -1) -> Tensor:
    return torch.take_along_dim(
        x, torch.as_tensor(ids) % x.shape[axis], axis
    )  # which broadcasts, as ours does


@peer
def getitem(x: Tensor, *, index: Any) -> Tensor:
    """The index is NumPy's (torch has no negative steps): it says which elements, torch reads them."""
    parts = index if isinstance(index, tuple) else (index,)
    parts = tuple(part.numpy() if isinstance(part, Tensor) else part for part in parts)
    places = np.arange(x.numel()).reshape(x.shape)[parts]
    return torch.take(x, torch.tensor(places.copy()))


@peer
def embedding(W: Tensor, *, ids: Any) -> Tensor:
    return F.embedding(torch.as_tensor(ids), W)


@peer
def embedding_bag(W: Tensor, *, ids: Any, weights: Any = None) -> Tensor:
    bags = torch.as_tensor(ids).reshape(-1, np.shape(ids)[-1])
    each = None if weights is None else torch.as_tensor(weights).to(W.dtype).reshape(bags.shape)
    return F.embedding_bag(bags, W, mode="sum", per_sample_weights=each).reshape(*np.shape(ids)[:-1], -1)


@peer
def put_rows(W: Tensor, rows: Tensor, *, ids: Any) -> Tensor:
    return W.index_copy(0, torch.as_tensor(ids), rows)


@peer
def gather(x: Tensor, *, ids: Any) -> Tensor:
    return torch.gather(x, -1, torch.as_tensor(ids)[..., None])[..., 0]


# -- activations ---------------------------------------------------------------------------------------------


@peer
def relu(x: Tensor, *, at_zero: float = 0.0) -> Tensor:
    return torch.relu(x) if at_zero == 0 else torch.clamp(x, min=0)  # the derivative of clamp at its end is 1


@peer
def leaky_relu(x: Tensor, *, slope: float = 0.01) -> Tensor:
    return F.leaky_relu(x, slope)


@peer
def prelu(x: Tensor, alpha: Tensor) -> Tensor:
    return torch.where(x > 0, x, alpha * x)  # F.prelu has its channels in axis 1, ours are in the last


@peer
def elu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return F.elu(x, alpha)


@peer
def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    return F.silu(gate) * up


@peer
def gelu_tanh(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


@peer
def softplus(x: Tensor) -> Tensor:
    return F.softplus(x, threshold=50)  # the default calls everything above 20 linear: wrong by 2e-9


@peer
def softmax(x: Tensor, *, axis: int = -1, clip: tuple[float, float] | None = None) -> Tensor:
    return torch.softmax(x if clip is None else torch.clamp(x, *clip), axis)


@peer
def log_softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    return torch.log_softmax(x, axis)


# -- normalisation, dropout, attention, positions ------------------------------------------------------------


@peer
def layernorm(
    x: Tensor, gamma: Tensor, beta: Tensor, *, eps: float = 1e-5, eps_mode: str = "inside"
) -> Tensor:
    if eps_mode == "inside":
        return F.layer_norm(x, x.shape[-1:], gamma, beta, eps)
    std, mean = torch.std_mean(x, -1, correction=0, keepdim=True)
    return (x - mean) / (std + eps) * gamma + beta


@peer
def rmsnorm(x: Tensor, gamma: Tensor, *, eps: float = 1e-6) -> Tensor:
    return F.rms_norm(x, x.shape[-1:], gamma, eps)


@peer
def batchnorm(
    x: Tensor, gamma: Tensor, beta: Tensor, *, eps: float = 1e-5, rows: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    flat = x.flatten(0, -2)
    if rows is not None:  # the others fill up the shape
        y, mean, var = batchnorm(flat[: int(rows[0])], gamma, beta, eps=eps)
        return F.pad(y, (0, 0, 0, len(flat) - len(y))).reshape(x.shape), mean, var
    y = F.batch_norm(flat, None, None, gamma, beta, training=True, eps=eps)
    return y.reshape(x.shape), flat.mean(0), flat.var(0, correction=0)


@peer
def batchnorm_eval(
    x: Tensor, gamma: Tensor, beta: Tensor, *, mean: Tensor, var: Tensor, eps: float = 1e-5
) -> Tensor:
    return F.batch_norm(rows(x), mean, var, gamma, beta, training=False, eps=eps).reshape(x.shape)


@peer
def dropout(x: Tensor, *, p: float, key: Any = None) -> Tensor:
    """What is dropped is ours to choose; that everything else is scaled and passed on is what is compared."""
    return x * kept(x.shape, p, key).to(x.dtype) / (1 - p)


def kept(shape: Any, p: float, key: Any) -> Tensor:
    return torch.tensor(cr.ops.dropout(np.ones(tuple(shape)), p=p, key=key) != 0)


@peer
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool = False,
    mask: Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    key: Any = None,
) -> Tensor:
    T, S = q.shape[-2], k.shape[-2]
    if causal:  # aligned at the end: the last query sees every key (F's is_causal is aligned at the start)
        past = torch.ones(T, S, dtype=torch.bool).tril(S - T)
        if mask is None:
            mask = past
        else:
            mask = mask & past if mask.dtype == torch.bool else mask.masked_fill(~past, -torch.inf)
    if not dropout:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale, enable_gqa=q.ndim > 3)
    groups = q.shape[-3] // k.shape[-3]
    k, v = k.repeat_interleave(groups, -3), v.repeat_interleave(groups, -3)
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    weights = torch.softmax(scores if mask is None else scores.masked_fill(~mask, -torch.inf), -1)
    return weights * kept(weights.shape, dropout, key) / (1 - dropout) @ v


@peer
def relative_attention(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor, *, causal: bool = False, mask: Any = None, **options: Any
) -> Tensor:
    T, S = q.shape[-2], k.shape[-2]
    distance = torch.arange(S) - (torch.arange(T)[:, None] + S - T)
    added = bias[:, distance + (bias.shape[1] + 1) // 2 - 1]  # (H, T, S)
    if causal:
        added = added.masked_fill(distance > 0, -torch.inf)
    if mask is not None:
        added = torch.where(mask, added, -torch.inf)
    if not options.get("dropout"):
        return attention(q, k, v, mask=added, **options)
    weights = torch.softmax(q @ k.mT * q.shape[-1] ** -0.5 + added, -1)
    p, key = options["dropout"], options["key"]
    return weights * kept(weights.shape, p, key) / (1 - p) @ v


@peer
def pool(x: Tensor, *, mask: Tensor, kind: str = "mean") -> Tensor:
    mask = torch.as_tensor(mask)
    texts = [row[each] for row, each in zip(x, mask, strict=True)]
    reduced = {
        "mean": lambda text: text.mean(0),
        "last": lambda text: text[-1],
        "max": lambda text: text.amax(0),
    }
    return torch.stack([reduced[kind](text) for text in texts])


@peer
def packed_attention(qkv: Tensor, *, heads: int, causal: bool = True, **options: Any) -> Tensor:
    q, k, v = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in qkv.chunk(3, -1))
    return attention(q, k, v, causal=causal, **options).transpose(1, 2).flatten(2)


@peer
def rotary(
    x: Tensor, *, positions: Tensor, base: float = 10000.0, frequency: Any = None, interleaved: bool = False
) -> Tensor:
    """Pairs as complex numbers, turned by multiplication with e^iφ."""
    *lead, D = x.shape
    if frequency is None:
        frequency = base ** (-torch.arange(0, D, 2, dtype=torch.float64) / D)
    angle = torch.as_tensor(positions)[..., None] * torch.as_tensor(frequency, dtype=torch.float64)
    turn = torch.complex(torch.cos(angle).to(x.dtype), torch.sin(angle).to(x.dtype))
    pairs = x.reshape(*lead, D // 2, 2) if interleaved else x.reshape(*lead, 2, D // 2).mT
    turned = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turn)
    return (turned if interleaved else turned.mT).reshape(x.shape)


# -- recurrent cells -----------------------------------------------------------------------------------------


@peer
def rnn_cell(x: Tensor, h: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor | None = None) -> Tensor:
    return torch.rnn_tanh_cell(rows(x), rows(h), W_x, W_h, *two_biases(b, W_x)).reshape(h.shape)


@peer
def lstm_cell(
    x: Tensor, h: Tensor, c: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor | None = None
) -> tuple[Tensor, ...]:
    after = torch.lstm_cell(rows(x), (rows(h), rows(c)), W_x, W_h, *two_biases(b, W_x))
    return tuple(y.reshape(h.shape) for y in after)


@peer
def gru_cell(
    x: Tensor,
    h: Tensor,
    W_x: Tensor,
    W_h: Tensor,
    b: Tensor | None = None,
    b_h: Tensor | None = None,
    *,
    reset_after: bool = False,
) -> Tensor:
    if reset_after:  # PyTorch's own cell
        b, zero = two_biases(b, W_x)
        b_h = zero if b_h is None else b_h
        return torch.gru_cell(rows(x), rows(h), W_x, W_h, b, b_h).reshape(h.shape)
    # E-004-14: r gates h before the product, and z is the share of the new state
    (x_r, x_z, x_n), (W_r, W_z, W_n) = F.linear(x, W_x, b).chunk(3, -1), W_h.chunk(3)
    r, z = torch.sigmoid(x_r + F.linear(h, W_r)), torch.sigmoid(x_z + F.linear(h, W_z))
    n = torch.tanh(x_n + F.linear(r * h, W_n))
    return (1 - z) * h + z * n


def batch_first(
    kind: str, x: Tensor, states: tuple[Tensor, ...], weights: list[Tensor]
) -> tuple[Tensor, ...]:
    """What torch.nn.RNN, LSTM and GRU call: one layer, one direction; the last states without their layer axis."""
    first = tuple(state[None] for state in states)
    given = first if len(first) > 1 else first[0]
    y, *last = getattr(torch, kind)(x, given, weights, True, 1, 0.0, True, False, True)
    return y, *(state[0] for state in last)


@peer
def rnn_sequence(
    x: Tensor, h: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor | None = None
) -> tuple[Tensor, ...]:
    return batch_first("rnn_tanh", x, (h,), [W_x, W_h, *two_biases(b, W_x)])


@peer
def lstm_sequence(
    x: Tensor, h: Tensor, c: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor | None = None
) -> tuple[Tensor, ...]:
    return batch_first("lstm", x, (h, c), [W_x, W_h, *two_biases(b, W_x)])


@peer
def gru_sequence(
    x: Tensor,
    h: Tensor,
    W_x: Tensor,
    W_h: Tensor,
    b: Tensor | None = None,
    b_h: Tensor | None = None,
    *,
    reset_after: bool = False,
) -> tuple[Tensor, ...]:
    if reset_after:
        b, zero = two_biases(b, W_x)
        return batch_first("gru", x, (h,), [W_x, W_h, b, zero if b_h is None else b_h])
    outputs = []
    for step in x.unbind(1):
        h = gru_cell(step, h, W_x, W_h, b)
        outputs.append(h)
    return torch.stack(outputs, 1), h


def two_biases(b: Tensor | None, W_x: Tensor) -> tuple[Tensor, Tensor]:
    """PyTorch's cells add two biases where ours have one."""
    zero = torch.zeros(len(W_x), dtype=W_x.dtype)
    return (zero if b is None else b), zero
