"""What a model is trained on and judged by: two rows of tokens, and how long the text of the second is."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

from chainrule.data import BUILT_IN, Corpus, Shards, load, split
from chainrule.errors import ConfigError, DataError, FormatError
from chainrule.text import CharTokenizer, Tokenizer
from chainrule.train.loop import Ids


@dataclass(frozen=True)
class Material:
    """Tokens to train on, tokens to judge by, and the tokenizer that made them."""

    tokenizer: Tokenizer
    training: Ids
    validation: Ids
    validation_bytes: int
    """Of the validation text in UTF-8, before any tokenizer lost some of it."""

    @classmethod
    def of(cls, corpus: Corpus | Shards, tokenizer: Tokenizer | None = None) -> Material:
        """Of a corpus every character is a token unless a tokenizer says otherwise; shards have their own."""
        if isinstance(corpus, Shards):
            if tokenizer not in (None, corpus.tokenizer):
                raise ConfigError(
                    f"{corpus.folder}: the shards were made by another tokenizer (leave it out)"
                )
            return cls._of_shards(corpus)
        return cls._of_text(corpus.text, tokenizer or CharTokenizer.train(corpus.text))

    @classmethod
    def _of_text(cls, text: str, tokenizer: Tokenizer) -> Material:
        """The text is cut before it is encoded, so every tokenizer is judged by the same text."""
        training, validation = split(text)
        size = len(validation.encode("utf-8", "surrogatepass"))
        return cls(tokenizer, tokenizer.encode(training), tokenizer.encode(validation), size)

    @classmethod
    def _of_shards(cls, shards: Shards) -> Material:
        """Tokens on disk, mapped into memory. The bytes are those of the documents, without what ends each."""
        if not {"train", "validation"} <= shards.parts.keys():
            raise DataError(
                f"{shards.folder}: shards with the parts {', '.join(shards.parts)} "
                "(must have train and validation: build them with --validation 0.05)"
            )
        size = shards.meta["parts"]["validation"].get("bytes")
        if not (isinstance(size, int) and size > 0):
            raise FormatError(
                f"{shards.folder}: validation of {size!r} bytes (must be positive: build it again)"
            )
        return cls(shards.tokenizer, shards.parts["train"].ids, shards.parts["validation"].ids, size)

    def bits_per_byte(self, nats: float) -> float:
        """A loss in nats per token, as bits per byte of the validation text: the same unit for every tokenizer."""
        return nats / math.log(2) * len(self.validation) / self.validation_bytes


def find(name: str | os.PathLike[str]) -> Corpus | Shards:
    """What `data.load` finds by this name, or the shards in this directory."""
    if name not in BUILT_IN and Path(name).is_dir():
        return Shards(Path(name))
    return load(name)
