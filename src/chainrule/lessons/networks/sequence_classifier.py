"""Labels for whole sequences: by counting words, by a recurrent state, by attention.

Rows are padded behind their text; `lengths` says where it ends.
"""

from __future__ import annotations

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.nn import Embedding, Layer, Linear, MultiHeadAttention, SinusoidalPositions, TransformerBlock
from chainrule.nn.recurrent import Recurrent


class SequenceClassifier(Layer):
    """Base: a vector per sequence, and a linear layer that scores the classes."""

    def __init__(self, vocab_size: int, width: int, n_classes: int) -> None:
        self.embedding = Embedding(vocab_size, width)
        self.head = Linear(width, n_classes)

    def summary(self, ids: Array, lengths: Array) -> Tensor:
        """ids (B, T), lengths (B,) -> a vector per row (B, C)"""
        raise NotImplementedError

    def forward(self, ids: Array, lengths: Array) -> Tensor:
        """ids (B, T), lengths (B,) -> logits (B, n_classes)"""
        return self.head(self.summary(ids, lengths))

    def loss(self, ids: Array, lengths: Array, labels: Array) -> Tensor:
        """labels (B,) -> mean negative log-likelihood in nats"""
        return ops.cross_entropy(self(ids, lengths), targets=labels)


class BagOfWords(SequenceClassifier):
    """The mean of the vectors of the words: "good, not bad" and "bad, not good" are the same."""

    def summary(self, ids: Array, lengths: Array) -> Tensor:
        weights = (np.arange(ids.shape[1]) < lengths[:, None]) / lengths[:, None]  # (B, T)
        vectors = self.embedding(ids)  # (B, T, C)
        return (vectors * weights[..., None].astype(vectors.dtype)).sum(axis=1)


class RecurrentClassifier(SequenceClassifier):
    """The state of a recurrent layer after the last word."""

    def __init__(self, cell: type[Recurrent], vocab_size: int, width: int, n_classes: int) -> None:
        super().__init__(vocab_size, width, n_classes)
        self.cell = cell(width, width)

    def summary(self, ids: Array, lengths: Array) -> Tensor:
        outputs, _ = self.cell(self.embedding(ids))  # (B, T, C)
        return outputs[np.arange(len(ids)), lengths - 1]


class AttentionClassifier(SequenceClassifier):
    """What the last word finds by attention: every other word is one step away."""

    def __init__(self, vocab_size: int, width: int, n_classes: int) -> None:
        super().__init__(vocab_size, width, n_classes)
        self.positions = SinusoidalPositions(width)
        self.block = TransformerBlock(width, heads=2, causal=True)

    def summary(self, ids: Array, lengths: Array) -> Tensor:
        outputs = self.block(self.positions(self.embedding(ids)))  # padding lies behind: unseen
        return outputs[np.arange(len(ids)), lengths - 1]


class Retriever(SequenceClassifier):
    """One attention layer and nothing else: what the last word finds among the others."""

    def __init__(self, vocab_size: int, width: int, n_classes: int) -> None:
        super().__init__(vocab_size, width, n_classes)
        self.attention = MultiHeadAttention(width, heads=1)

    def summary(self, ids: Array, lengths: Array) -> Tensor:
        hidden = self.embedding(ids)
        asked = hidden[np.arange(len(ids)), lengths - 1].reshape(len(ids), 1, -1)  # (B, 1, C)
        mask = (np.arange(ids.shape[1]) < lengths[:, None])[:, None, None, :]  # (B, 1, 1, T)
        return self.attention(asked, hidden, mask=mask).reshape(len(ids), -1)


class EncoderClassifier(SequenceClassifier):
    """The mean of what an unmasked transformer block makes of the words and their positions."""

    ordered = True

    def __init__(self, vocab_size: int, width: int, n_classes: int) -> None:
        super().__init__(vocab_size, width, n_classes)
        self.positions = SinusoidalPositions(width)
        self.block = TransformerBlock(width, heads=2)

    def summary(self, ids: Array, lengths: Array) -> Tensor:
        hidden = self.positions(self.embedding(ids)) if self.ordered else self.embedding(ids)
        there = np.arange(ids.shape[1]) < lengths[:, None]  # (B, T)
        outputs = self.block(hidden, mask=there[:, None, None, :])
        return (outputs * (there / lengths[:, None])[..., None].astype(np.float32)).sum(axis=1)


class OrderlessEncoder(EncoderClassifier):
    """The same without positions: words in another order give the same mean."""

    ordered = False
