"""The n-gram model as a network: one table of logits per position, summed.

    logits = Σ_j W[j, c_j]            a row of V logits for each of the n - 1 tokens c_j of the context
           = Σ_j onehot(c_j) W[j]     the same as a product, which no one needs to store

For n = 2 the logits are log-counts and training finds the count model. For n > 2 the sum is a smaller family than a
table of V^n entries: (n - 1) V² numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.models.model import Config
from chainrule.models.window.model import WindowModel
from chainrule.nn.init import parameter, zeros
from chainrule.validate import Check


@dataclass(frozen=True)
class NeuralNGramConfig(Config):
    """The size of a neural n-gram.

    >>> import chainrule as cr
    >>> cr.models.NeuralNGramConfig(block_size=3, vocab_size=27).n_params
    2187
    """

    block_size: int = 1
    """Tokens it sees: n - 1 for an n-gram."""
    vocab_size: int = 256
    """Vocabulary size."""

    def __post_init__(self) -> None:
        Check("NeuralNGram", self).at_least(1, "block_size", "vocab_size")


class TableRows(NamedTuple):
    """Rows of the tables, one after the other, of the tokens seen (N, n); 1 where one was seen, else 0 (N, n)."""

    rows: Array
    there: Array | None  # if all were seen


class NeuralNGram(WindowModel):
    """Scores of the next token: the sum of a row for each token seen; what is not there yet adds nothing.

    >>> import chainrule as cr, numpy as np
    >>> model = cr.models.NeuralNGram(cr.models.NeuralNGramConfig(block_size=2, vocab_size=10))
    >>> model(np.array([[1, 2, 3]])).shape
    (1, 3, 10)
    """

    prepared_inputs = TableRows

    def __init__(self, config: NeuralNGramConfig) -> None:
        self.config = config
        # The loss is convex: 0 is as good a start as any, and its first value is exactly ln V.
        self.weight = parameter(zeros, (config.block_size, config.vocab_size, config.vocab_size))

    def windows(self, contexts: Array, count: int) -> TableRows:
        n, V = self.config.block_size, self.config.vocab_size
        there = contexts < V
        rows = np.where(there, contexts, 0) + V * np.arange(n)
        return TableRows(rows, None if there.all() else there.astype(self.weight.dtype))

    def looked_up(self, seen: Array) -> Array:
        there = seen < self.config.vocab_size
        rows: Array = self.weight.array[np.arange(len(seen)), np.where(there, seen, 0)] * there[:, None]
        return rows

    def scores(self, windows: TableRows) -> Tensor:
        """rows (N, n), there (N, n) -> logits (N, V)"""
        n, V = self.config.block_size, self.config.vocab_size
        return ops.embedding_bag(self.weight.reshape(n * V, V), ids=windows.rows, weights=windows.there)
