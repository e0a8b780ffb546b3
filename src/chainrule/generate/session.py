"""Sessions: texts being decoded, each with its cache.

    texts = session(model, batch=4)
    texts.read([[3, 1], [4, 1, 5]])                     logits (2, V) of what follows each, here of unequal length
    texts.read([[9], [2]])                              logits (2, V) after one more token of each
    texts.keep([1, 1, 0])                               continue three texts: the second twice, and the first
    texts.keep([])                                      forget them all

A session has the weights as they were when it was made, and no dropout. What happens when a text outgrows the model's
context differs: a cache keeps the newest half and reads that again, a window slides, a state and counts have no limit.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from chainrule.autograd import no_grad
from chainrule.errors import ConfigError, Setting, kind_of
from chainrule.generate.engine.assign import assign
from chainrule.generate.engine.decoder import Decoder
from chainrule.generate.engine.weights import STORED
from chainrule.generate.sampling import SAMPLE
from chainrule.models import LanguageModel, NGram
from chainrule.trace import NotStreamable

Logits = npt.NDArray[np.floating[Any]]
Pieces = Sequence[Sequence[int]]


class Session(Protocol):
    """Texts as far as they have been read. The first `read`, also after `keep([])`, says how many there are."""

    def read(self, tokens: Pieces) -> Logits:
        """Read one or more tokens of each of B texts -> logits (B, V) of what follows"""

    def keep(self, rows: Sequence[int]) -> None:
        """Continue these texts, in this order; one that is named twice is copied"""


class DecoderSession:
    """A model with a cache or a state. When its context is full it keeps the newest half and reads that again."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.caches: list[int] = []  # of each text
        self.seen: list[list[int]] = []

    def read(self, tokens: Pieces) -> Logits:
        if not self.caches:
            self._check(len(tokens))
            self.caches, self.seen = list(range(len(tokens))), [[] for _ in tokens]
            self.decoder.reset()
        context = self.decoder.context
        pieces = []
        for i, (cache, piece) in enumerate(zip(self.caches, tokens, strict=True)):
            past = self.decoder.lengths[cache]
            if self.decoder.limited:
                self.seen[i] = [*self.seen[i], *piece][-context:]
            if past + len(piece) > context:
                self.decoder.reset(cache)
                piece = self.seen[i][-max(1, context // 2) :] if past else self.seen[i]
            pieces.append(np.asarray(piece))
        return self.decoder.prefill(pieces, self.caches)

    def keep(self, rows: Sequence[int]) -> None:
        self._check(len(rows))
        self.caches, copies = assign(self.caches, rows, total=len(self.decoder.lengths))
        for source, target in copies:
            self.decoder.copy(source, target)
        self.seen = [list(self.seen[row]) for row in rows]

    def _check(self, texts: int) -> None:
        if texts > len(self.decoder.lengths):
            batch = len(self.decoder.lengths)
            raise ConfigError(f"session: {texts} texts, batch is {batch} (must be at least as many)")


class WindowSession:
    """Any language model: for each token the newest that fit its context are read again."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = copy.deepcopy(model).eval()
        self.seen: list[list[int]] = []

    def read(self, tokens: Pieces) -> Logits:
        before = self.seen or [[] for _ in tokens]
        newest = self.model.context
        self.seen = [[*old, *new][-newest:] for old, new in zip(before, tokens, strict=True)]
        lengths = [len(row) for row in self.seen]
        found: dict[int, Logits] = {}
        for length in sorted(set(lengths)):  # rows of one length are read together
            rows = [i for i, n in enumerate(lengths) if n == length]
            with no_grad():
                logits = self.model(np.array([self.seen[i] for i in rows], np.int64)).numpy()
            found |= dict(zip(rows, logits[:, -1], strict=True))
        return np.stack([found[i] for i in range(len(tokens))])

    def keep(self, rows: Sequence[int]) -> None:
        self.seen = [self.seen[row] for row in rows]


class CountSession:
    """An n-gram model of counts: logits are log-probabilities, -inf for what was never seen and is not smoothed."""

    def __init__(self, model: NGram) -> None:
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


class PrefixCache:
    """One text at a time: what continues the text before it is read from there, so that a conversation is read once.

    `keep([])` ends a text and leaves the cache as it is until the next one begins.
    """

    def __init__(self, texts: Session) -> None:
        self.texts = texts
        self.seen: list[int] = []
        self.begins = True

    def read(self, tokens: Pieces) -> Logits:
        (new,) = map(list, tokens)
        before, begins = self.seen, self.begins
        self.seen, self.begins = [], True  # an interrupted read leaves nothing to continue
        whole = new if begins else before + new
        continues = bool(before) and len(whole) > len(before) and whole[: len(before)] == before
        if not continues:
            self.texts.keep([])
        logits = self.texts.read([whole[len(before) :] if continues else whole])
        self.seen, self.begins = whole, False
        return logits

    def keep(self, rows: Sequence[int]) -> None:
        self.begins = self.begins or not rows


def check_fp32(model: Any, weights: str, cache: str = "fp32") -> None:
    for name, format in (("weights", "fp32" if weights == STORED else weights), ("cache", cache)):
        if format != "fp32":
            raise ConfigError(
                *(SAMPLE, Setting(name), f" is {format}, the model is {kind_of(model)} "),
                "(must be fp32: other formats are for language models with a cache or a state)",
            )


def session(model: Any, weights: str = "fp32", batch: int = 1, cache: str = "fp32") -> Session:
    """A session of at most `batch` texts that has read nothing yet; `weights` and `cache` are formats of
    `engine.weights`.

    A model whose forward pass reads token by token gets a cache or a state; others read a window again.
    """
    vocab_size(model)  # which says what is no language model
    if not isinstance(model, NGram):
        try:
            return DecoderSession(Decoder(model, weights, batch, cache=cache))
        except NotStreamable:
            pass
    check_fp32(model, weights, cache)
    return CountSession(model) if isinstance(model, NGram) else WindowSession(model)


def vocab_size(model: Any) -> int:
    """The width of a language model's logits"""
    if isinstance(model, NGram):
        return model.vocab_size
    if not isinstance(model, LanguageModel):
        raise ConfigError(SAMPLE, f"got {type(model).__name__} (must be a language model)")
    return int(model.config.vocab_size)
