"""Twenty steps of training in both frameworks, each with its own gradients, on its own path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

import chainrule as cr
from chainrule import nn, optim

Losses = Callable[[int], tuple[cr.Tensor, torch.Tensor]]  # of one step: ours, PyTorch's
Pairs = list[tuple[float, float]]

RULES: dict[str, tuple[Callable[..., optim.Optimizer], Callable[..., torch.optim.Optimizer], float]] = {
    "adamw": (
        lambda p: optim.AdamW(p, betas=(0.9, 0.95), weight_decay=0.1),
        lambda g: torch.optim.AdamW(g, betas=(0.9, 0.95), weight_decay=0.1),
        3e-3,
    ),
    "sgd": (lambda p: optim.SGD(p, 0), lambda g: torch.optim.SGD(g), 0.3),
}


def train_both(
    model: nn.Layer, weights: Mapping[str, Any], losses: Losses, rule: str = "adamw"
) -> tuple[Pairs, Pairs]:
    """With clipping and a schedule: pairs of losses, pairs of gradient norms. `weights` are PyTorch's, by our names."""
    ours, theirs, rate = RULES[rule]
    params = model.parameters()
    optimizer = ours(params)
    groups = [[w for name, w in weights.items() if params[name].decay is decay] for decay in (True, False)]
    decays = [{"params": groups[0]}, {"params": groups[1], "weight_decay": 0.0}]
    peer = theirs([group for group in decays if group["params"]])
    schedule = optim.cosine(rate, 20, warmup=3)
    pairs, norms = [], []
    for step in range(20):
        loss, expected = losses(step)
        optimizer.zero_grad()
        loss.backward()
        norm = optim.clip_global_norm(params, 1.0)
        optimizer.step(schedule(step))
        peer.zero_grad()
        expected.backward()
        norms.append((norm, clip_exactly(list(weights.values()), 1.0)))
        for group in peer.param_groups:
            group["lr"] = schedule(step)
        peer.step()
        pairs.append((loss.item(), expected.item()))
    return pairs, norms


def clip_exactly(weights: list[torch.Tensor], limit: float) -> float:
    """clip_grad_norm_ divides by the norm + 1e-6, which would be the largest difference here."""
    norm = torch.nn.utils.get_total_norm([w.grad for w in weights]).item()
    for w in weights:
        w.grad.mul_(min(1.0, limit / norm))
    return norm
