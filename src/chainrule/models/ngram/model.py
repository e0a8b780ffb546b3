"""n-gram models: the next token depends on the n - 1 before it, and its probability is counted.

P(w | c) = count(c, w) / count(c)                    maximum likelihood; other rules in smoothing.py
nll = - mean of ln P(w | c) over all transitions     perplexity e^nll, bits nll / ln 2
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from chainrule.errors import ConfigError, DataError
from chainrule.models.ngram.grams import Level, Terminals, count, find, listed
from chainrule.models.ngram.smoothing import Additive, Smoothing, Weights
from chainrule.random import generator
from chainrule.types import Array

ONE_TERMINAL = Terminals(0, 0)


class NGram:
    """A count model of documents, each a row of token ids without terminals; `fit` makes it.

    >>> from chainrule.models.ngram import NGram
    >>> model = NGram.fit([[2, 3, 3, 1]], order=2, vocab_size=4)  # .emma. with tokens . a e m
    >>> model.probabilities([[3]]).tolist()
    [[0.0, 0.5, 0.0, 0.5]]
    >>> round(model.nll([[2, 3, 3, 1]]), 6)
    0.277259
    """

    def __init__(self, levels: list[Level], vocab_size: int, ends: Terminals, smoothing: Smoothing) -> None:
        self.levels = levels
        self.vocab_size = vocab_size
        self.ends = ends
        self.smoothing = smoothing
        # A start token of its own begins documents and never follows anything.
        self.follows = np.ones(vocab_size, bool)
        self.follows[ends.start : ends.start + 1] = ends.start == ends.end
        self.weights = smoothing.weights(levels, int(self.follows.sum()), ends.start)

    @classmethod
    def fit(
        cls,
        documents: Sequence[npt.ArrayLike],
        *,
        order: int,
        vocab_size: int,
        ends: Terminals = ONE_TERMINAL,
        smoothing: Smoothing | None = None,
    ) -> NGram:
        """Count the grams of the documents; without `smoothing`, maximum likelihood."""
        if order < 1:
            raise ConfigError(f"n-gram: order is {order} (must be at least 1)")
        for name, token, most in (("start", ends.start, vocab_size), ("end", ends.end or 0, vocab_size - 1)):
            if not 0 <= token <= most:
                raise ConfigError(f"n-gram: {name} token {token} (must be from 0 to {most})")
        levels = count(documents, order, vocab_size, ends)
        return cls(levels, vocab_size, ends, smoothing or Additive(0.0))

    def smoothed(self, smoothing: Smoothing) -> NGram:
        """The same counts, another rule."""
        return NGram(self.levels, self.vocab_size, self.ends, smoothing)

    @property
    def order(self) -> int:
        return len(self.levels)

    @property
    def stored(self) -> int:
        """Different grams of the longest kind: what is kept of the V^n entries a full table would have."""
        return len(self.levels[-1].grams)

    @property
    def table_size(self) -> int:
        """V^n, the entries of a full table."""
        return self.vocab_size**self.order

    def adjacency(self) -> Array:
        """counts (V, V): how often token i is followed by token j; the matrix of the bigram graph"""
        if self.order < 2:
            raise ConfigError(f"n-gram: order is {self.order} (must be at least 2 to have pairs)")
        contexts, tokens, counts = listed(self.levels[:2])
        matrix = np.zeros((self.vocab_size + 1, self.vocab_size), np.int64)  # the last row is "nothing yet"
        matrix[contexts[:, 0], tokens] = counts
        return matrix[: self.vocab_size]

    # -- probabilities --------------------------------------------------------------------------------------

    def probability(self, contexts: npt.ArrayLike, tokens: npt.ArrayLike) -> Array:
        """contexts (m, n - 1), tokens (m,) -> P(token | context) (m,)

        A context never seen is replaced by its newest tokens; if a rule has no shorter contexts, every token
        is alike, which is also the limit of additive smoothing for s towards 0.
        """
        contexts, tokens = np.asarray(contexts, np.int64), np.asarray(tokens, np.int64)
        if contexts.shape != (len(tokens), self.order - 1):
            raise DataError(
                f"n-gram: contexts {contexts.shape}, tokens {tokens.shape} "
                f"(must be (m, {self.order - 1}) and (m,))"
            )
        p = self.follows[tokens] / self.follows.sum()
        numbers = np.zeros(len(tokens), np.int64)
        for length, (level, weights) in enumerate(zip(self.levels, self.weights, strict=True)):
            if length:
                keys = numbers * level.width + contexts[:, -length]
                numbers = np.where(numbers < 0, -1, find(level.contexts, keys))
            if weights is not None:
                p = _one_level(level, weights, numbers, tokens, p)
        return p

    def probabilities(self, contexts: npt.ArrayLike) -> Array:
        """contexts (m, n - 1) -> the whole distribution after each (m, V)"""
        contexts = np.asarray(contexts, np.int64)
        tokens = np.tile(np.arange(self.vocab_size), len(contexts))
        return self.probability(np.repeat(contexts, self.vocab_size, axis=0), tokens).reshape(
            len(contexts), -1
        )

    # -- how good it is -------------------------------------------------------------------------------------

    def log_likelihood(self, documents: Sequence[npt.ArrayLike] | None = None) -> tuple[float, int]:
        """(sum of ln P over all transitions, how many there are); without documents, of those it counted."""
        levels = (
            self.levels if documents is None else count(documents, self.order, self.vocab_size, self.ends)
        )
        contexts, tokens, counts = listed(levels)  # each different gram is looked up once
        with np.errstate(divide="ignore"):  # impossible is ln 0 = -inf
            logs = np.log(self.probability(contexts, tokens))
        return float(counts @ logs), int(counts.sum())

    def nll(self, documents: Sequence[npt.ArrayLike] | None = None) -> float:
        """Mean negative log-likelihood in nats per transition; infinite if a gram is impossible."""
        total, transitions = self.log_likelihood(documents)
        return (0.0 - total) / transitions  # 0 rather than -0 when all is certain

    def perplexity(self, documents: Sequence[npt.ArrayLike] | None = None) -> float:
        """e^nll: as unsure as a guess among so many tokens."""
        return math.exp(self.nll(documents))

    def learned(self) -> bool:
        """Is it better than a guess: some token after each context likelier than 1/V, the nll below ln V?"""
        contexts, tokens, _ = listed(self.levels)
        best = np.zeros(len(self.levels[-1].contexts))
        np.maximum.at(best, self.levels[-1].owners, self.probability(contexts, tokens))
        return bool((best > 1 / self.vocab_size).all()) and self.nll() < math.log(self.vocab_size)

    # -- writing --------------------------------------------------------------------------------------------

    def sample(self, n: int = 1, *, seed: int = 0, limit: int = 1000) -> list[Array]:
        """n new documents, each up to its end token or `limit` tokens; draw t of document i is fixed by the seed."""
        if n < 1 or limit < 1:
            raise ConfigError(f"n-gram: {n} samples of at most {limit} tokens (must be at least 1 each)")
        contexts = np.full((n, self.order - 1), self.ends.start)
        written = np.zeros((n, limit), np.int32)
        lengths = np.full(n, limit)
        active = np.arange(n)
        for t in range(limit):
            drawn = generator("n-gram sample", t, seed=seed).random(n)[active]
            cumulative = np.cumsum(self.probabilities(contexts[active]), axis=1)
            tokens = (cumulative <= (drawn * cumulative[:, -1])[:, None]).sum(axis=1)
            tokens = tokens.clip(max=self.vocab_size - 1)
            written[active, t] = tokens
            lengths[active[tokens == self.ends.end]] = t
            contexts[active] = np.column_stack([contexts[active], tokens])[:, 1:]
            active = active[tokens != self.ends.end]
            if not len(active):
                break
        return [row[:length] for row, length in zip(written, lengths, strict=True)]


def _one_level(level: Level, weights: Weights, numbers: Array, tokens: Array, p: Array) -> Array:
    """P(token | context) from the probabilities `p` after the shorter context."""
    grams = np.where(numbers < 0, -1, find(level.grams, numbers * level.width + tokens))
    return np.where(
        grams >= 0, weights.probabilities[grams], np.where(numbers >= 0, weights.left[numbers] * p, p)
    )
