"""word2vec: a vector for each word, learned from the company it keeps.

    skip-gram   P(o | c) = softmax_o(W' w_c)              a word predicts the words around it
    CBOW        P(c | o_1 .. o_m) = softmax_c(W' h)       the words around it predict a word, h = mean of w_o

W holds words as inputs, W' words as targets; what is kept in the end is W. The full softmax costs V dot products per
pair. Negative sampling asks only whether a pair is real, against K words drawn at random: K + 1 dot products. This file
is the mathematics, on ids; `chainrule.train.WordVectorStep` learns from texts of millions of words.
(Mikolov et al. 2013); derivation of the sampled loss: docs/derivations/pairs.md
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.calls import Fields
from chainrule.errors import DataError
from chainrule.models.model import Model
from chainrule.nn import Embedding
from chainrule.nn.init import uniform, zeros
from chainrule.validate import Check

NOTHING = -1  # in a text: a boundary that no window reaches over; in a window: no word


@dataclass(frozen=True)
class Word2VecConfig(Fields):
    """The size of a word2vec model.

    >>> import chainrule as cr
    >>> cr.models.Word2VecConfig(vocab_size=20_000, dim=100).n_params
    4000000
    """

    vocab_size: int = 256
    """Different words."""
    dim: int = 100
    """Length of a word's vector."""
    window: int = 5
    """Farthest neighbor, in words to either side."""

    def __post_init__(self) -> None:
        Check("word2vec", self).at_least(1, "vocab_size", "dim", "window")

    @property
    def n_params(self) -> int:
        """Two tables of V rows."""
        return 2 * self.vocab_size * self.dim


class Word2Vec(Model):
    """Two tables of vectors; `SkipGram` and `CBOW` say what an input is."""

    default_lr: ClassVar[float]

    def __init__(self, config: Word2VecConfig) -> None:
        super().__init__(config)
        V, C = config.vocab_size, config.dim
        self.input = Embedding(V, C, init=partial(uniform, bound=0.5 / C))
        self.output = Embedding(V, C, init=zeros)  # at first nothing is more likely than anything else

    def hidden(self, inputs: Array) -> Tensor:
        """inputs (B, ...) -> (B, C)"""
        raise NotImplementedError

    def examples(self, ids: npt.ArrayLike) -> tuple[Array, Array]:
        """A text ids (n,) -> all (inputs, targets) that windows of full width give."""
        raise NotImplementedError

    def forward(self, inputs: Array) -> Tensor:
        """inputs (B, ...) -> logits (B, V): the score of every word as the target"""
        return ops.linear(self.hidden(inputs), self.output.weight)

    def loss(self, inputs: Array, targets: Array) -> Tensor:
        """inputs (B, ...), targets (B,) -> -log P(target | input) under the full softmax, mean in nats"""
        return ops.cross_entropy(self(inputs), targets=targets)

    def sampled_loss(self, inputs: Array, targets: Array, negatives: Array) -> Tensor:
        """inputs (B, ...), targets (B,), negatives (B, K) -> the loss of negative sampling, mean over B"""
        return ops.negative_sampling(self.hidden(inputs), self.output(targets), self.output(negatives))


class SkipGram(Word2Vec):
    """A word predicts each word around it.

    >>> import chainrule as cr
    >>> model = cr.models.SkipGram(cr.models.Word2VecConfig(vocab_size=3, dim=2, window=1))
    >>> centers, contexts = model.examples([0, 1, 2])
    >>> list(zip(centers.tolist(), contexts.tolist()))
    [(0, 1), (1, 0), (1, 2), (2, 1)]
    """

    default_lr = 0.025

    def hidden(self, inputs: Array) -> Tensor:
        """inputs (B,) -> their vectors (B, C)"""
        return self.input(inputs)

    def examples(self, ids: npt.ArrayLike) -> tuple[Array, Array]:
        """ids (n,) -> centers (B,), contexts (B,)"""
        text, around = windows(ids, self.config.window)
        position, place = np.nonzero(around != NOTHING)
        return text[position], around[position, place]


class CBOW(Word2Vec):
    """The words around it predict a word; their vectors are averaged, so their order is lost."""

    default_lr = 0.075  # each word of a window gets a fraction of the gradient of the mean only

    def hidden(self, inputs: Array) -> Tensor:
        """inputs (B, M), NOTHING where there is no word -> mean of the vectors of the others (B, C)"""
        there = (inputs != NOTHING)[..., None]  # (B, M, 1)
        fraction = there / np.maximum(there.sum(axis=1, keepdims=True), 1)
        vectors = self.input(np.maximum(inputs, 0))  # (B, M, C)
        return ops.sum(vectors * fraction.astype(vectors.dtype), axis=1)

    def examples(self, ids: npt.ArrayLike) -> tuple[Array, Array]:
        """ids (n,) -> contexts (B, 2 window), centers (B,)"""
        text, around = windows(ids, self.config.window)
        useful = (around != NOTHING).any(axis=1)
        return around[useful], text[useful]


def windows(ids: npt.ArrayLike, window: int) -> tuple[Array, Array]:
    """The words around each word of a text: ids (n,) -> words (B,), around (B, 2 window).

    NOTHING in the text is a boundary: what lies beyond it is NOTHING too, as it is beyond the ends of the text.
    """
    text = np.asarray(ids)
    if text.ndim != 1 or (text.size and text.dtype.kind not in "iu"):
        raise DataError(f"windows: got {text.dtype} {text.shape} (must be integers of shape (n,))")
    part = np.cumsum(text == NOTHING)  # which stretch between boundaries a position lies in
    offsets = [*range(-window, 0), *range(1, window + 1)]
    places = np.arange(text.size)[:, None] + offsets  # (n, 2 window)
    near = places.clip(0, max(text.size - 1, 0))
    if not text.size:
        return text.astype(np.int64), places
    seen = (near == places) & (part[near] == part[:, None])
    around = np.where(seen, text[near], NOTHING)
    words = text != NOTHING
    return text[words], around[words]
