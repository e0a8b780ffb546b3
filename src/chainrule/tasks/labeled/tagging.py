"""Tagging: sentences with a tag for each word, for a model that finds names in a text, or parts of speech."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Unpack

from chainrule import ops
from chainrule.data import LabelCorpus, SpecialIds, Tagged, TaggedBatches, encode_words, load_tags, segmented
from chainrule.data.batches.segmented import text_limit
from chainrule.errors import DataError
from chainrule.models import BERTClassifier
from chainrule.models.suited import Begun, Suited
from chainrule.tasks.answer_options import Answer, AnswerOptions
from chainrule.tasks.labeled.classification import ClassificationTask, label_names
from chainrule.tasks.masked_lm import VOCABULARY
from chainrule.text import Tokenizer, WordPieceTokenizer


@dataclass(frozen=True)
class TaggingTask(ClassificationTask):
    """Sentences to train on and sentences to evaluate on, chosen by their hash."""

    find = staticmethod(load_tags)
    model: ClassVar[str] = "a tagger"
    what: ClassVar[str] = "sentences"
    counted: ClassVar[str] = "sentences"
    baseline: ClassVar[str] = ""

    @classmethod
    def vocabulary(cls, texts: Sequence[str]) -> Tokenizer:
        """Word pieces."""
        return WordPieceTokenizer.train(texts, VOCABULARY)

    def prepare(self, model: BERTClassifier) -> None:
        """There is nothing to count."""

    @classmethod
    def suited(cls, data: LabelCorpus, **begun: Unpack[Begun]) -> Suited:
        """Every word is an example: the usual sizes will do."""
        return Suited({}, {})

    def cut(self, rows: list[Tagged], model: BERTClassifier, batch_size: int, seed: int = 0) -> TaggedBatches:
        """Sentences of like lengths."""
        return TaggedBatches(
            [
                (*encode_words(self.tokenizer, row.words), [self.names[label] for label in row.labels])
                for row in rows
            ],
            special=SpecialIds.of(self.tokenizer.special_ids),
            batch_size=batch_size,
            block_size=model.config.block_size,
            seed=seed,
            pool=8,
        )

    @classmethod
    def answer_some(
        cls, model: BERTClassifier, tokenizer: Tokenizer, prompts: Sequence[str], options: AnswerOptions
    ) -> list[Answer]:
        """Of each word of each text, as white space parts them, the likeliest tag and its probability"""
        limit = text_limit(model.config.block_size, 1)
        rows, places = zip(*(encode_words(tokenizer, prompt.split()) for prompt in prompts), strict=True)
        for prompt, ids in zip(prompts, rows, strict=True):
            if not 0 < len(ids) <= limit:
                said = f"sample: prompt {prompt[:60]!r} has {len(ids)} tokens"
                raise DataError(f"{said} (must be from 1 to {limit})")
        batch = segmented(rows, [None] * len(rows), SpecialIds.of(tokenizer.special_ids))
        with model.answering():
            scores = ops.softmax(model(*batch)).numpy()[:, 1:]  # (B, T - 1, classes), without that of [CLS]
        names = label_names(model)
        found = []
        for prompt, of_prompt, firsts in zip(prompts, scores, places, strict=True):
            words = [
                {"word": word, "tag": names[each.argmax()], "probability": float(each.max())}
                for word, each in zip(prompt.split(), of_prompt[firsts], strict=True)
            ]
            found.append({"prompt": prompt, "words": words})
        return found

    @classmethod
    def show(cls, answer: Answer, number: int, options: AnswerOptions) -> str:
        """Each word with its tag."""
        return " ".join(f"{word['word']}/{word['tag']}" for word in answer["words"])
