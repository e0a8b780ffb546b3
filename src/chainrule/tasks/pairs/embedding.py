"""Vectors of texts: pairs that mean the same, for a model that finds the partner of a text among others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from chainrule.autograd import no_grad
from chainrule.data import PairCorpus, SpecialIds, TwinBatches, Twins, segmented
from chainrule.data.batches.segmented import text_limit
from chainrule.errors import ConfigError
from chainrule.models import BERTEmbedder
from chainrule.models.bert.pooling import unit
from chainrule.tasks.answer_options import Answer, AnswerOptions
from chainrule.tasks.masked_lm import VOCABULARY
from chainrule.tasks.metrics import accuracy
from chainrule.tasks.pairs.pair_task import Pairs, PairTask, held_back, texts_of
from chainrule.tasks.task import EvalBatches
from chainrule.text import Tokenizer, WordPieceTokenizer
from chainrule.text.wordpiece import SPECIAL
from chainrule.types import Ids


@dataclass(frozen=True)
class EmbeddingTask(PairTask):
    """Texts with their partners; a twentieth of them, chosen by the hash of the text, is for evaluation."""

    unit: ClassVar[str] = "nats_per_text"
    perplexity: ClassVar[bool] = False
    model: ClassVar[str] = "an embedder"
    used_by: ClassVar[str] = "embed"
    special_tokens: ClassVar[tuple[str, ...]] = SPECIAL

    @classmethod
    def of(cls, data: PairCorpus, tokenizer: Tokenizer | None = None, *, eval_only: bool = False) -> Self:
        """Without a tokenizer a vocabulary of word pieces is made of the texts to train on."""
        training, validation = ([], list(data.pairs)) if eval_only else held_back(data, least=2)
        tokenizer = tokenizer or WordPieceTokenizer.train(texts_of(training), VOCABULARY)
        SpecialIds.of(tokenizer.special_ids)
        return cls(data, tokenizer, training, validation)

    def cut(self, rows: Pairs, model: BERTEmbedder, batch_size: int, seed: int = 0) -> TwinBatches:
        """Pairs in random order; the larger a batch, the harder it is to find the partner."""
        texts, partners = ([self.tokenizer.encode(t) for t in side] for side in zip(*rows, strict=True))
        special = SpecialIds.of(self.tokenizer.special_ids)
        return TwinBatches(
            texts, partners, special=special, batch_size=batch_size, block_size=longest_text(model), seed=seed
        )

    def eval_batches(self, model: BERTEmbedder, *, batch_size: int, limit: int) -> list[tuple[Twins, Ids]]:
        """Pairs to evaluate on, at most `limit` of them, in batches of the same size but for the last."""
        pairs = self.eval_examples(limit)
        longest, special = text_limit(longest_text(model), 1), SpecialIds.of(self.tokenizer.special_ids)
        found: list[tuple[Twins, Ids]] = []
        for first in range(0, len(pairs), batch_size):
            sides = []
            for side in zip(*pairs[first : first + batch_size], strict=True):
                rows = [self.tokenizer.encode(text)[:longest] for text in side]
                sides.append(segmented(rows, [None] * len(rows), special)[:2])
            (ids, mask), (partner_ids, partner_mask) = sides
            found.append((Twins(ids, mask, partner_ids, partner_mask), np.zeros(len(ids), np.int32)))
        return found

    def scores(self, model: BERTEmbedder, batches: EvalBatches) -> dict[str, float | None]:
        """The fraction of texts whose own partner is nearer than all others of the batch."""
        found = []
        with no_grad():
            for twins, _ in batches:
                texts, partners = model(twins.ids, twins.mask), model(twins.partner_ids, twins.partner_mask)
                cosines = unit(texts).numpy() @ unit(partners).numpy().T  # (B, B)
                found.append((cosines.argmax(axis=1), np.arange(len(cosines))))
        return {"accuracy": accuracy(found)}

    @classmethod
    def answer_some(
        cls, model: BERTEmbedder, tokenizer: Tokenizer, prompts: Sequence[str], options: AnswerOptions
    ) -> list[Answer]:
        """There is nothing to answer."""
        raise without_head(model)


def longest_text(model: BERTEmbedder) -> int:
    """The tokens that it reads of a text, special ones included."""
    return int(model.config.max_length or model.config.block_size)


def without_head(model: Any) -> ConfigError:
    """The error for a model that is asked for what a head would do; it says what the model can do."""
    return ConfigError(
        f"{type(model).__name__}: has no head that answers (chainrule embed turns texts into vectors; a head is "
        "trained with chainrule train bert-classifier, bert-tagger or bert, --init and this directory)"
    )
