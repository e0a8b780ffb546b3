"""Pre-training of a BERT on text alone: guess hidden words, tell whether a second text follows the first.

    words  = layernorm(gelu(dense(hidden))) wordsᵀ + bias       masked words: the embedding's matrix again
    pairs  = dense(pooled)                                      next sentence: does B follow A?

Weights carry the names of Hugging Face's BertForPreTraining (`cls.predictions.transform.dense.weight`), or without next
sentence those of BertForMaskedLM.
(Devlin et al. 2018; Liu et al. 2019 for leaving next sentence out)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.models.bert.body import BERT, BERTConfig, init, rows_at
from chainrule.models.microbatch import Batch, lengthened, spare
from chainrule.models.model import Model
from chainrule.nn import Layer, LayerNorm, Linear
from chainrule.nn.init import parameter, zeros
from chainrule.types import IGNORE


@dataclass(frozen=True)
class BERTPretrainingConfig(BERTConfig):
    """The size of a BERT in pre-training.

    >>> import chainrule as cr
    >>> base = {"n_layer": 12, "n_head": 12, "n_embd": 768, "n_hidden": 3072, "block_size": 512, "vocab_size": 30522}
    >>> cr.models.BERTPretrainingConfig(**base, norm="post", next_sentence=True).n_params
    110106428
    """

    norm: str = "pre"
    """Layer norm before each part and at the end (pre), which learns faster, or after each residual sum (post), as in
    the paper."""
    next_sentence: bool = False
    """Learn too whether B follows A, as in the paper; without it the model has no pooler and no head for that."""


class Transform(Layer):
    def __init__(self, config: BERTConfig) -> None:
        self.dense = Linear(config.n_embd, config.width, init=init)
        self.LayerNorm = LayerNorm(config.width, eps=config.norm_eps)

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden (..., C) -> (..., E)"""
        return self.LayerNorm(ops.gelu(self.dense(hidden)))


class WordHead(Layer):
    """Scores of all words, from the matrix of the embedding, which is the caller's."""

    def __init__(self, config: BERTConfig) -> None:
        self.transform = Transform(config)
        self.bias = parameter(zeros, (config.vocab_size,))

    def forward(self, hidden: Tensor, words: Tensor) -> Tensor:
        """hidden (..., C), words (V, E) -> logits (..., V)"""
        return ops.linear(self.transform(hidden), words, self.bias)


class PretrainingHeads(Layer):
    def __init__(self, config: BERTPretrainingConfig) -> None:
        self.predictions = WordHead(config)
        if config.next_sentence:
            self.seq_relationship = Linear(config.n_embd, 2, init=init)


class Asked(NamedTuple):
    """Texts (B, T), the places among their B T tokens where a word is asked for (N,), and classes of pairs (B,)."""

    ids: Array
    mask: Array | None
    segments: Array | None
    places: Array
    follows: Array | None


class BERTPretraining(Model):
    """Masked words, and whether the second text follows the first: learned from text alone.

    A batch is `data.Masked` (ids, mask, segments, follows) and targets, which are IGNORE where no word is asked for.

    >>> import chainrule as cr, numpy as np
    >>> config = cr.models.BERTPretrainingConfig(n_layer=1, n_head=2, n_embd=16, vocab_size=10)
    >>> cr.models.BERTPretraining(config)(np.array([[1, 2, 3]])).shape
    (1, 3, 10)
    """

    reads = ("tokens", "masked")

    def __init__(self, config: BERTPretrainingConfig) -> None:
        super().__init__(config)
        self.bert = BERT(config, pooled=config.next_sentence)
        self.cls = PretrainingHeads(config)

    def example_batch(self, rows: int, tokens: int, source: int = 0, masked: int = 1) -> tuple[Any, Array]:
        ids, targets = super().example_batch(rows, tokens)
        asked = np.arange(rows * tokens).reshape(targets.shape) < masked
        return (ids, None, None, targets[:, 0]), np.where(asked, targets, IGNORE)

    def forward(self, ids: Array, mask: Array | None = None, segments: Array | None = None) -> Tensor:
        """ids (B, T), mask (B, T), segments (B, T) -> logits (B, T, V) of the word that belongs at each place"""
        return self.words(self.bert(ids, mask, segments))

    def follows(self, ids: Array, mask: Array | None = None, segments: Array | None = None) -> Tensor:
        """ids (B, T), mask (B, T), segments (B, T) -> logits (B, 2): the second text follows, it does not"""
        if not self.config.next_sentence:
            raise ConfigError("BERT: next_sentence is off (follows needs a model that was trained with it)")
        return self._pairs(self.bert(ids, mask, segments))

    def prepared(self, batch: Batch) -> Batch:
        """Where words are asked for, and these words; the first place is asked for a few times more, for no word.

        So batches have few shapes, however many words were selected.
        """
        if isinstance(batch.inputs, Asked):
            return batch
        ids, mask, segments, follows = batch.inputs
        targets = np.asarray(batch.targets).reshape(-1)
        places = np.flatnonzero(targets != IGNORE)  # (N,)
        more = spare(len(places), targets.size)
        words = lengthened(targets[places], more, IGNORE)
        if self.config.next_sentence:  # in published weights class 0 says: it follows
            follows = np.where(np.asarray(follows) == IGNORE, IGNORE, 1 - np.asarray(follows))
        else:
            follows = None
        return Batch(Asked(ids, mask, segments, lengthened(places, more), follows), words)

    def loss(self, inputs: Any, targets: Array) -> Tensor:
        first, *rest = self.losses(inputs, targets)
        return sum(rest, first)

    def losses(self, inputs: Any, targets: Array) -> tuple[Tensor, ...]:
        """The mean over the selected tokens; with next sentence, then the mean over the pairs. In nats."""
        asked, targets, _ = self.prepared(Batch(inputs, targets))
        hidden = self.bert(asked.ids, asked.mask, asked.segments)  # (B, T, C)
        # The head is the widest layer by far: it is computed where a word is asked for, about one place in seven.
        logits = self.words(rows_at(hidden, asked.places))  # (N, V)
        words = ops.cross_entropy(logits, targets=targets, ignore_index=IGNORE)
        if not self.config.next_sentence:
            return (words,)
        return words, ops.cross_entropy(self._pairs(hidden), targets=asked.follows, ignore_index=IGNORE)

    def counts(self, inputs: Any, targets: Array) -> tuple[int, ...]:
        """How many tokens are selected; with next sentence, then how many pairs there are."""
        words = super().counts(inputs, targets)
        return (*words, *super().counts(inputs, inputs.follows)) if self.config.next_sentence else words

    def words(self, hidden: Tensor) -> Tensor:
        """hidden (..., C) of the body -> logits (..., V)"""
        return self.cls.predictions(hidden, self.bert.embeddings.word_embeddings.weight)

    def _pairs(self, hidden: Tensor) -> Tensor:
        return self.cls.seq_relationship(self.bert.pooler(hidden))
