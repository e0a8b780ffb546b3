"""The multilayer perceptron of Bengio et al. (2003): a learned vector per token, concatenated, through hidden layers.

hidden = [C[c_1] … C[c_n]]                    the vectors of the n tokens seen, side by side
hidden = tanh(norm(hidden Wᵀ + b))            n_layer times; batch norm, if any, replaces the bias
logits = hidden Wᵀ + b
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, cast

import numpy as np

from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.models.model import Config
from chainrule.models.window.model import WindowModel
from chainrule.nn import MLP, BatchNorm, Embedding
from chainrule.nn.init import normal
from chainrule.validate import Check


@dataclass(frozen=True)
class MLPConfig(Config):
    """The size of an MLP language model.

    >>> import chainrule as cr
    >>> cr.models.MLPConfig(block_size=3, n_embd=10, n_hidden=200, vocab_size=27, batch_norm=False).n_params
    11907
    """

    block_size: int = 8
    """Tokens it sees."""
    n_embd: int = 24
    """Numbers per token."""
    n_hidden: int = 200
    """Width of a hidden layer."""
    n_layer: int = 1
    """Hidden layers."""
    vocab_size: int = 256
    """Vocabulary size."""
    batch_norm: bool = True
    """Normalize the input of each tanh over the batch."""

    def __post_init__(self) -> None:
        Check("MLP", self).at_least(1, "block_size", "n_embd", "n_hidden", "n_layer", "vocab_size")

    @property
    def sizes(self) -> list[int]:
        """Of the layers: concatenated vectors, hidden layers, logits."""
        return [self.block_size * self.n_embd, *[self.n_hidden] * self.n_layer, self.vocab_size]


class CountedWindows(NamedTuple):
    """Tokens seen (N, n), and how many rows of them are the batch (1,)."""

    contexts: Array
    batch_rows: Array


class MLPLM(WindowModel):
    """Scores of the next token from the newest `block_size`.

    >>> import chainrule as cr, numpy as np
    >>> config = cr.models.MLPConfig(block_size=3, n_embd=4, n_hidden=8, vocab_size=10)
    >>> cr.models.MLPLM(config)(np.array([[1, 2, 3, 4, 5]])).shape
    (1, 5, 10)
    """

    prepared_inputs = CountedWindows

    def __init__(self, config: MLPConfig) -> None:
        self.config = config
        self.embedding = Embedding(config.vocab_size + 1, config.n_embd)  # the last is "nothing yet"
        norm = "batch" if config.batch_norm else None
        # Small last weights: the first logits are near 0 and the first loss near ln V.
        self.mlp = MLP(config.sizes, "tanh", norm=norm, output_init=partial(normal, std=0.01))

    def windows(self, contexts: Array, count: int) -> CountedWindows:
        return CountedWindows(contexts, np.array([count]))

    def looked_up(self, seen: Array) -> Array:
        rows: Array = self.embedding.weight.array[seen]
        return rows

    def scores(self, windows: CountedWindows) -> Tensor:
        """contexts (N, n), batch_rows (1,) -> logits (N, V)"""
        contexts, rows = windows
        vectors = self.embedding(contexts)  # (N, n, k)
        return self.mlp(vectors.reshape(len(contexts), self.config.sizes[0]), rows=rows)

    def folded(self) -> MLPLM:
        """The same model in evaluation mode without batch norm, melted into the linear layers before it."""
        if not self.config.batch_norm:
            raise ConfigError("MLP: batch_norm is False (there is nothing to fold)")
        plain = MLPLM(replace(self.config, batch_norm=False)).to(self.embedding.weight.dtype)
        plain.embedding.load(self.embedding.state())
        for twin, layer, norm in zip(plain.mlp.layers, self.mlp.layers, self.mlp.norms, strict=False):
            twin.load(cast(BatchNorm, norm).fold_into(layer).state())
        plain.mlp.layers[-1].load(self.mlp.layers[-1].state())
        return plain.eval()
