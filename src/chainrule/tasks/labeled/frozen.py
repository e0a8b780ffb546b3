"""Texts that a frozen body has read: each once, before the first step, instead of once in every pass.

What a body that does not learn makes of a text is always the same. So its head learns from vectors that are there, and
a step costs next to nothing; the body reads as in evaluation, without dropout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd.types import Array
from chainrule.data import LabeledBatches
from chainrule.data.batches.padded import Mask
from chainrule.data.order import Items
from chainrule.models import BERTClassifier
from chainrule.types import Ids


class Read(NamedTuple):
    """Rows of texts, and what the body has read off each."""

    ids: Ids  # (B, T)
    mask: Mask  # (B, T)
    segments: Ids  # (B, T)
    gist: Array  # (B, 1, C)


class FrozenBatches(LabeledBatches):
    """Labeled texts in random order, with what the body of `model` has read off each of them."""

    def __init__(
        self, texts: Sequence[Any], labels: Sequence[int], *, model: BERTClassifier, **drawing: Any
    ) -> None:
        super().__init__(texts, labels, **drawing)
        self.gists = np.empty((len(labels), 1, model.config.n_embd), np.float32)
        with model.answering():
            for items in self.by_length():
                self.gists[items] = model.gist(*super().rows(items)[0]).numpy()

    def rows(self, items: Items) -> tuple[Any, Ids]:
        """Read of ids (B, T), mask (B, T), segments (B, T), gist (B, 1, C); labels (B,)"""
        inputs, labels = super().rows(items)
        return Read(*inputs, self.gists[items]), labels
