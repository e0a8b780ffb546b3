"""A text as a bag of words reads it: what each word, and each run of words, adds to the score of each label.

logits = Σ_f x_f W_f + b          a term for each feature f of the text: x_f W_f is what it adds
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule import ops
from chainrule.autograd import no_grad
from chainrule.autograd.types import Array
from chainrule.data import NGrams
from chainrule.errors import ConfigError
from chainrule.models import BagOfWords


@dataclass(frozen=True)
class Term:
    """A feature of a text."""

    tokens: tuple[int, ...]
    """The word, or the run of words; of runs that share a bucket the first."""
    count: int
    value: float
    """What it counts in this text, x_f."""
    weights: tuple[float, ...]
    """Its row of W: for each label how much a value of 1 adds."""

    @property
    def adds(self) -> tuple[float, ...]:
        """To the logit of each label."""
        return tuple(self.value * weight for weight in self.weights)


class BagView:
    """The tokens of one text in a bag of words; K labels.

    >>> import chainrule as cr
    >>> model = cr.models.BagOfWords(cr.models.BagOfWordsConfig(ngrams=2, vocab_size=10, buckets=100, classes=3))
    >>> seen = BagView(model, [4, 7, 4])
    >>> [term.tokens for term in seen.terms], seen.by_token.shape, seen.without.shape
    ([(4,), (7,), (4, 7), (7, 4)], (3, 3), (3, 3))
    """

    def __init__(self, model: BagOfWords, tokens: npt.ArrayLike) -> None:
        self.model, self.tokens = model, np.asarray(tokens)
        if not isinstance(model, BagOfWords) or self.tokens.ndim != 1 or not self.tokens.size:
            what = f"{type(model).__name__} and tokens of shape {self.tokens.shape}"
            raise ConfigError(f"bag: got {what} (must be a bag of words and the tokens (T,) of a text)")
        config = model.config
        self._ngrams = NGrams(config.vocab_size, config.ngrams, config.buckets)
        self._runs = self._ngrams.runs(self.tokens)
        ids, self._places, self._counts = np.unique(
            np.concatenate(self._runs), return_inverse=True, return_counts=True
        )
        self._values = model.bag.scale * model.bag.values(ids[None], self._counts[None])[0]  # (F,)
        self._weights = model.bag.weight.array[ids]  # (F, K)

    @cached_property
    def logprobs(self) -> Array:
        """ln P of each label (K,)"""
        return self._said([self.tokens])[0]

    @cached_property
    def without(self) -> Array:
        """ln P of each label (T, K) of the text without each of its tokens."""
        return self._said([np.delete(self.tokens, at) for at in range(len(self.tokens))])

    @property
    def bias(self) -> Array:
        """Of each label (K,): the logits of a text without a known word."""
        return np.asarray(self.model.bias.array)

    @cached_property
    def terms(self) -> list[Term]:
        """Of the features in the order of the text, words before runs; with the bias they sum to the logits."""
        starts = [(n, at) for n, row in enumerate(self._runs, 1) for at in range(len(row))]
        first = dict(zip(reversed(self._places.tolist()), reversed(starts), strict=True))
        return [
            Term(
                tuple(self.tokens[at : at + n].tolist()), int(self._counts[f]), float(self._values[f]),
                tuple(self._weights[f].tolist()),
            )
            for f, (n, at) in sorted(first.items(), key=lambda each: each[1])
        ]  # fmt: skip

    @cached_property
    def by_token(self) -> Array:
        """What each token adds to the logit of each label (T, K): a run is shared alike by its tokens."""
        each = self._values[:, None] * self._weights / self._counts[:, None]  # of one occurrence (F, K)
        found, done = np.zeros((len(self.tokens), each.shape[1])), 0
        for n, row in enumerate(self._runs, 1):
            for at, feature in enumerate(self._places[done : done + len(row)]):
                found[at : at + n] += each[feature] / n
            done += len(row)
        return found

    def _said(self, texts: Sequence[Any]) -> Array:
        """ln P of the labels of some texts."""
        with no_grad():
            return np.asarray(ops.log_softmax(self.model(*self._ngrams.bag(texts)).numpy()))
