"""Readers: what has read some texts and scores what follows each, in the way its family does best.

    texts = reader(model, batch=4)
    texts.read([[3, 1], [4, 1, 5]])                     logits (2, V) of what follows each, here of unequal length
    texts.read([[9], [2]])                              logits (2, V) after one more token of each
    texts.keep([1, 1, 0])                               go on with three texts: the second twice, and the first
    texts.keep([])                                      forget them all

A reader has the weights as they were when it was made, and no dropout. What happens when a text outgrows the model's
context differs: a cache keeps the newest half and reads that again, a window slides, a state and counts have no limit.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import singledispatch
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from chainrule.autograd import no_grad
from chainrule.errors import ConfigError, Setting
from chainrule.generate.decoder import Decoder
from chainrule.generate.slots import kept
from chainrule.models import GPT, LanguageModel, Llama, NGram, RecurrentLM

M = TypeVar("M", bound=LanguageModel)
Logits = npt.NDArray[np.floating[Any]]
Pieces = Sequence[Sequence[int]]


class Reader(Protocol):
    """Texts as far as they have been read. The first `read`, also after `keep([])`, says how many there are."""

    def read(self, tokens: Pieces) -> Logits:
        """Read one or more tokens of each of B texts -> logits (B, V) of what follows"""

    def keep(self, rows: Sequence[int]) -> None:
        """Go on with these texts, in this order; one that is named twice is copied"""


class Cached:
    """A model with a key-value cache. When the context is full it keeps the newest half and reads that again."""

    def __init__(self, model: GPT | Llama, weights: str = "fp32", batch: int = 1) -> None:
        self.decoder = Decoder(model, weights, batch)
        self.slots: list[int] = []  # the cache of each text
        self.seen: list[list[int]] = []

    def read(self, tokens: Pieces) -> Logits:
        if not self.slots:
            self._check(len(tokens))
            self.slots, self.seen = list(range(len(tokens))), [[] for _ in tokens]
            self.decoder.reset()
        context = self.decoder.context
        pieces = []
        for i, (slot, piece) in enumerate(zip(self.slots, tokens, strict=True)):
            past = self.decoder.lengths[slot]
            self.seen[i] = [*self.seen[i], *piece][-context:]
            if past + len(piece) > context:
                self.decoder.reset(slot)
                piece = self.seen[i][-max(1, context // 2) :] if past else self.seen[i]
            pieces.append(np.asarray(piece))
        return self.decoder.prefill(pieces, self.slots)

    def keep(self, rows: Sequence[int]) -> None:
        self._check(len(rows))
        self.slots, copies = kept(self.slots, rows, room=len(self.decoder.lengths))
        for source, target in copies:
            self.decoder.copy(source, target)
        self.seen = [list(self.seen[row]) for row in rows]

    def _check(self, texts: int) -> None:
        if texts > len(self.decoder.lengths):
            raise ConfigError(
                f"reader: {texts} texts, batch is {len(self.decoder.lengths)} (must be at least as many)"
            )


class Carried:
    """A recurrent model: its state holds all it has read, however long ago."""

    def __init__(self, model: RecurrentLM, weights: str = "fp32", batch: int = 1) -> None:
        self.model = own(model, weights)
        self.state: Any = None

    def read(self, tokens: Pieces) -> Logits:
        state = self.model.initial_state(len(tokens)) if self.state is None else self.state
        after = tuple(tuple(part.copy() for part in layer) for layer in state)
        logits = np.empty((len(tokens), self.model.config.vocab_size), state[0][0].dtype)
        for rows, ids in by_length(tokens):
            with no_grad():
                hidden, last = self.model.hidden(ids, picked(state, rows))
                logits[rows] = self.model.head(hidden[:, -1]).numpy()
            for old, new in zip(after, last, strict=True):
                for part, fresh in zip(old, new, strict=True):
                    part[rows] = fresh.numpy()
        self.state = after
        return logits

    def keep(self, rows: Sequence[int]) -> None:
        self.state = picked(self.state, list(rows)) if len(rows) else None


class Window:
    """Any model: for each token the newest `block_size` are read again."""

    def __init__(self, model: LanguageModel, weights: str = "fp32", batch: int = 1) -> None:
        self.model = own(model, weights)
        self.seen: list[list[int]] = []

    def read(self, tokens: Pieces) -> Logits:
        before = self.seen or [[] for _ in tokens]
        newest = self.model.config.block_size
        self.seen = [[*old, *new][-newest:] for old, new in zip(before, tokens, strict=True)]
        found: dict[int, Logits] = {}
        for rows, ids in by_length(self.seen):
            with no_grad():
                scores = self.model(ids).numpy()[:, -1]
            found |= dict(zip(rows, scores, strict=True))
        return np.stack([found[i] for i in range(len(tokens))])

    def keep(self, rows: Sequence[int]) -> None:
        self.seen = [self.seen[row] for row in rows]


class Counted:
    """An n-gram model of counts: logits are log-probabilities, -inf for what was never seen and is not smoothed."""

    def __init__(self, model: NGram, weights: str = "fp32", batch: int = 1) -> None:
        check_fp32(model, weights)
        self.model = model
        self.seen: list[list[int]] = []

    def read(self, tokens: Pieces) -> Logits:
        n = self.model.order - 1
        before = self.seen or [[self.model.ends.start] * n for _ in tokens]
        self.seen = [[*old, *new][len(old) + len(new) - n :] for old, new in zip(before, tokens, strict=True)]
        with np.errstate(divide="ignore"):
            return np.log(self.model.probabilities(np.array(self.seen, np.int64).reshape(-1, n)))

    def keep(self, rows: Sequence[int]) -> None:
        self.seen = [self.seen[row] for row in rows]


def by_length(pieces: Pieces) -> Iterator[tuple[list[int], npt.NDArray[np.int64]]]:
    """The rows of each length, and their tokens (rows, length)"""
    lengths = [len(piece) for piece in pieces]
    for length in sorted(set(lengths)):
        rows = [i for i, n in enumerate(lengths) if n == length]
        yield rows, np.array([pieces[i] for i in rows], np.int64)


def picked(state: Any, rows: list[int]) -> Any:
    """Some rows of the state of a recurrent model"""
    return tuple(tuple(part[rows] for part in layer) for layer in state)


def check_fp32(model: Any, weights: str) -> None:
    if weights != "fp32":
        raise ConfigError(
            *("sample: ", Setting("weights"), f" is {weights}, the model is a {type(model).__name__} "),
            "(must be fp32: other formats are for GPT and Llama)",
        )


def own(model: M, weights: str) -> M:
    """A copy of a model for reading."""
    check_fp32(model, weights)
    return copy.deepcopy(model).eval()


@singledispatch
def reader(model: Any, weights: str = "fp32", batch: int = 1) -> Reader:
    """A reader that has read nothing yet, of at most `batch` texts; `weights` is a format of `generate.weights`."""
    raise no_language_model(model)


reader.register(LanguageModel, Window)
reader.register(GPT, Cached)
reader.register(Llama, Cached)
reader.register(RecurrentLM, Carried)
reader.register(NGram, Counted)


def vocab_size(model: Any) -> int:
    """The width of a language model's logits"""
    if isinstance(model, NGram):
        return model.vocab_size
    if not isinstance(model, LanguageModel):
        raise no_language_model(model)
    return int(model.config.vocab_size)


def no_language_model(model: Any) -> ConfigError:
    return ConfigError(f"sample: got {type(model).__name__} (must be a language model)")
