"""Text with words to guess, for a BERT."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from chainrule.autograd import no_grad
from chainrule.data import Corpus, Encoded, Masked, MaskedBatches, Shards, SpecialIds, split
from chainrule.models import BERTPretraining
from chainrule.tasks.memory import check_room
from chainrule.tasks.settings import Settings
from chainrule.tasks.task import Material, Text, held_back, joined, share_right
from chainrule.text import Tokenizer, WordPieceTokenizer
from chainrule.types import Ids

VOCABULARY = 4096  # tokens of a vocabulary made for a text that has none


@dataclass(frozen=True)
class MaskedText(Material):
    """Documents to train on and documents to judge by, and the tokenizer that made them."""

    default: ClassVar[str] = Text.default
    unit: ClassVar[str] = "nats"  # per hidden word, and with next sentence per pair, added up
    corpus: Corpus | Shards
    tokenizer: Tokenizer
    training: Encoded
    validation: Encoded

    @classmethod
    def find(cls, name: str | os.PathLike[str]) -> Corpus | Shards:
        """As for language models: a corpus, a file, or shards."""
        return Text.find(name)

    @classmethod
    def of(
        cls, data: Corpus | Shards, tokenizer: Tokenizer | None = None, *, judge_only: bool = False
    ) -> Self:
        """Without a tokenizer a vocabulary of word pieces is made of the training text."""
        if isinstance(data, Shards):
            text = Text.of(data, tokenizer, judge_only=judge_only)  # checks what it must have
            SpecialIds.of(text.tokenizer.special_ids)
            learnt = Encoded.of([]) if judge_only else data.parts["train"]
            return cls(data, text.tokenizer, learnt, joined(data, held_back(data, judge_only)))
        training, validation = ("", data.text) if judge_only else split(data.text)
        tokenizer = tokenizer or WordPieceTokenizer.train(training, VOCABULARY)
        SpecialIds.of(tokenizer.special_ids)
        parts = [Encoded.of([tokenizer.encode(text)]) for text in (training, validation)]
        return cls(data, tokenizer, *parts)

    def sizes(self) -> dict[str, Any]:
        """The tokenizer decides the vocabulary."""
        return {"vocab_size": self.tokenizer.vocab_size}

    def check(self, sizes: Any, config: Settings) -> None:
        """A batch is drawn whole, however few windows the text has."""
        check_room(sizes, config, sizes.block_size)

    def batches(self, model: BERTPretraining, config: Settings) -> MaskedBatches:
        """Windows in random order; other words are hidden in each epoch."""
        return self._batches(self.training, model, config, config.seed)

    def exam(self, model: BERTPretraining, config: Settings) -> Sequence[tuple[Masked, Ids]]:
        """Windows of the text held back, always with the same words hidden."""
        batches = self._batches(self.validation, model, config, seed=0)
        count = max(1, min(config.eval_windows, len(batches.starts)) // config.batch_size)
        return [batches.batch(step) for step in range(count)]

    def _batches(
        self, documents: Encoded, model: BERTPretraining, config: Settings, seed: int
    ) -> MaskedBatches:
        ends = [id for mark in ".?!" for id in _single(self.tokenizer, mark)]
        return MaskedBatches(
            documents,
            special=SpecialIds.of(self.tokenizer.special_ids),
            vocab_size=self.tokenizer.vocab_size,
            batch_size=config.batch_size,
            block_size=model.config.block_size,
            next_sentence=model.config.next_sentence,
            ends=ends,
            seed=seed,
        )

    def scores(self, model: BERTPretraining, exam: Sequence[tuple[Masked, Ids]]) -> dict[str, float]:
        """The share of hidden words that the model scores highest."""
        with no_grad():
            answers = ((model(x.ids, x.mask, x.segments).numpy().argmax(axis=-1), words) for x, words in exam)
            return {"accuracy": share_right(answers)}

    def amount(self) -> str:
        """How much there is, in words."""
        return f"{len(self.training.ids) + len(self.validation.ids):,} tokens of {self.corpus.name}"


def _single(tokenizer: Tokenizer, mark: str) -> list[int]:
    """The id of a mark that is one token."""
    ids = tokenizer.encode(mark).tolist()
    return ids if len(ids) == 1 else []
