"""Word vectors: the words of a text, for word2vec."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from chainrule.data import Corpus, load
from chainrule.errors import DataError, Setting
from chainrule.models import NOTHING, Word2Vec
from chainrule.tasks.task import Task
from chainrule.text import LowercaseWordTokenizer

MIN_COUNT = 5


@dataclass(frozen=True)
class WordVectorsTask(Task):
    """A text as the ids of its words. All of it is trained on: vectors are evaluated by what people know of words."""

    find = staticmethod(load)
    default: ClassVar[str] = "pydoc"
    options: ClassVar[tuple[str, ...]] = ("min_count",)
    by_epoch: ClassVar[bool] = True
    model: ClassVar[str] = "word vectors"
    command: ClassVar[str] = "train word2vec"
    used_by: ClassVar[str] = "vectors"
    corpus: Corpus
    tokenizer: LowercaseWordTokenizer
    ids: npt.NDArray[np.int32]
    min_count: int | None
    """How often a word of the vocabulary occurs at least; older checkpoints do not say."""

    @classmethod
    def of(
        cls,
        data: Corpus,
        tokenizer: Any = None,
        *,
        eval_only: bool = False,
        min_count: int | None = MIN_COUNT,
    ) -> Self:
        """Without a tokenizer the vocabulary is that of all words that occur `min_count` times."""
        if tokenizer is None:
            least = MIN_COUNT if min_count is None else min_count
            tokenizer = LowercaseWordTokenizer.train(data.text, min_count=least)
            if tokenizer.vocab_size < 3:
                raise DataError(
                    f"{data.name}: {tokenizer.vocab_size - 1} words occur {min_count} times ",
                    *("(must be at least 2; lower ", Setting("min_count"), " or take a longer text)"),
                )
        return cls(data, tokenizer, word_ids(data.text, tokenizer), min_count)

    def amount(self) -> str:
        found = int(np.count_nonzero(self.ids != NOTHING))
        return f"{self.tokenizer.vocab_size - 1:,} words of {self.corpus.name}, which occur {found:,} times"

    def facts(self) -> dict[str, Any]:
        """How the vocabulary was made."""
        return {"min_count": self.min_count}

    def vectors(self, model: Word2Vec) -> tuple[list[str], npt.NDArray[Any]]:
        """Words and matrix (V, C), without the unknown word."""
        return known_vectors(model, self.tokenizer)


def word_ids(text: str, tokenizer: LowercaseWordTokenizer) -> npt.NDArray[np.int32]:
    """Known words of a text, with a boundary after each paragraph; rare words are as if they were not there."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", text):
        ids = tokenizer.encode(paragraph)
        parts += [ids[ids != tokenizer.unknown_id], [NOTHING]]
    return np.concatenate(parts).astype(np.int32)


def known_vectors(model: Word2Vec, tokenizer: LowercaseWordTokenizer) -> tuple[list[str], npt.NDArray[Any]]:
    """Words and matrix (V, C), without the unknown word."""
    known = [i for i in range(tokenizer.vocab_size) if i != tokenizer.unknown_id]
    return [tokenizer.words[i] for i in known], model.input.weight.array[known]
