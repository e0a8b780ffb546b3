"""What a model is trained on and judged by. For language models: two rows of tokens, cut into windows."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from chainrule.data import BUILT_IN, BatchSource, Corpus, Encoded, Shards, load, split, windows
from chainrule.data.batches.windows import check_length
from chainrule.errors import ConfigError, DataError, FormatError
from chainrule.generate import write
from chainrule.models import IGNORE, LanguageModel
from chainrule.tasks.memory import check_room
from chainrule.tasks.settings import Settings
from chainrule.tasks.sources import source
from chainrule.text import CharTokenizer, Tokenizer
from chainrule.types import Ids

SAMPLE = 100  # tokens


class Data(Protocol):
    """Where it comes from: a name by which it is found again, and a hash that tells whether it is still the same."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def sha256(self) -> str: ...


def facts_of(data: Data) -> dict[str, str]:
    """As a run writes them down."""
    return {"name": data.name, "version": data.version, "sha256": data.sha256}


class Material:
    """Batches to learn from and batches to be judged by, of one kind of data. A kind of task has a class of its own."""

    default: ClassVar[str]
    """The data that are there without a download."""
    unit: ClassVar[str] = "nats_per_token"
    """What the loss is measured in."""
    perplexity: ClassVar[bool] = True
    """Is e to the power of the loss, or of its first part, a number of tokens in doubt?"""
    tokenizer: Tokenizer

    @classmethod
    def find(cls, name: str | os.PathLike[str]) -> Data:
        """The data of this name or path."""
        raise NotImplementedError

    @classmethod
    def of(cls, data: Any, tokenizer: Tokenizer | None = None, *, judge_only: bool = False) -> Self:
        """Data as `find` gives them, ready for batches; with `judge_only` all of them are held back."""
        raise NotImplementedError

    def sizes(self) -> dict[str, Any]:
        """The fields of a model's config that follow from the data, with their values."""
        raise NotImplementedError

    def check(self, sizes: Any, config: Settings) -> None:
        """Refuse what the data or this machine are too small for, before a model with the config `sizes` is made."""

    def fitted(self, model: Any) -> Self:
        """The same with what the model knows already, such as the numbers of labels."""
        return self

    def batches(self, model: Any, config: Settings) -> BatchSource:
        """What is learnt from."""
        raise NotImplementedError

    def exam(self, model: Any, config: Settings) -> Sequence[tuple[Any, Ids]]:
        """What is held back."""
        raise NotImplementedError

    def amount(self) -> str:
        """How much there is, in words."""
        raise NotImplementedError

    def measures(self, nats: float, exam: Sequence[tuple[Any, Ids]]) -> dict[str, float]:
        """A loss on this exam in units that can be compared, by name; none if there is no such unit."""
        return {}

    def sample(self, model: Any, seed: int) -> str:
        """What the model writes of its own accord; nothing if it does not write."""
        return ""

    def scores(self, model: Any, exam: Sequence[tuple[Any, Ids]]) -> dict[str, float]:
        """How well the model does its task on what was held back, beyond its loss."""
        return {}


def share_right(answers: Iterable[tuple[Ids, Ids]]) -> float:
    """The share of targets, but for those that do not count, which the answers of the same shape agree with."""
    right = total = 0
    for answer, targets in answers:
        counts = targets != IGNORE
        right += int(np.count_nonzero((answer == targets) & counts))
        total += int(np.count_nonzero(counts))
    return right / max(1, total)


@dataclass(frozen=True)
class Text(Material):
    """Tokens to train on, tokens to judge by, and the tokenizer that made them."""

    default: ClassVar[str] = "pydoc"
    corpus: Corpus | Shards
    tokenizer: Tokenizer
    training: Ids
    validation: Ids
    validation_bytes: int
    """Of the validation text in UTF-8, before any tokenizer lost some of it."""

    @classmethod
    def find(cls, name: str | os.PathLike[str]) -> Corpus | Shards:
        """What `data.load` finds by this name, or the shards in this directory."""
        if name not in BUILT_IN and Path(name).is_dir():
            return Shards(Path(name))
        return load(name)

    @classmethod
    def of(
        cls, data: Corpus | Shards, tokenizer: Tokenizer | None = None, *, judge_only: bool = False
    ) -> Self:
        """Of a corpus every character is a token unless a tokenizer says otherwise; shards have their own."""
        if isinstance(data, Shards):
            if tokenizer not in (None, data.tokenizer):
                raise ConfigError(f"{data.folder}: the shards were made by another tokenizer (leave it out)")
            return cls._of_shards(data, judge_only)
        return cls._of_text(data, tokenizer or CharTokenizer.train(data.text), judge_only)

    @classmethod
    def _of_text(cls, corpus: Corpus, tokenizer: Tokenizer, judge_only: bool) -> Self:
        """The text is cut before it is encoded, so every tokenizer is judged by the same text."""
        if tokenizer.vocab_size < 2 and not judge_only:
            raise DataError(
                f"{corpus.name}: a vocabulary of one token, {tokenizer.piece(0)!r} (must be at least two: where there "
                "is no choice nothing is learnt; bring a text of several characters)"
            )
        training, validation = ("", corpus.text) if judge_only else split(corpus.text)
        size = len(validation.encode("utf-8", "surrogatepass"))
        return cls(corpus, tokenizer, tokenizer.encode(training), tokenizer.encode(validation), size)

    @classmethod
    def _of_shards(cls, shards: Shards, judge_only: bool) -> Self:
        """Tokens on disk, mapped into memory. The bytes are those of the documents, without what ends each."""
        if not judge_only and not {"train", "validation"} <= shards.parts.keys():
            raise DataError(
                f"{shards.folder}: shards with the parts {', '.join(shards.parts)} "
                "(must have train and validation: build them with --validation 0.05)"
            )
        judged = held_back(shards, judge_only)
        size = sum(_bytes(shards, name) for name in judged)
        training = np.empty(0, np.int32) if judge_only else shards.parts["train"].ids
        return cls(shards, shards.tokenizer, training, joined(shards, judged).ids, size)

    def sizes(self) -> dict[str, Any]:
        """The tokenizer decides the vocabulary."""
        return {"vocab_size": self.tokenizer.vocab_size}

    def check(self, sizes: Any, config: Settings) -> None:
        """A row has at least as many tokens as the context."""
        check_length("training text", self.training, sizes.block_size)
        check_length("validation text", self.validation, sizes.block_size)
        check_room(sizes, config, sizes.block_size)

    def batches(self, model: LanguageModel, config: Settings) -> BatchSource:
        """Random windows, or streams for a recurrent model."""
        T = model.training_window
        return source(model, self.training, batch_size=config.batch_size, block_size=T, seed=config.seed)

    def exam(self, model: LanguageModel, config: Settings) -> Sequence[tuple[Ids, Ids]]:
        """Windows of the validation text, side by side."""
        B, T = config.batch_size, model.training_window
        return list(windows(self.validation, batch_size=B, block_size=T, limit=config.eval_windows))

    def amount(self) -> str:
        """How much there is, in words."""
        if isinstance(self.corpus, Shards):
            return f"{len(self.training) + len(self.validation):,} tokens of {self.corpus.name}"
        return f"{len(self.corpus.text):,} characters of {self.corpus.name}"

    def sample(self, model: LanguageModel, seed: int) -> str:
        """What the model writes without a prompt."""
        return "".join(write(model, self.tokenizer, "", SAMPLE, seed=seed))

    def measures(self, nats: float, exam: Sequence[tuple[Any, Ids]]) -> dict[str, float]:
        """In bits per byte, the same unit for every tokenizer."""
        return {"bits_per_byte": self.bits_per_byte(nats)}

    def bits_per_byte(self, nats: float) -> float:
        """A loss in nats per token, as bits per byte of the validation text: the same unit for every tokenizer."""
        return nats / math.log(2) * len(self.validation) / self.validation_bytes


def held_back(shards: Shards, judge_only: bool) -> list[str]:
    """The parts to judge by."""
    return [name for name, part in shards.parts.items() if len(part.ids)] if judge_only else ["validation"]


def joined(shards: Shards, names: Sequence[str]) -> Encoded:
    """Some parts as one; several of them are copied into memory."""
    parts = [shards.parts[name] for name in names]
    if len(parts) == 1:
        return parts[0]
    before = np.cumsum([0, *(len(part.ids) for part in parts)])
    starts = [part.starts[:-1] + first for part, first in zip(parts, before[:-1], strict=True)]
    return Encoded(np.concatenate([part.ids for part in parts]), np.concatenate([*starts, before[-1:]]))


def _bytes(shards: Shards, part: str) -> int:
    size = shards.meta["parts"][part].get("bytes")
    if not (isinstance(size, int) and size > 0):
        raise FormatError(f"{shards.folder}: {part} of {size!r} bytes (must be positive: build it again)")
    return size
