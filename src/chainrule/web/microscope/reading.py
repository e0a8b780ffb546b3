"""Texts as models take them: ids of one text, of a text with marks around it, or of a source and a target."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from chainrule.errors import ChainruleError, ConfigError
from chainrule.generate import translate
from chainrule.inspect.embeddings import WordVectors
from chainrule.models import BagOfWords, BERTClassifier, BERTEmbedder, EncoderDecoder
from chainrule.models.bert.heads import body_of
from chainrule.models.reward import Reward
from chainrule.text import Marks, SpecialIds, prompt_ids
from chainrule.web.models import Loaded

LONGEST = 160  # tokens of a text
EXAMPLES = ("The value of the value of ", "the value", "the ", "a")
SOURCES = ("the value of the value", "the ", "a")


@dataclass(frozen=True)
class Reading:
    """A text as a model takes it."""

    ids: Any
    """(T,); of an encoder-decoder (source, target)."""
    text: str
    target: str | None
    before: tuple[str, ...]
    """Lines of Python that come before the ids."""
    python: str
    """The ids in Python."""

    def lines(self, name: str = "ids") -> list[str]:
        """The program that makes the same ids."""
        return [*self.before, f"{name} = {self.python}"]

    @property
    def lengths(self) -> list[int]:
        """Tokens of the text; of a source and a target."""
        return [len(row) for row in (self.ids if isinstance(self.ids, tuple) else (self.ids,))]

    def check_as_long(self, other: Reading) -> None:
        """Activations go from one text to another only if they have as many tokens."""
        if self.lengths != other.lengths:
            here, there = (" and ".join(map(str, each.lengths)) for each in (other, self))
            raise ConfigError(f"microscope: the other text has {there} tokens (must be {here}, as this one)")

    @property
    def source(self) -> Any:
        """The ids of the source (S,), if there is one."""
        return self.ids[0] if isinstance(self.ids, tuple) else None


class Silent(NamedTuple):
    """A kind of model that predicts no tokens."""

    gives: str
    python: str
    """What it gives of the text of the view `seen`."""


SILENT = {
    "labels": Silent("labels", "cr.inspect.label_logprobs(seen).tolist()"),
    "tags": Silent("labels of tokens", "cr.inspect.label_logprobs(seen).tolist()"),
    "reward": Silent("a reward", "cr.inspect.rewards(seen).tolist()"),
    "vector": Silent("a vector", "seen.output.tolist()"),
    "bag": Silent("labels by words", ""),
    "words": Silent("vectors of words", ""),
}


def must_predict(where: str, loaded: Loaded, rule: str) -> None:
    """Refuse a model that predicts no tokens."""
    if silent := SILENT.get(kind_of(loaded)):
        raise ConfigError(f"{where}: this model gives {silent.gives} and writes no tokens ({rule})")


def kind_of(loaded: Loaded) -> str:
    """What a model says of a text.

    `pair`: reads a source and predicts a target; `masked`: predicts tokens where they stand; `next`: those that follow.
    Without tokens: `labels` of the text, `tags` of its tokens, a `reward`, or a `vector`. Without layers: a `bag` of
    words, and vectors of `words`.
    """
    match loaded.model:
        case EncoderDecoder():
            return "pair"
        case BERTClassifier():
            return "tags" if loaded.model.per_token else "labels"
        case Reward():
            return "reward"
        case BERTEmbedder():
            return "vector"
        case BagOfWords():
            return "bag"
        case WordVectors():
            return "words"
    return "masked" if "masked" in getattr(loaded.model, "reads", ()) else "next"


def context_of(loaded: Loaded) -> int:
    """Tokens that it reads at most; recurrent models, windows and vectors of words take texts of any length."""
    if getattr(loaded.model, "any_length", False) or kind_of(loaded) == "words":
        return LONGEST
    return int(loaded.model.context)


def suited(loaded: Loaded, texts: tuple[str, ...]) -> str:
    """The first of these texts that the tokenizer knows and half of the context holds; else some tokens of its own."""
    tokenizer = loaded.tokenizer
    for text in texts:
        with suppress(ChainruleError):
            if 0 < len(prompt_ids(tokenizer, text)) <= context_of(loaded) // 2:
                return text
    return str(tokenizer.decode(range(min(4, tokenizer.vocab_size))))


def read(loaded: Loaded, text: str | None, target: str | None = None) -> Reading:
    """A text for this model; without one some that suits it, and as a target its own likeliest translation."""
    kind = kind_of(loaded)
    if text is None:
        text = suited(loaded, SOURCES if kind == "pair" else EXAMPLES)
    if kind == "pair":
        return _pair(loaded, text, target)
    before: tuple[str, ...] = ()
    if body_of(loaded.model) is not None:
        special = SpecialIds.of(loaded.tokenizer.special_ids)
        inside = prompt_ids(loaded.tokenizer, text, special=True)
        ids = np.array([special.cls, *inside, special.sep])
        before = ("special = cr.text.SpecialIds.of(tokenizer.special_ids)",)
        python = f"[special.cls, *cr.text.prompt_ids(tokenizer, {text!r}, special=True), special.sep]"
    else:
        ids = prompt_ids(loaded.tokenizer, text)
        python = f"cr.text.prompt_ids(tokenizer, {text!r})"
    return Reading(_fitting(loaded, "text", ids), text, None, before, python)


def _pair(loaded: Loaded, text: str, target: str | None) -> Reading:
    model, tokenizer = loaded.model, loaded.tokenizer
    marks = Marks.of(tokenizer.special_ids, model.config.target_start)
    source = _fitting(loaded, "source", tokenizer.encode(text), marks.extra)
    source = marks.around(source, model.config.block_size)
    if target is None:
        (best,) = translate(model, source[None], start=marks.start, end=marks.end)
        target = str(tokenizer.decode(best[: context_of(loaded) - 1]))
    written = tokenizer.encode(target)
    read = _fitting(loaded, "target", np.array([marks.start, *written]))
    before = (
        "marks = cr.text.Marks.of(tokenizer.special_ids, model.config.target_start)",
        f"source = marks.around(tokenizer.encode({text!r}), model.config.block_size)",
    )
    python = f"(source, [marks.start, *tokenizer.encode({target!r})])"
    return Reading((source, read), text, target, before, python)


def _fitting(loaded: Loaded, what: str, ids: Any, extra: int = 0) -> Any:
    most = min(LONGEST, context_of(loaded)) - extra
    if not len(ids):
        raise ConfigError(f"microscope: no {what} to read (write some)")
    if len(ids) > most:
        raise ConfigError(f"microscope: {len(ids)} tokens (at most {most}: shorten the {what})")
    return ids
