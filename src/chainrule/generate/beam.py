"""Beam search: the likeliest texts rather than a drawn one. Several unfinished texts are kept at each step.

    score(Y) = ln P(Y) / lp(Y),   lp(Y) = ((5 + |Y|) / 6)^α          (Wu et al. 2016; α = 0.6 in Vaswani et al. 2017)

At each step every kept text is followed by every token. Of these, those among the best `width` that end in a stop
token are finished, and the best `width` of the others continue. A search ends when `width` texts are finished and none
that continues has a better score as it is now. With width 1 that is greedy. |Y| counts the stop token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from chainrule import ops
from chainrule.errors import ChainruleError, ConfigError, Setting
from chainrule.generate.healing import Prompt
from chainrule.generate.processors import best
from chainrule.generate.sample import Model
from chainrule.generate.sampling import check_prompt
from chainrule.generate.session import Session, session, vocab_size
from chainrule.validate import Check

WIDEST = 1000  # each text kept has a cache of its own


@dataclass(frozen=True)
class Beam:
    """How to search."""

    width: int = 4
    """Texts kept at each step, at most 1000."""
    n_best: int = 1
    """Texts to return, at most `width`."""
    length_penalty: float = 0.6
    """α: 0 compares by log-probability, which favors short texts; the higher, the longer."""
    max_new_tokens: int = 100
    """Tokens to generate at most."""
    stop_tokens: tuple[int, ...] = ()
    """A text is finished by any of these, which is not part of it."""

    def __post_init__(self) -> None:
        check = Check("beam", self)
        check.whole(1, WIDEST, "width")
        check.whole(1, self.width, "n_best")
        check.whole(0, None, "max_new_tokens")
        check.finite("length_penalty")

    @property
    def candidates(self) -> int:
        """So many that enough continue even if every text can be finished by every stop token."""
        return self.width * (1 + len(self.stop_tokens))

    def score(self, logprob: float, length: int) -> float:
        return float(logprob / ((5 + length) / 6) ** self.length_penalty)


Follow: TypeAlias = tuple[list[int], list[float]]  # tokens, the likeliest first, and ln P of each


@dataclass(frozen=True)
class Hypothesis:
    """A text that was found."""

    tokens: tuple[int, ...]
    logprob: float
    """ln P of the tokens, and of the stop token if there was one."""
    score: float
    finished: bool
    """False if the limit of tokens came first."""


@dataclass
class Search:
    """The texts that follow one beginning."""

    live: list[tuple[tuple[int, ...], float]] = field(default_factory=lambda: [((), 0.0)])
    """Unfinished texts: tokens and ln P, the likeliest first. There is a row of the session for each."""
    found: list[Hypothesis] = field(default_factory=list)

    def step(self, likeliest: Sequence[Follow], beam: Beam) -> tuple[list[int], list[int]]:
        """The likeliest that follow each live text -> which row each text that continues is from, and its new token"""
        sums = [
            (before + logprob, row, token)
            for row, (_, before) in enumerate(self.live)
            for token, logprob in zip(*likeliest[row], strict=True)
        ]
        sums.sort(key=lambda option: -option[0])  # of equal ones the first stays first
        rows: list[int] = []
        going: list[tuple[tuple[int, ...], float]] = []
        for rank, (logprob, row, token) in enumerate(sums[: beam.candidates]):
            text = self.live[row][0]
            if logprob == -np.inf or len(going) == beam.width:
                break
            if token not in beam.stop_tokens:
                rows.append(row)
                going.append(((*text, token), logprob))
            elif rank < beam.width:
                self.found.append(Hypothesis(text, logprob, beam.score(logprob, len(text) + 1), True))
        self.found = ranked(self.found)[: beam.width]
        self.live = [] if self._done(going, beam) else going
        return rows[: len(self.live)], [text[-1] for text, _ in self.live]

    def _done(self, going: list[tuple[tuple[int, ...], float]], beam: Beam) -> bool:
        if not going or len(self.found) < beam.width:
            return not going
        text, logprob = going[0]
        return self.found[-1].score >= beam.score(logprob, len(text))

    def finish(self, beam: Beam) -> list[Hypothesis]:
        """The best hypotheses, finished or cut off by the token limit"""
        cut = [Hypothesis(text, p, beam.score(p, len(text)), False) for text, p in self.live]
        return ranked([*self.found, *cut])[: beam.n_best]


def ranked(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    return sorted(hypotheses, key=lambda h: -h.score)


def search(
    texts: Session,
    starts: Sequence[Sequence[int] | Prompt],
    beam: Beam,
    *,
    watch: Callable[[Sequence[Search]], object] = lambda searches: None,
) -> list[list[Hypothesis]]:
    """starts: the first tokens of B texts -> for each the best texts that follow, the best first

    `texts` can hold B width texts and has read nothing yet; that of an encoder-decoder has read B sources.
    A `Prompt` begins with the space that was taken back. `watch` is called after each step.
    """
    begun = [Prompt.of(start) for start in starts]
    searches = [Search() for _ in starts]
    pieces: list[Sequence[int]] = [prompt.ids for prompt in begun]
    for _ in range(beam.max_new_tokens):
        logits = texts.read(pieces)
        logprobs = ops.log_softmax(logits)
        if np.isnan(logprobs[:, 0]).any():  # one that is NaN makes its whole row so
            raise ChainruleError("beam: the model's logits are not finite (its training diverged)")
        written = (
            (prompt, text) for prompt, one in zip(begun, searches, strict=True) for text, _ in one.live
        )
        for row, (prompt, text) in enumerate(written):
            logprobs[row] = prompt.limit(logprobs[row], text)
        ids = best(logprobs, beam.candidates)  # (rows, n)
        likeliest = list(zip(ids.tolist(), np.take_along_axis(logprobs, ids, axis=1).tolist(), strict=True))
        rows: list[int] = []
        pieces, first = [], 0
        for one in searches:
            count = len(one.live)
            if count:
                parents, tokens = one.step(likeliest[first : first + count], beam)
                rows += [first + parent for parent in parents]
                pieces += [[token] for token in tokens]
            first += count
        texts.keep(rows)
        watch(searches)
        if not rows:
            break
    return [one.finish(beam) for one in searches]


def beam_search(
    model: Model,
    ids: npt.ArrayLike | Prompt,
    beam: Beam | None = None,
    *,
    weights: str = "fp32",
    cache: str = "fp32",
    watch: Callable[[Sequence[Search]], object] = lambda searches: None,
    **options: Any,
) -> list[Hypothesis]:
    """ids (t,) -> the texts that a language model finds likeliest after them; the options are the fields of `Beam`

    `watch` is called after each step with the search, whose `live` texts are those that were kept.

    >>> import chainrule as cr
    >>> model = cr.models.NGram.fit([[2, 3, 3, 1]], order=2, vocab_size=4)
    >>> [found.tokens for found in cr.generate.beam_search(model, [2], n_best=2, stop_tokens=(0,))]
    [(3, 1), (3, 3, 1)]
    """
    beam = beam or Beam(**options)
    V = vocab_size(model)
    prompt = Prompt.of(ids)
    check_prompt(prompt.ids, V)
    for token in beam.stop_tokens:
        if not 0 <= token < V:
            rule = f"must be from 0 to {V - 1}"
            raise ConfigError("beam: ", Setting("stop_tokens"), f" has token {token} ({rule})")
    texts = session(model, weights, beam.width, cache)
    (found,) = search(texts, [prompt], beam, watch=watch)
    return found
