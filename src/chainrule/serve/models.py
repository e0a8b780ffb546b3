"""The models that are served: by name, each with its tokenizer and what works for it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from chainrule import native
from chainrule.errors import ConfigError, kind_of
from chainrule.generate.chat import stopping
from chainrule.generate.engine.weights import check_format
from chainrule.generate.sampling import Sampling
from chainrule.models import LanguageModel, Model, NGram
from chainrule.models.bert.heads import body_of
from chainrule.runs.load import open_model
from chainrule.serve.batching import Batcher, Embedder, caches_of
from chainrule.serve.batching.caches import DecoderCaches
from chainrule.serve.batching.drafts import Drafter, DraftModel, NgramLookup
from chainrule.serve.constraints.tokens import TokenTree
from chainrule.serve.memory import Memory, memory_of, shares
from chainrule.text import Tokenizer
from chainrule.text.chat.formats import FORMATS, Renderer, unreadable
from chainrule.text.chat.roles import own_format
from chainrule.types import Ids

# A model without a template sees a play with two speakers, as in `chainrule chat`; the space is the model's to write.
# A model of few characters, such as one of names, sees lines.
PLAY = replace(FORMATS["plain"], assistant="Assistant: {content}\n")
LOOKUP = "ngram"


@dataclass(frozen=True)
class ModelPath:
    """NAME=DIR, or DIR, which is named after its last part."""

    name: str
    path: Path

    @classmethod
    def of(cls, word: str) -> ModelPath:
        name, equals, path = word.partition("=")
        if not equals:
            name, path = Path(word).resolve().name, word
        if not re.fullmatch(r"[\w.:/@+-]+", name) or not path:
            rule = "must be a directory, or NAME=DIR with letters, digits and . _ - : / @ + in its name"
            raise ConfigError(f"serve: model {word!r} ({rule})")
        return cls(name, Path(path))


class Served:
    """A model by its name; `writer` generates text, `embedder` makes vectors: a model has one of them."""

    def __init__(
        self,
        name: str,
        model: Model | NGram,
        tokenizer: Tokenizer,
        *,
        weights: str = "fp32",
        cache: str = "fp32",
        slots: int = 8,
        queue: int = 64,
        cache_memory: int | None = None,
        draft: Any = None,
    ) -> None:
        """`draft` is a smaller model with the same tokens, or `LOOKUP`."""
        self.name = name
        self.tokenizer = tokenizer
        self.created = int(time.time())
        self.writer: Batcher | None = None
        self.embedder: Embedder | None = None
        self.width = 0
        self.memory: Memory | None = None
        """Of weights and caches; None if nothing is known of it."""
        if isinstance(model, LanguageModel | NGram):
            decoders = [each for each in (model, draft) if isinstance(each, LanguageModel)]
            ours = its = cache_memory
            if cache_memory is not None and len(decoders) == 2:
                ours, its = shares(cache_memory, decoders[0], decoders[1], cache)
            if draft not in (None, LOOKUP) and not isinstance(draft, LanguageModel | NGram):
                rule = "must be a language model with the same tokens"
                raise ConfigError(f"serve: a draft that is {kind_of(draft)} ({rule})")
            caches = caches_of(model, weights, slots, cache_memory=ours, cache=cache)
            if draft is not None and not caches.rewinds:
                raise ConfigError(f"serve: a draft for {kind_of(model)} (must be for a transformer)")
            drafter: Drafter | None = None
            if draft == LOOKUP:
                drafter = NgramLookup()
            elif draft is not None:
                drafter = DraftModel(
                    caches_of(draft, weights, slots, cache_memory=its, cache=cache), caches.vocab_size
                )
            self.writer = Batcher(caches, queue, drafter)
            self.context, self.vocab_size = caches.context, caches.vocab_size
            if isinstance(caches, DecoderCaches):
                self.memory = memory_of(decoders, weights, slots, caches.context, cache_memory, cache)
        elif (body := body_of(model)) is not None:
            self.embedder = Embedder(model, tokenizer, queue)
            self.context, self.vocab_size = int(body.config.block_size), int(body.config.vocab_size)
            self.width = int(body.config.n_embd)
        else:
            rule = "must be a language model, or one with a BERT inside for embeddings"
            raise ConfigError(f"serve: {name} is {kind_of(model)} ({rule})")

    @property
    def station(self) -> Batcher | Embedder:
        """What works for it."""
        found = self.writer or self.embedder
        assert found is not None
        return found

    @property
    def capacity(self) -> int:
        """Texts, or requests for vectors, that run or wait at a time."""
        return self.writer.capacity if self.writer else self.station.queue + 1

    @cached_property
    def format(self) -> Renderer:
        """How its conversations are written."""
        if self.tokenizer.conventions.chat_template is not None:
            return own_format(self.tokenizer)
        return FORMATS["lines"] if unreadable(self.tokenizer, PLAY) else PLAY

    @cached_property
    def _ends(self) -> Sampling:
        return stopping(Sampling(), self.tokenizer, self.format)

    def answering(self, sampling: Sampling) -> Sampling:
        """The sampling of an answer, which ends where the format ends it; that is found once, by a template."""
        return replace(
            sampling,
            stop=(*sampling.stop, *self._ends.stop),
            stop_tokens=(*sampling.stop_tokens, *self._ends.stop_tokens),
        )

    @cached_property
    def longest_token(self) -> int | None:
        """Characters of the longest token; None if that is not known."""
        spellings = self.tokenizer.spellings
        return None if spellings is None else max(map(len, spellings), default=1)

    @cached_property
    def token_bytes(self) -> Callable[[int], bytes]:
        """The bytes of a token; of a special one its name."""
        spellings, decode = self.tokenizer.spellings, self.tokenizer.decode
        special = {id: name for name, id in self.tokenizer.special_ids.items()}
        before = anchor(self.tokenizer)
        known = self.tokenizer.vocab_size

        @cache
        def found(id: int) -> bytes:
            if id >= known:  # a row of the model beyond its tokenizer
                return b""
            if id in special:
                return special[id].encode()
            if spellings is not None and isinstance(spellings[id], bytes):
                return bytes(spellings[id])  # type: ignore[arg-type]
            return decode([*before, id])[len(decode(before)) :].encode()

        return found

    @cached_property
    def token_tree(self) -> TokenTree:
        """Its tokens by their bytes, for texts that must be JSON; special tokens are no part of a text."""
        special = frozenset(self.tokenizer.special_ids.values())
        ids = (id for id in range(self.tokenizer.vocab_size) if id not in special)
        return TokenTree(((id, self.token_bytes(id)) for id in ids), self.vocab_size)

    def token_text(self, id: int) -> str:
        """A token as text; one that is a part of a character as bytes:\\xe2\\x82, as OpenAI writes it."""
        found = self.token_bytes(id)
        try:
            return found.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in found)


def anchor(tokenizer: Tokenizer) -> Ids:
    """A token to decode another after: the first token of a text may lose its space."""
    for text in ("a", "A", "0", "."):
        try:
            ids = tokenizer.encode_inside(text)
        except ValueError:  # a character that it does not know
            continue
        if ids.size:
            return ids[:1]
    return tokenizer.encode_inside("")


class Models:
    """All models that are served, in their order; the first is the default."""

    def __init__(self, served: Sequence[Served]) -> None:
        self.by_name = {each.name: each for each in served}
        if len(self.by_name) < len(served):
            twice = next(
                each.name for i, each in enumerate(served) if each.name in [s.name for s in served[:i]]
            )
            raise ConfigError(f"serve: two models named {twice} (must differ: NAME=DIR names one)")

    def __iter__(self) -> Iterator[Served]:
        return iter(self.by_name.values())

    @property
    def first(self) -> Served:
        return next(iter(self.by_name.values()))


def load_models(
    paths: Sequence[ModelPath],
    *,
    weights: str = "fp32",
    cache: str = "fp32",
    slots: int = 8,
    queue: int = 64,
    cache_memory: int | None = None,
    draft: str | None = None,
    tell: Callable[[str], None] = lambda name: None,
) -> Models:
    """Read the models; `draft` is ngram, or the path of a smaller model with the same tokens."""
    check_format(weights)
    small: Any = draft
    if draft not in (None, LOOKUP):
        tell(draft)
        small = open_model(draft, to_decode=True).model
    found = []
    for each in paths:
        tell(each.name)
        model, tokenizer, _ = open_model(each.path, to_decode=True)
        sizes: dict[str, Any] = {"slots": slots, "queue": queue, "cache_memory": cache_memory, "cache": cache}
        found.append(Served(each.name, model, tokenizer, weights=weights, draft=small, **sizes))
        tokenizer.decode([])  # makes what it decodes with, which the first request would wait for
    if native.available():
        native.kernels().give_back()  # what was in use while files were read and weights packed
    return Models(found)
