"""The networks of the ladder: their settings, how large each may be, and what a token costs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chainrule.models import LanguageModel, make

WINDOW = 64  # tokens that a model is trained and evaluated on at a time


@dataclass(frozen=True)
class Family:
    """A rung that is trained: how it is made, and which of its sizes is fitted to the number of parameters."""

    title: str
    name: str
    grows: str
    step: int = 1
    fixed: dict[str, Any] = field(default_factory=dict)
    lr: float = 3e-3
    decay: float = 0.1

    def largest(self, params: int, vocab_size: int) -> LanguageModel:
        """With at most `params` parameters; the smallest there is if none has so few."""
        n = 1
        while self.sized(2 * n, vocab_size).count() <= params:
            n *= 2
        for bit in (1 << k for k in reversed(range(n.bit_length() - 1))):
            n += bit if self.sized(n + bit, vocab_size).count() <= params else 0
        return self.sized(n, vocab_size)

    def sized(self, n: int, vocab_size: int) -> LanguageModel:
        """The n-th smallest."""
        return make(self.name, **self.fixed, **{self.grows: n * self.step}, vocab_size=vocab_size)


FAMILIES = (
    Family("neural n-gram", "ngram", "block_size", lr=3e-2, decay=0.0),
    Family("MLP", "mlp", "n_hidden", fixed={"block_size": 8, "n_embd": 24}),
    Family("RNN", "rnn", "n_hidden", fixed={"n_layer": 1, "n_embd": 48, "block_size": WINDOW}, lr=5e-3),
    Family("GRU", "gru", "n_hidden", fixed={"n_layer": 1, "n_embd": 48, "block_size": WINDOW}, lr=1e-2),
    Family("LSTM", "lstm", "n_hidden", fixed={"n_layer": 1, "n_embd": 48, "block_size": WINDOW}, lr=2e-2),
    Family("GPT", "gpt", "n_embd", step=4, fixed={"n_layer": 2, "n_head": 4, "block_size": WINDOW}, lr=1e-2),
)


def multiply_adds(model: LanguageModel) -> float:
    """Of the forward pass, per token: one for each weight of a product, and those between positions.

    A table of embeddings that is only looked up costs nothing; GPT's is also its last product.
    """
    config = model.config
    if hasattr(config, "n_head"):
        table = config.block_size * config.n_embd  # of positions
        pairs = config.n_layer * config.block_size * config.n_embd  # half of all: q with k, weights with v
        return model.count() - table + pairs
    if hasattr(config, "n_embd"):
        return model.count() - config.vocab_size * config.n_embd
    return config.block_size * config.vocab_size
