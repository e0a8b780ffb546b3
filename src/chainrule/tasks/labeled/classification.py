"""Classification: texts with labels, for a model that tells them apart."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from chainrule import ops
from chainrule.autograd import no_grad
from chainrule.data import (
    Labeled,
    LabeledBatches,
    SpecialIds,
    Split,
    label_ids,
    load_pairs,
    read_labeled,
    segmented,
    spread,
)
from chainrule.data.batches.padded import Bucketed
from chainrule.data.batches.segmented import text_limit
from chainrule.data.read.documents import is_table
from chainrule.errors import DataError
from chainrule.tasks.answer_options import Answer, AnswerOptions
from chainrule.tasks.labeled.suited import Suited, for_bert
from chainrule.tasks.task import EvalBatches, Task, accuracy
from chainrule.text import Tokenizer, WordPieceTokenizer
from chainrule.types import Ids

SPLIT = Split(validation=0.1, test=0.0)
VOCABULARY = 30_000  # words at most
SHOWN = 10  # labels that are named with their counts
COLUMNS = (("text", "label"), ("sentence", "label"), ("1", "2"), ("2", "1"))


@dataclass(frozen=True)
class LabelCorpus:
    """Labeled texts, the name by which they are found again, and their hash."""

    name: str
    version: str
    texts: tuple[Any, ...] = field(repr=False)
    """`Labeled` or `Tagged`: what has a `text` and `labels`."""

    @cached_property
    def sha256(self) -> str:
        """Of all texts and labels in order."""
        rows = "\0".join("\0".join((*row.labels, row.text)) for row in self.texts)
        return hashlib.sha256(rows.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class ClassificationTask(Task):
    """Texts to train on and texts to evaluate on, chosen by their hash."""

    default: ClassVar[str] = "docstrings"
    unit: ClassVar[str] = "nats_per_label"
    perplexity: ClassVar[bool] = False
    model: ClassVar[str] = "a classifier"
    what: ClassVar[str] = "texts"
    scored: ClassVar[str] = "accuracy"
    baseline: ClassVar[str] = "bow-classifier"
    corpus: LabelCorpus
    tokenizer: Tokenizer
    names: dict[str, int]
    """The number of each label."""
    training: list[Any]
    validation: list[Any]

    @classmethod
    def find(cls, name: str | os.PathLike[str]) -> LabelCorpus:
        """A file that `data.read_labeled` reads; `docstrings` is built in: which text is code, which is prose?"""
        if name == cls.default:
            heads, summaries = zip(*load_pairs(name).pairs, strict=True)
            rows = [Labeled(t, "code") for t in heads] + [Labeled(t, "prose") for t in summaries]
            return LabelCorpus(str(name), load_pairs(name).version, tuple(dict.fromkeys(rows)))
        path = Path(name)
        if not path.exists():
            raise DataError(f"{path}: no such file (must be texts with labels, or docstrings)")
        rows = _read_table(path) if is_table(path) else read_labeled(path)
        return LabelCorpus(str(path.absolute()), "file", tuple(dict.fromkeys(rows)))

    @classmethod
    def of(cls, data: LabelCorpus, tokenizer: Tokenizer | None = None, *, eval_only: bool = False) -> Self:
        """Without a tokenizer the vocabulary is made of the texts to train on."""
        names = label_ids([label for row in data.texts for label in row.labels])
        if len(names) < 2 and not eval_only:
            raise DataError(f"{data.name}: {len(names)} different labels (must be at least two)")
        parts: dict[str, list[Any]] = {"train": [], "validation": []}
        for row in data.texts:
            parts["validation" if eval_only else SPLIT.part(row.text)].append(row)
        if not all(parts.values()) and not eval_only:
            raise DataError(
                f"{data.name}: {len(data.texts)} {cls.what} (must be enough to hold back one in ten)"
            )
        tokenizer = tokenizer or cls.vocabulary([row.text for row in parts["train"]])
        return cls(data, tokenizer, names, parts["train"], parts["validation"])

    def __post_init__(self) -> None:
        SpecialIds.of(self.tokenizer.special_ids)  # refuses a tokenizer without them

    @classmethod
    def vocabulary(cls, texts: Sequence[str]) -> Tokenizer:
        """The tokenizer of a model that is given none: of a word that occurs once nothing can be learned."""
        return WordPieceTokenizer.of_words(texts, VOCABULARY, min_count=2)

    def prepare(self, model: Any) -> None:
        """How rare each feature of its bag of words is, if it has one."""
        if model.config.buckets:
            batches = (inputs for inputs, _ in self._batches(self.training, model, 256).once())
            rows = (zip(*model.features(x.ids, x.mask), strict=True) for x in batches)
            model.bag.count_texts(np.unique(ids[there > 0]) for some in rows for ids, there in some)

    def sizes(self) -> dict[str, Any]:
        """Numbers of tokens and of labels."""
        sizes = {"vocab_size": self.tokenizer.vocab_size, "classes": len(self.names)}
        return sizes | {"labels": tuple(self.names)}

    @classmethod
    def suited(cls, data: LabelCorpus, *, trained: bool, frozen: bool) -> Suited:
        """By the number of texts to train on."""
        return for_bert(training_texts(data), trained=trained, frozen=frozen)

    def fitted(self, model: Any) -> Self:
        """With the numbers that the model gives to labels, if it knows them by name."""
        known = model.config.labels
        if not known:
            return self
        if unknown := [name for name in self.names if name not in known]:
            raise DataError(
                f"{self.corpus.name}: label {unknown[0]!r}, unknown to the model (must be {', '.join(known)})"
            )
        return replace(self, names={name: number for number, name in enumerate(known)})

    def batches(self, model: Any, *, batch_size: int, seed: int = 0, steps: int | None = None) -> Bucketed:
        """Texts in random order, of like lengths."""
        return self._batches(self.training, model, batch_size, seed)

    def eval_batches(self, model: Any, *, batch_size: int, limit: int) -> list[tuple[Any, Ids]]:
        """Texts to evaluate on, at most `limit` of them, short ones and long ones."""
        rows = [self.validation[i] for i in spread(len(self.validation), limit)]
        return list(self._batches(rows, model, batch_size).once())

    def _batches(self, rows: list[Any], model: Any, batch_size: int, seed: int = 0) -> Bucketed:
        return LabeledBatches(
            [self.tokenizer.encode(row.text) for row in rows],
            [self.names[row.label] for row in rows],
            special=SpecialIds.of(self.tokenizer.special_ids),
            batch_size=batch_size,
            block_size=model.config.block_size,
            seed=seed,
            pool=8,
        )

    def scores(self, model: Any, batches: EvalBatches) -> dict[str, float | None]:
        """The fraction of labels that are the ones the model scores highest."""
        with no_grad():
            found = ((model(*x).numpy().argmax(axis=-1), labels) for x, labels in batches)
            return {"accuracy": accuracy(found)}

    @classmethod
    def answer_some(
        cls, model: Any, tokenizer: Tokenizer, prompts: Sequence[str], options: AnswerOptions
    ) -> list[Answer]:
        """Of each text the likeliest label, its probability, and those of all labels

        Of a text beyond the model's context its beginning is read.
        """
        names, found = label_names(model), []
        with model.answering():
            probabilities = ops.softmax(model(*cls.inputs(model, tokenizer, prompts))).numpy()
        for prompt, of_prompt in zip(prompts, probabilities, strict=True):
            best, each = names[int(of_prompt.argmax())], dict(zip(names, of_prompt.tolist(), strict=True))
            found.append({"prompt": prompt, "label": best, "probability": each[best], "labels": each})
        return found

    @classmethod
    def inputs(cls, model: Any, tokenizer: Tokenizer, texts: Sequence[str]) -> Any:
        """What the model reads of some texts."""
        limit = text_limit(model.config.block_size, 1)
        rows = [tokenizer.encode(text)[:limit] for text in texts]
        return segmented(rows, [None] * len(rows), SpecialIds.of(tokenizer.special_ids))

    @classmethod
    def show(cls, answer: Answer, number: int, options: AnswerOptions) -> str:
        """The label and its probability."""
        return f"{answer['label']}  {answer['probability']:.4f}"

    def amount(self) -> str:
        """How much data there are, in words."""
        counts = Counter(label for row in self.corpus.texts for label in row.labels).most_common()
        most = ", ".join(f"{count:,} {name}" for name, count in counts[:SHOWN])
        more = f" and {len(counts) - SHOWN} other labels" if len(counts) > SHOWN else ""
        return f"{len(self.corpus.texts):,} {self.what} of {self.corpus.name}: {most}{more}"


def training_texts(data: LabelCorpus) -> int:
    """About how many texts are trained on; the others are held back."""
    return round((1 - SPLIT.validation) * len(data.texts))


def label_names(model: Any) -> tuple[str, ...]:
    """Labels by number; a label without a name is its number."""
    return model.config.labels or tuple(map(str, range(model.config.classes)))


def _refuse_header(path: Path, rows: Sequence[Labeled]) -> None:
    """A first row that is alone with its label, where others have many, is names of columns."""
    counts = Counter(row.label for row in rows)
    if counts[rows[0].label] == 1 and len(rows) > 2 * len(counts):
        raise DataError(
            f"{path}: the label of the first row, {rows[0].label!r}, is nowhere else (if the row names the columns, "
            "they must be text and label: rename them)"
        )


def _read_table(path: Path) -> list[Labeled]:
    """By the names of the columns; without names the label is the column with fewer different values."""
    problem: Exception | None = None
    for text, label in COLUMNS:
        try:
            found = read_labeled(path, text=text, label=label)
        except DataError as error:
            problem = problem or error
            continue
        if len({row.label for row in found}) <= len({row.text for row in found}):
            if text.isdecimal():
                _refuse_header(path, found)
            return found
    raise DataError(f"{path}: no columns text and label ({problem})")
