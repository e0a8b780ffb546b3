"""Sentences with a tag for each word, for a model that finds names in a text, or parts of speech."""

from __future__ import annotations

import io
import keyword
import os
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from chainrule.data import SpecialIds, Tagged, TaggedBatches, encode_words, load_pairs, read_tagged
from chainrule.errors import DataError
from chainrule.models import BERTClassifier
from chainrule.tasks.classification import LabelCorpus, Labels
from chainrule.tasks.settings import Settings


@dataclass(frozen=True)
class Tags(Labels):
    """Sentences to train on and sentences to judge by, chosen by their hash."""

    what: ClassVar[str] = "sentences"

    @classmethod
    def find(cls, name: str | os.PathLike[str]) -> LabelCorpus:
        """A file that `data.read_tagged` reads; `docstrings` is built in: heads of functions, and what each word is."""
        if name == cls.default:
            pairs = load_pairs(name)
            heads = [Tagged(*zip(*_python(head), strict=True)) for head, _ in pairs.pairs]
            return LabelCorpus(str(name), pairs.version, tuple(dict.fromkeys(heads)))
        path = Path(name)
        if not path.exists():
            raise DataError(f"{path}: no such file (must be sentences with tags, or docstrings)")
        return LabelCorpus(str(path.absolute()), "file", tuple(dict.fromkeys(read_tagged(path))))

    def _batches(self, rows: list[Tagged], model: BERTClassifier, config: Settings) -> TaggedBatches:
        return TaggedBatches(
            [
                (*encode_words(self.tokenizer, row.words), [self.names[label] for label in row.labels])
                for row in rows
            ],
            special=SpecialIds.of(self.tokenizer.special_ids),
            batch_size=config.batch_size,
            block_size=model.config.block_size,
            seed=config.seed,
            pool=8,
        )


def _python(code: str) -> Iterator[tuple[str, str]]:
    """The words of a line of Python, and what each is."""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.string.strip():
            kind = "keyword" if keyword.iskeyword(token.string) else tokenize.tok_name[token.type].lower()
            yield token.string, kind
