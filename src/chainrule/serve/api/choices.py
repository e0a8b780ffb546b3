"""Choices: the texts that a request asks for, and what each of them has become.

`Choice.take` turns an update of a job into what is new for the client. A whole answer is all that was new, joined: so a
stream and a plain answer cannot differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from chainrule.generate.requests import Request, TokenScore
from chainrule.serve.batching import Update
from chainrule.serve.models import Served
from chainrule.text import TextStream

LOWEST = -9999.0  # stands for ln 0, which JSON cannot hold


class Scored(NamedTuple):
    """A token with its score and the place in the text where it begins; the first of a prompt has no score."""

    token: int
    score: TokenScore | None
    offset: int


@dataclass
class Delta:
    """What is new of a choice."""

    text: str = ""
    scored: list[Scored] = field(default_factory=list)
    finish: str | None = None

    def __bool__(self) -> bool:
        return bool(self.text) or self.finish is not None


class Choice:
    """One text of an answer."""

    def __init__(
        self,
        served: Served,
        index: int,
        request: Request,
        *,
        echo: str | None = None,
        before: int = 0,
        typed: int = 0,
        lead: str = "",
        scored: bool = False,
    ) -> None:
        """`echo` is the text of the prompt if it is to be repeated, `before` its length if it is not.

        Of a healed prompt the model writes the last `typed` characters once more, and `lead` is what it writes before
        an answer; both are left out.
        """
        self.index = index
        self.request = request
        self.scored = scored
        self._before = before
        self._offset = before - typed
        self._echo = echo
        self._lead = lead
        self._stream = TextStream(served.tokenizer, () if echo is not None else request.prompt)
        self._waiting: list[Scored] = []
        self._length = before  # of the text so far
        self.total = 0.0  # ln P of the tokens
        self.tokens = 0

    def take(self, update: Update) -> Delta:
        """What an update adds. Scores wait until their text is certain; those of a stop string are dropped."""
        text, whole = update.piece, len(update.tokens)
        if self._lead and text:
            text = self._without_lead(text)
        if self._echo is not None and (update.tokens or update.last):
            text, self._echo = self._echo + text, None
            if self.scored:
                first = (None, *update.prompt_scores)
                for token, score in zip(self.request.prompt, first, strict=False):
                    self._add(token, score)
        self._length += len(text)
        self.tokens += whole
        for score in update.scores:
            self.total += score.logprob
            if self.scored:
                self._add(score.token, score)
        if not text and not update.last:
            return Delta()
        ready, self._waiting = self._waiting, []
        if update.finish != "length":
            certain = [max(each.offset, self._before) < self._length for each in ready]
            self._waiting = [each for each, there in zip(ready, certain, strict=True) if not there]
            ready = [each for each, there in zip(ready, certain, strict=True) if there]
        return Delta(text, ready, update.finish)

    def _without_lead(self, text: str) -> str:
        """The first text of an answer; what has been scored so far begins earlier then."""
        found, self._lead = text.removeprefix(self._lead), ""
        cut = len(text) - len(found)
        self._offset -= cut
        self._waiting = [each._replace(offset=each.offset - cut) for each in self._waiting]
        return found

    def _add(self, token: int, score: TokenScore | None) -> None:
        self._waiting.append(Scored(token, score, self._offset))
        self._offset += len(self._stream.push(token))


def joined(deltas: Sequence[Delta]) -> Delta:
    """All that was new, as one."""
    text = "".join(delta.text for delta in deltas)
    return Delta(text, [s for delta in deltas for s in delta.scored], deltas[-1].finish if deltas else None)


def finite(logprob: float) -> float:
    return max(logprob, LOWEST)


def legacy_logprobs(served: Served, scored: Sequence[Scored]) -> dict[str, Any]:
    """The `logprobs` of a completion; of two tokens that look alike the likelier counts."""
    text = served.token_text
    return {
        "tokens": [text(each.token) for each in scored],
        "token_logprobs": [None if each.score is None else finite(each.score.logprob) for each in scored],
        "top_logprobs": [None if each.score is None else _by_text(served, each.score) for each in scored],
        "text_offset": [each.offset for each in scored],
    }


def _by_text(served: Served, score: TokenScore) -> dict[str, float]:
    found: dict[str, float] = {}
    for id, logprob in (*score.top, (score.token, score.logprob)):
        found.setdefault(served.token_text(id), finite(logprob))
    return found


def chat_logprobs(served: Served, scored: Sequence[Scored]) -> dict[str, Any]:
    """The `logprobs` of an answer in a conversation."""

    def one(token: int, logprob: float) -> dict[str, Any]:
        bytes = list(served.token_bytes(token))
        return {"token": served.token_text(token), "logprob": finite(logprob), "bytes": bytes}

    content = [
        one(each.token, each.score.logprob) | {"top_logprobs": [one(*other) for other in each.score.top]}
        for each in scored
        if each.score
    ]
    return {"content": content, "refusal": None}
