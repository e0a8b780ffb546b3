"""Every loss as PyTorch computes it; a part of the table in `torch_ops`."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def reduced(losses: Tensor, reduction: str) -> Tensor:
    return {"none": lambda x: x, "sum": torch.sum, "mean": torch.mean}[reduction](losses)


def rows(x: Tensor) -> Tensor:
    return x.reshape(-1, x.shape[-1])


def cross_entropy(
    logits: Tensor,
    *,
    targets: Any,
    weights: Tensor | None = None,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    exclude_true: bool = False,
    reduction: str = "mean",
) -> Tensor:
    targets, V = torch.as_tensor(targets), logits.shape[-1]
    ignored = -100 if ignore_index is None else ignore_index
    if weights is not None and not targets.is_floating_point():
        weights = weights * (targets != ignored)
    if exclude_true:  # PyTorch spreads ε over all V classes; here it goes to the V - 1 wrong ones (C-24)
        others = label_smoothing / (V - 1)
        targets = others + (1 - label_smoothing - others) * F.one_hot(targets, V).to(logits.dtype)
        label_smoothing = 0.0
    flat = rows(targets) if targets.is_floating_point() else targets.reshape(-1)
    loss = partial(F.cross_entropy, rows(logits), flat, ignore_index=ignored, label_smoothing=label_smoothing)
    if weights is None and reduction != "none":
        return loss(reduction=reduction)
    losses = loss(reduction="none").reshape(logits.shape[:-1])
    if weights is None:
        return losses
    if reduction == "mean":
        return (losses * weights).sum() / (weights.sum() if weights.any() else 1)  # 0 where nothing counts
    return reduced(losses * weights, reduction)


def linear_cross_entropy(
    x: Tensor, W: Tensor, own: Tensor | None = None, *, row_ids: Any = None, **constants: Any
) -> Tensor:
    if own is not None:
        W = W.index_copy(0, torch.as_tensor(row_ids), own)
    return cross_entropy(F.linear(x, W), **constants)


def cross_entropy_probs(p: Tensor, *, targets: Any, reduction: str = "mean") -> Tensor:
    targets = torch.as_tensor(targets)
    if targets.is_floating_point():
        return reduced(-torch.xlogy(targets, p).sum(-1), reduction)
    losses = F.nll_loss(rows(p.log()), targets.reshape(-1), reduction="none")
    return reduced(losses.reshape(targets.shape), reduction)


def binary_cross_entropy(p: Tensor, *, targets: Tensor, reduction: str = "mean") -> Tensor:
    return F.binary_cross_entropy(p, targets.to(p.dtype), reduction=reduction)


def binary_cross_entropy_with_logits(logits: Tensor, *, targets: Tensor, reduction: str = "mean") -> Tensor:
    return F.binary_cross_entropy_with_logits(logits, targets.to(logits.dtype), reduction=reduction)


def mse(pred: Tensor, target: Tensor, *, half: bool = False, reduction: str = "mean") -> Tensor:
    return F.mse_loss(pred, target, reduction=reduction) * (0.5 if half else 1.0)


def mae(pred: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    return F.l1_loss(pred, target, reduction=reduction)


def huber(pred: Tensor, target: Tensor, *, delta: float = 1.0, reduction: str = "mean") -> Tensor:
    return F.huber_loss(pred, target, delta=delta, reduction=reduction)


def kl_divergence(p: Tensor, q: Tensor, *, reduction: str = "mean") -> Tensor:
    return reduced(F.kl_div(q.log(), p, reduction="none").sum(-1), reduction)


def kl_divergence_logits(p_logits: Tensor, q_logits: Tensor, *, reduction: str = "mean") -> Tensor:
    log_p, log_q = torch.log_softmax(p_logits, -1), torch.log_softmax(q_logits, -1)
    return reduced(F.kl_div(log_q, log_p, reduction="none", log_target=True).sum(-1), reduction)


def negative_sampling(
    center: Tensor, positive: Tensor, negatives: Tensor, *, reduction: str = "mean"
) -> Tensor:
    near = torch.einsum("...c,...c->...", center, positive)
    far = torch.einsum("...c,...kc->...k", center, negatives)
    return reduced(-F.logsigmoid(near) - F.logsigmoid(-far).sum(-1), reduction)


def bradley_terry(chosen: Tensor, rejected: Tensor, *, reduction: str = "mean") -> Tensor:
    return reduced(-F.logsigmoid(chosen - rejected), reduction)


LOSSES = {
    loss.__name__: loss
    for loss in (
        cross_entropy,
        linear_cross_entropy,
        cross_entropy_probs,
        binary_cross_entropy,
        binary_cross_entropy_with_logits,
        mse,
        mae,
        huber,
        kl_divergence,
        kl_divergence_logits,
        negative_sampling,
        bradley_terry,
    )
}
