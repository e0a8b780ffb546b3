"""What a model is trained on and judged by: two rows of tokens, and how long the text of the second is."""

from __future__ import annotations

import math
from dataclasses import dataclass

from chainrule.data import Corpus, split
from chainrule.text import Tokenizer
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
    def of(cls, corpus: Corpus, tokenizer: Tokenizer) -> Material:
        """The text is cut before it is encoded, so every tokenizer is judged by the same text."""
        training, validation = split(corpus.text)
        size = len(validation.encode("utf-8", "surrogatepass"))
        return cls(tokenizer, tokenizer.encode(training), tokenizer.encode(validation), size)

    def bits_per_byte(self, nats: float) -> float:
        """A loss in nats per token, as bits per byte of the validation text: the same unit for every tokenizer."""
        return nats / math.log(2) * len(self.validation) / self.validation_bytes
