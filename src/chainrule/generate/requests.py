"""Requests: prompts to continue, each with its own options and seed, in one loop with others.

The draw at position n of a request is a pure function of (its seed, n), and a session scores a text alike whether it is
alone or beside others: so a request gives the same tokens in any company.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from chainrule import ops
from chainrule.generate.healing import Prompt
from chainrule.generate.processors import Logits, choose
from chainrule.generate.sampling import Sampling, check_prompt
from chainrule.generate.session import Session
from chainrule.generate.stopping import StopText
from chainrule.random import generator
from chainrule.text import Tokenizer

Finish = Literal["length", "stop"]


class Request:
    """A prompt, what has been written after it, and why it ended.

    `prompt` are ids, or a `Prompt` whose last space is healed. With a tokenizer there is text too, and stop strings
    count. With `scored` it keeps log-probabilities, with `show_special` special tokens are part of the text.
    """

    def __init__(
        self,
        prompt: Any,
        sampling: Sampling,
        vocab_size: int,
        tokenizer: Tokenizer | None = None,
        *,
        scored: bool = False,
        show_special: bool = False,
    ) -> None:
        sampling.check(vocab_size)
        self._begun = Prompt.of(prompt)
        self.prompt = check_prompt(self._begun.ids, vocab_size)
        self.sampling = sampling
        self.tokens: list[int] = []
        """Written so far. A stop token is not among them; those of a stop string are."""
        self.logprobs: list[float] | None = [] if scored else None
        """ln P of each token as the model has it, before any option."""
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

    def advance(self, logits: Logits) -> None:
        """logits (V,) of what follows -> one more token, or the end"""
        rng = generator("sample", len(self.tokens), seed=self.sampling.seed)
        possible = self._begun.limit(logits, self.tokens)
        token = choose(possible, rng, self.sampling, self.prompt, self.tokens)
        self.piece = ""
        if token in self.sampling.stop_tokens:
            self._end("stop")
            return
        self.tokens.append(token)
        if self.logprobs is not None:
            self.logprobs.append(float(ops.log_softmax(logits)[token]))
        if self._stream:
            self.piece = self._stream.push(token)
            self.text += self.piece
        if self._stream and self._stream.stopped:
            self._end("stop")
        elif len(self.tokens) >= self.sampling.max_new_tokens:
            self._end("length")

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
