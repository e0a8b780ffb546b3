"""Readers: what has read some tokens of one text and scores what follows, in the way its family does best.

    reader(model).read(tokens)                          logits (V,) of the token after all tokens read so far

A reader has the weights as they were when it was made, and no dropout.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import singledispatch
from typing import Any, Protocol, TypeVar

import numpy as np

from chainrule.autograd import no_grad
from chainrule.errors import ConfigError
from chainrule.generate.decoder import Decoder
from chainrule.generate.weights import Floats
from chainrule.models import GPT, LanguageModel, Llama, RecurrentLM

M = TypeVar("M", bound=LanguageModel)


class Reader(Protocol):
    """A text as far as it has been read."""

    def read(self, tokens: Sequence[int]) -> Floats:
        """Read one or more tokens -> logits (V,) of what follows them"""


class Cached:
    """A model with a key-value cache. When the context is full it keeps the newest half and reads that again."""

    def __init__(self, model: GPT | Llama, weights: str = "fp32") -> None:
        self.decoder = Decoder(model, weights)
        self.seen: list[int] = []

    def read(self, tokens: Sequence[int]) -> Floats:
        context, past = self.decoder.context, self.decoder.lengths[0]
        self.seen = [*self.seen, *tokens][-context:]
        if past + len(tokens) > context:
            self.decoder.reset()
            tokens = self.seen[-max(1, context // 2) :] if past else self.seen
        return self.decoder.prefill(tokens)[0]


class Carried:
    """A recurrent model: its state holds all it has read, however long ago."""

    def __init__(self, model: RecurrentLM, weights: str = "fp32") -> None:
        self.model = own(model, weights)
        self.state: Any = None

    def read(self, tokens: Sequence[int]) -> Floats:
        with no_grad():
            hidden, self.state = self.model.hidden(np.array([tokens]), self.state)
            logits: Floats = self.model.head(hidden[:, -1]).numpy()  # (1, V)
        return logits[0]


class Window:
    """Any model: for each token the newest `block_size` are read again."""

    def __init__(self, model: LanguageModel, weights: str = "fp32") -> None:
        self.model = own(model, weights)
        self.seen: list[int] = []

    def read(self, tokens: Sequence[int]) -> Floats:
        self.seen = [*self.seen, *tokens][-self.model.config.block_size :]
        with no_grad():
            logits: Floats = self.model(np.array([self.seen])).numpy()  # (1, T, V)
        return logits[0, -1]


def own(model: M, weights: str) -> M:
    """A copy of a model for reading."""
    if weights != "fp32":
        raise ConfigError(
            f"sample: weights is {weights}, the model is a {type(model).__name__} "
            "(must be fp32: other formats are for GPT and Llama)"
        )
    return copy.deepcopy(model).eval()


@singledispatch
def reader(model: Any, weights: str = "fp32") -> Reader:
    """A reader that has read nothing yet; `weights` is a format of `generate.weights`."""
    raise ConfigError(f"sample: got {type(model).__name__} (must be a language model)")


reader.register(LanguageModel, Window)
reader.register(GPT, Cached)
reader.register(Llama, Cached)
reader.register(RecurrentLM, Carried)
