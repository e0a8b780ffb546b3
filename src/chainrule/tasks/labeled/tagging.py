"""Tagging: sentences with a tag for each word, for a model that finds names in a text, or parts of speech."""

from __future__ import annotations

import io
import keyword
import os
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from chainrule import ops
from chainrule.data import (
    CHOSEN,
    Columns,
    SpecialIds,
    Tagged,
    TaggedBatches,
    encode_words,
    load_pairs,
    read_tagged,
    segmented,
)
from chainrule.data.batches.segmented import text_limit
from chainrule.data.read.columns import no_table
from chainrule.data.read.tagged import reading_of
from chainrule.errors import DataError
from chainrule.models import BERTClassifier
from chainrule.models.suited import Suited
from chainrule.tasks.answer_options import Answer, AnswerOptions
from chainrule.tasks.labeled.classification import ClassificationTask, LabelCorpus, label_names
from chainrule.tasks.masked_lm import VOCABULARY
from chainrule.text import Tokenizer, WordPieceTokenizer


@dataclass(frozen=True)
class TaggingTask(ClassificationTask):
    """Sentences to train on and sentences to evaluate on, chosen by their hash."""

    model: ClassVar[str] = "a tagger"
    what: ClassVar[str] = "sentences"
    counted: ClassVar[str] = "sentences"
    baseline: ClassVar[str] = ""

    @classmethod
    def find(cls, name: str | os.PathLike[str], columns: Columns = CHOSEN) -> LabelCorpus:
        """A file that `data.read_tagged` reads; `docstrings` is built in: heads of functions, and what each word is."""
        if name == cls.default:
            no_table(name, columns)
            pairs = load_pairs(name)
            heads = [Tagged(*zip(*_python(head), strict=True)) for head, _ in pairs.pairs]
            return LabelCorpus(str(name), pairs.version, tuple(dict.fromkeys(heads)))
        path = Path(name)
        if not path.exists():
            raise DataError(f"{path}: no such file (must be sentences with tags, or docstrings)")
        found = read_tagged(path, columns)
        reading = reading_of(path, columns, found)
        return LabelCorpus(str(path.absolute()), "file", tuple(dict.fromkeys(found)), reading)

    @classmethod
    def vocabulary(cls, texts: Sequence[str]) -> Tokenizer:
        """Word pieces."""
        return WordPieceTokenizer.train(texts, VOCABULARY)

    def prepare(self, model: BERTClassifier) -> None:
        """There is nothing to count."""

    @classmethod
    def suited(cls, data: LabelCorpus, *, start: Any = None, frozen: bool = False) -> Suited:
        """Every word is an example: the usual sizes will do."""
        return Suited({}, {})

    def _batches(
        self, rows: list[Tagged], model: BERTClassifier, batch_size: int, seed: int = 0
    ) -> TaggedBatches:
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


def _python(code: str) -> Iterator[tuple[str, str]]:
    """The words of a line of Python, and what each is."""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.string.strip():
            kind = "keyword" if keyword.iskeyword(token.string) else tokenize.tok_name[token.type].lower()
            yield token.string, kind
