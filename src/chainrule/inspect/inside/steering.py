"""Vectors to steer with: what sets the activations of one group of texts apart from those of another.

(Turner et al. 2023; Rimsky et al. 2024)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.autograd.types import Array
from chainrule.errors import DataError
from chainrule.inspect.inside.sites import one_text
from chainrule.inspect.inside.view import View
from chainrule.nn import Layer


def steering_vector(
    model: Layer, towards: Sequence[Any], away: Sequence[Any], block: str | int, *, position: int | None = -1
) -> Array:
    """The mean stream after a block of one group of texts less that of another (C,): for `Steer`.

    Taken at a position of each text, the last unless given, or with None as the mean over all of them.

    >>> import chainrule as cr
    >>> cr.seed(0)
    >>> model = cr.models.make("gpt", n_layer=2, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> vector = cr.inspect.steering_vector(model, [[1, 2], [1, 2, 3]], [[4, 5], [6]], "h.0")
    >>> pushed = cr.inspect.effect(model, [7, 8], cr.inspect.Steer("h.0", vector, scale=4))
    >>> vector.shape, bool((pushed.kl > 0).all())
    ((16,), True)
    """

    def mean(texts: Sequence[Any]) -> Array:
        if not len(texts):
            raise DataError("steering_vector: a group has no texts (must be at least one in each)")
        streams = [View(model, ids).stream(block) for ids in texts]
        return np.mean([x.mean(0) if position is None else x[position] for x in streams], axis=0)

    return np.asarray(mean(towards) - mean(away))


def head_means(model: Layer, texts: Sequence[Any], block: str | int, *, cross: bool = False) -> Array:
    """The mean output of each head of a block over all positions of some texts (H, D): for `MeanHeads`.

    >>> import chainrule as cr
    >>> cr.seed(0)
    >>> model = cr.models.make("gpt", n_layer=2, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> cr.inspect.head_means(model, [[1, 2], [3, 4, 5]], "h.0").shape
    (2, 8)
    """
    rows = []
    for ids in texts:
        seen = View(model, ids)
        attention = seen.sites.attending(block, cross)
        y = one_text(seen.value(attention.call))  # (H, T, D), or (T, H D)
        rows.append(y.reshape(len(y), attention.heads, -1) if attention.packed else y.swapaxes(0, 1))
    if not rows:
        raise DataError("head_means: got no texts (must be at least one)")
    return np.asarray(np.concatenate(rows).mean(0))
