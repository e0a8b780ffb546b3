"""Which heads a model needs for a text: what its predictions lose without each of them.

    KL_h = mean over positions of KL(p ‖ p without head h),     Δloss_h = loss without head h - loss

(Michel et al. 2019)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd import intervene
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.inspect.inside.parts import Attention
from chainrule.inspect.inside.patching import at_once
from chainrule.inspect.inside.view import View, target_loss
from chainrule.inspect.probe import evaluating
from chainrule.nn import Layer


@dataclass(frozen=True)
class Ablation:
    """What changes without each head: maps of blocks × heads."""

    blocks: list[str]
    loss: float
    """Mean loss of the text with all heads, in nats."""
    increase: Array
    """By how much it is higher without each head (L, H)."""
    kl: Array
    """How far the predictions move without each head (L, H): the mean over positions, in nats."""

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, for JSON."""
        return vars(self) | {"increase": self.increase.tolist(), "kl": self.kl.tolist()}


def ablation(
    model: Layer,
    ids: Any,
    *,
    cross: bool = False,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Ablation:
    """What a model loses on a text without each of its heads; with `cross` those that look at a source.

    Each head is set to zero on its own. `progress(done, total)` is called after each block.

    >>> import chainrule as cr
    >>> cr.seed(0)
    >>> model = cr.models.make("gpt", n_layer=2, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> found = cr.inspect.ablation(model, [1, 2, 3, 4])
    >>> found.blocks, found.kl.shape, bool((found.kl >= 0).all())
    (['h.0', 'h.1'], (2, 2), True)
    """
    seen = View(model, ids)
    attending = {
        name: attention
        for name, block in seen.sites.blocks.items()
        for attention in block.attentions
        if attention.cross is cross
    }
    if not attending:
        kind = "cross-attention" if cross else "attention"
        raise ConfigError(f"ablation: {type(model).__name__} has no {kind} (must have some)")
    p = seen.logprobs.astype(np.float64)
    known = ~np.isnan(seen.loss)
    loss = float(seen.loss[known].mean()) if known.any() else np.nan
    increases, kls = [], []
    for done, attention in enumerate(attending.values(), 1):
        q = _without_each(seen, attention)  # (H, T, V)
        losses = target_loss(q, seen.targets)[:, known]  # (H, N)
        increases.append(losses.mean(-1) - loss if known.any() else np.full(len(q), np.nan))
        kls.append((np.exp(p) * (p - q)).sum(-1).mean(-1))
        progress(done, len(attending))
    return Ablation(list(attending), loss, np.stack(increases), np.stack(kls))


def _without_each(seen: View, attention: Attention) -> Array:
    """ln P of all tokens with one head of a layer set to zero: (H, T, V), a row for each head"""
    found, size = [], at_once(seen)
    for start in range(0, attention.heads, size):
        heads = np.arange(start, min(start + size, attention.heads))
        kept = (np.arange(attention.heads) != heads[:, None]).astype(seen.logits.dtype)  # (B, H)
        given = [None if x is None else np.repeat(x, len(heads), axis=0) for x in seen.given]
        with evaluating(seen.model), intervene({attention.call: partial(_scaled, attention, kept)}):
            found.append(np.asarray(ops.log_softmax(seen.model(*given).numpy())))
    return np.concatenate(found).astype(np.float64)


def _scaled(attention: Attention, kept: Array, y: Any) -> Any:
    """The heads of each row times its factors (B, H)."""
    if attention.packed:  # (B, T, H D)
        return y * np.repeat(kept, y.shape[-1] // attention.heads, axis=1)[:, None]
    return y * kept[:, :, None, None]  # (B, H, T, D)
