"""Reward: a language model's body with one number per text, read where the text ends.

    reward = w · hidden[last token]

A decoder's last token has seen the whole text; what stands behind it is padding, which no token before it can see.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ShapeError
from chainrule.models.language_model import TransformerLM
from chainrule.nn import Layer, Linear
from chainrule.nn.init import normal


class Reward(Layer):
    """How good a text is, as one number without a unit: only differences mean something.

    >>> import chainrule as cr, numpy as np
    >>> body = cr.models.GPT(cr.models.GPTConfig(n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10))
    >>> ids, mask = np.array([[1, 2, 3], [4, 5, 0]]), np.array([[True, True, True], [True, True, False]])
    >>> cr.models.Reward(body)(ids, mask).shape
    (2,)
    """

    def __init__(self, body: TransformerLM) -> None:
        self.body = body
        self.score = Linear(body.config.n_embd, 1, bias=False, init=partial(normal, std=0.02))

    def forward(self, ids: Array, mask: Array | None = None) -> Tensor:
        """ids (B, T), mask (B, T) -> rewards (B,)

        The mask is True at tokens, False at the padding after them (default: no padding).
        """
        ids = np.asarray(ids)
        lengths = np.full(len(ids), ids.shape[1]) if mask is None else _lengths(np.asarray(mask, bool), ids)
        hidden = self.body.hidden(ids)  # (B, T, C)
        return self.score(hidden[np.arange(len(ids)), lengths - 1]).reshape(-1)


def _lengths(mask: Array, ids: Array) -> Array:
    """How many tokens each row has before its padding."""
    lengths = mask.sum(axis=-1)
    fits = mask.shape == ids.shape and lengths.all()
    if not fits or (mask != (np.arange(ids.shape[1]) < lengths[:, None])).any():
        raise ShapeError(
            f"Reward: mask {mask.shape} for ids {ids.shape} (must have their shape, True for the first tokens "
            "of each row, at least one, and False behind)"
        )
    return np.asarray(lengths)
