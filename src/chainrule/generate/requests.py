"""Requests: prompts to continue, each with its own options and seed, in one loop with others.

The draw at position n of a request is a pure function of (its seed, n), and a session scores a text alike whether it is
alone or beside others: so a request gives the same tokens in any company.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from chainrule import ops
from chainrule.generate.healing import Prompt
from chainrule.generate.processors import Logits, best, choose
from chainrule.generate.sampling import Sampling, check_prompt
from chainrule.generate.session import Session
from chainrule.generate.stopping import StopText
from chainrule.random import generator
from chainrule.text import Tokenizer

Finish = Literal["length", "stop"]


class TokenScore(NamedTuple):
    """A token, ln P of it as the model has it, and the likeliest tokens in its place with theirs, the likeliest first.

    A token that is among the likeliest has there the very same number.
    """

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


def token_score(logits: Logits, token: int, top: int = 0) -> TokenScore:
    """logits (V,) before any option -> the score of a token beside the `top` likeliest"""
    logs = ops.log_softmax(logits)
    likeliest = best(logs, top).tolist() if top else []
    return TokenScore(token, float(logs[token]), tuple((id, float(logs[id])) for id in likeliest))


class Constraint(Protocol):
    """What a text may be, token by token."""

    def limit(self, scores: Logits) -> Logits:
        """scores (V,) -> -inf for tokens that cannot follow"""

    def push(self, token: int) -> None:
        """This token follows."""

    @property
    def complete(self) -> bool:
        """Nothing more can follow."""


class Request:
    """A prompt, what has been written after it, and why it ended.

    `prompt` are ids, or a `Prompt` whose last space is healed. With a tokenizer there is text too, and stop strings
    count. With `scored` it keeps log-probabilities, beside those of the `top` likeliest tokens; with `show_special`
    special tokens are part of the text; a `constraint` says which tokens may follow.
    """

    def __init__(
        self,
        prompt: Any,
        sampling: Sampling,
        vocab_size: int,
        tokenizer: Tokenizer | None = None,
        *,
        scored: bool = False,
        top: int = 0,
        show_special: bool = False,
        constraint: Constraint | None = None,
    ) -> None:
        sampling.check(vocab_size)
        self._begun = Prompt.of(prompt)
        self.prompt = check_prompt(self._begun.ids, vocab_size)
        self.sampling = sampling
        self.tokens: list[int] = []
        """Written so far. A stop token is not among them; those of a stop string are."""
        self.scores: list[TokenScore] | None = [] if scored else None
        """Of each token, before any option."""
        self._top = top
        self._constraint = constraint
        self.text = ""
        """Of the tokens, as far as it is certain."""
        self.piece = ""
        """What the newest token has added to the text."""
        self.finish: Finish | None = "length" if sampling.max_new_tokens == 0 else None
        """Why no token follows, if none does."""
        self._stream = None
        if tokenizer is not None:
            typed = self._begun.typed
            self._stream = StopText(tokenizer, sampling.stop, self.prompt, special=show_special, typed=typed)

    @property
    def logprobs(self) -> list[float] | None:
        """ln P of each token as the model has it, before any option; None unless it is scored."""
        return None if self.scores is None else [score.logprob for score in self.scores]

    def advance(self, logits: Logits) -> None:
        """logits (V,) of what follows -> one more token, or the end"""
        allowed = self._constraint.limit(logits) if self._constraint else logits
        token = self.draw(allowed, self.tokens)
        self.piece = ""
        if token in self.sampling.stop_tokens:
            self._end("stop")
            return
        self.tokens.append(token)
        if self.scores is not None:
            self.scores.append(token_score(logits, token, self._top))
        if self._constraint:
            self._constraint.push(token)
        if self._stream:
            self.piece = self._stream.push(token)
            self.text += self.piece
        if (self._stream and self._stream.stopped) or (self._constraint and self._constraint.complete):
            self._end("stop")
        elif len(self.tokens) >= self.sampling.max_new_tokens:
            self._end("length")

    def draw(self, logits: Logits, written: list[int]) -> int:
        """logits (V,) of what follows `written` -> the token at this position, which depends on nothing else"""
        rng = generator("sample", len(written), seed=self.sampling.seed)
        return choose(self._begun.limit(logits, written), rng, self.sampling, self.prompt, written)

    def _end(self, why: Finish) -> None:
        self.finish = why
        if self._stream:
            rest = self._stream.close()
            self.piece, self.text = self.piece + rest, self.text + rest


def run(texts: Session, requests: Sequence[Request]) -> Iterator[Request]:
    """Write all of them to their ends, side by side; each comes out whenever it has advanced.

    `texts` has read nothing yet, or for an encoder-decoder the sources of these requests.
    """
    active = [request for request in requests if not request.finish]
    pieces: list[Sequence[int]] = [request.prompt for request in active]
    while active:
        for request, logits in zip(active, texts.read(pieces), strict=True):
            request.advance(logits)
            yield request
        rows = [i for i, request in enumerate(active) if not request.finish]
        if len(rows) < len(active):
            texts.keep(rows)
        active = [active[i] for i in rows]
        pieces = [request.tokens[-1:] for request in active]
