"""Log-probabilities: how well a model expects a text, token by token, and which of several texts it expects most.

    score(model, ids)[t] = ln P(ids[t + 1] | ids[0 .. t])                nothing comes before the first token

A text longer than the context of a transformer is read as `generate.session` would: when the context is full the newest
half is read again and continues. So the numbers are the same as in generation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from chainrule import ops
from chainrule.errors import ChainruleError, ConfigError
from chainrule.generate.engine import Decoder
from chainrule.generate.sample import Model, encoded
from chainrule.generate.sampling import check_prompt
from chainrule.generate.session import check_fp32, vocab_size
from chainrule.models import LanguageModel, NGram
from chainrule.models.window.model import contexts
from chainrule.text import Tokenizer
from chainrule.text.unicode.utf8 import to_utf8
from chainrule.trace import NotStreamable
from chainrule.types import Ids

LogProbs = npt.NDArray[np.float64]
By = Literal["total", "token", "byte"]
LOGITS = 256  # tokens read at a time: with 50,257 tokens in a vocabulary their logits take 51 MB


def score(model: Model, ids: npt.ArrayLike, *, weights: str = "", cache: str = "fp32") -> LogProbs:
    """ids (n,) -> ln P of each token but the first, given those before it (n - 1,)

    By a forward pass; with `weights` by the decoder that generates, in these formats. `Scorer` packs them once for
    many texts.

    >>> import chainrule as cr
    >>> model = cr.models.NGram.fit([[2, 3, 3, 1]], order=2, vocab_size=4)
    >>> cr.generate.score(model, [2, 3, 1]).round(4).tolist()
    [0.0, -0.6931]
    """
    return Scorer(model, weights, cache).score(ids)


class Scorer:
    """Scores texts one after the other, by the weights as they were when it was made."""

    def __init__(self, model: Model, weights: str = "", cache: str = "fp32") -> None:
        self.model = model
        self.vocab_size = vocab_size(model)
        self.decoder: Decoder | None = None
        if weights and not isinstance(model, NGram):
            with suppress(NotStreamable):
                self.decoder = Decoder(model, weights, cache=cache)
        elif not weights and cache != "fp32":
            raise ConfigError(
                f"score: cache is {cache!r} without weights (must be fp32: a forward pass has no cache)"
            )
        if self.decoder is None:
            check_fp32(model, weights or "fp32", cache)

    def score(self, ids: npt.ArrayLike) -> LogProbs:
        """ids (n,) -> ln P of each token but the first (n - 1,)"""
        model, tokens = self.model, np.array(check_prompt(ids, self.vocab_size))
        n = len(tokens)
        if n == 1:
            return np.empty(0)
        if isinstance(model, NGram):
            seen = contexts(tokens[None, :-1], model.order - 1, model.ends.start)[0]  # (n - 1, order - 1)
            with np.errstate(divide="ignore"):
                return np.log(model.probability(seen, tokens[1:])).astype(np.float64)
        logs = partial(passed, model) if self.decoder is None else partial(decoded, self.decoder)
        parts = [(0, n, 0)] if model.any_length else windows(n, model.context)
        return np.concatenate([logs(tokens[start:end])[new:] for start, end, new in parts]).astype(np.float64)


def decoded(decoder: Decoder, ids: Ids) -> npt.NDArray[Any]:
    """ids (n,) read into an empty cache -> ln P of ids[1:] (n - 1,)

    `LOGITS` tokens are read at a time: the logits of a whole text might not fit in memory.
    """
    decoder.reset()
    found = []
    for start in range(0, len(ids) - 1, LOGITS):
        stop = min(start + LOGITS, len(ids) - 1)
        logits = decoder.prefill(ids[start:stop], [0], every=True)  # (stop - start, V)
        found.append(-ops.cross_entropy(logits, targets=ids[start + 1 : stop + 1], reduction="none"))
    return np.concatenate(found)


def passed(model: LanguageModel, ids: Ids) -> npt.NDArray[np.floating[Any]]:
    """One forward pass over ids (n,) -> ln P of ids[1:] (n - 1,)"""
    with model.answering():
        losses = ops.cross_entropy(model(ids[None, :-1]), targets=ids[None, 1:], reduction="none")
    return -losses.numpy()[0]


def windows(n: int, context: int) -> Iterator[tuple[int, int, int]]:
    """n tokens in windows: each token but the first is predicted once, with at least half a context before it

    Gives (start, end, how many predictions the window before has made already).
    """
    start, new, half = 0, 0, max(1, context // 2)
    while True:
        end = min(n, start + context + 1)  # the last token is predicted and not read
        yield start, end, new
        if end == n:
            return
        start, new = end - half, half - 1


@dataclass(frozen=True)
class Candidate:
    """A text that may follow a prompt, and ln P of it."""

    text: str
    logprobs: tuple[float, ...]
    """Of each of its tokens."""

    @property
    def total(self) -> float:
        """ln P of the whole text; the longer a text, the lower."""
        return sum(self.logprobs)

    def by(self, measure: By) -> float:
        """ln P in total, per token, or per byte of UTF-8, which does not depend on the tokenizer."""
        if measure not in ("total", "token", "byte"):
            raise ConfigError(f"compare: by is {measure!r} (must be total, token or byte)")
        size = len(to_utf8(self.text))
        return self.total / {"total": 1, "token": len(self.logprobs), "byte": size}[measure]


def compare(
    model: Model, tokenizer: Tokenizer, prompt: str, texts: Sequence[str], by: By = "byte"
) -> list[Candidate]:
    """The texts as continuations of the prompt, the likeliest first: an answer to a multiple-choice question

    A text is encoded on its own: begin it with a space if the tokenizer's words do.
    """
    before = encoded(tokenizer, prompt)
    found = []
    for text in texts:
        ids = tokenizer.encode_inside(text)
        if not ids.size:
            raise ConfigError(f"compare: candidate {text!r} (must have at least one token)")
        logs = score(model, np.concatenate([before, ids]))[len(before) - 1 :]
        if np.isnan(logs).any():  # which has no place in an order
            raise ChainruleError("compare: the model's logits are not finite (its training diverged)")
        found.append(Candidate(text, tuple(logs.tolist())))
    return sorted(found, key=lambda candidate: -candidate.by(by))  # of equal ones the first
