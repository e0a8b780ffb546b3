"""Classification: texts with labels, for a model that tells them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from chainrule import ops
from chainrule.autograd import no_grad
from chainrule.data import LabelCorpus, LabeledBatches, SpecialIds, Split, label_ids, load_labels, segmented
from chainrule.data.batches.padded import Bucketed
from chainrule.data.batches.segmented import text_limit
from chainrule.data.read.tabular.reading import COPIES, copies_left_out
from chainrule.data.read.tabular.suspect import refuse_columns
from chainrule.errors import DataError
from chainrule.models import BERTClassifier
from chainrule.models.suited import Begun, Suited, for_bert
from chainrule.tasks.answer_options import Answer, AnswerOptions
from chainrule.tasks.labeled.confusion import Confusion
from chainrule.tasks.labeled.frozen import FrozenBatches
from chainrule.tasks.task import EvalBatches, Task
from chainrule.text import Tokenizer, WordPieceTokenizer
from chainrule.text.wordpiece import SPECIAL

SPLIT = Split(validation=0.1, test=0.0)
VOCABULARY = 30_000  # words at most
SHOWN = 10  # labels that are named with their counts


@dataclass(frozen=True)
class ClassificationTask(Task):
    """Texts to train on and texts to evaluate on, chosen by their hash."""

    find = staticmethod(load_labels)
    default: ClassVar[str] = "docstrings"
    unit: ClassVar[str] = "nats_per_label"
    perplexity: ClassVar[bool] = False
    model: ClassVar[str] = "a classifier"
    what: ClassVar[str] = "texts"
    counted: ClassVar[str] = "texts"
    scored: ClassVar[str] = "accuracy"
    baseline: ClassVar[str] = "bow-classifier"
    special_tokens: ClassVar[tuple[str, ...]] = SPECIAL
    corpus: LabelCorpus
    tokenizer: Tokenizer
    names: dict[str, int]
    """The number of each label."""
    training: list[Any]
    validation: list[Any]

    @classmethod
    def of(cls, data: LabelCorpus, tokenizer: Tokenizer | None = None, *, eval_only: bool = False) -> Self:
        """Without a tokenizer the vocabulary is made of the texts to train on."""
        labels = [label for row in data.texts for label in row.labels]
        names = label_ids(labels)
        if not eval_only:
            refuse_columns(data.name, [row.text for row in data.texts], labels, data.reading)
        training, validation = SPLIT.held_back(data.texts, lambda row: str(row.text), eval_only=eval_only)
        if not eval_only and not (training and validation):
            said = f"{len(data.texts)} {cls.what}{copies_left_out(data.copies)}"
            raise DataError(f"{data.name}: {said} (must be enough to hold back one in ten)")
        tokenizer = tokenizer or cls.vocabulary([row.text for row in training])
        return cls(data, tokenizer, names, training, validation)

    @classmethod
    def texts(cls, data: LabelCorpus, *, held_out: bool) -> list[str]:
        return [row.text for row in data.texts if held_out or SPLIT.part(row.text) == "train"]

    def __post_init__(self) -> None:
        SpecialIds.of(self.tokenizer.special_ids)  # refuses a tokenizer without them

    @classmethod
    def vocabulary(cls, texts: Sequence[str]) -> Tokenizer:
        """The tokenizer of a model that is given none: of a word that occurs once nothing can be learned."""
        return WordPieceTokenizer.of_words(texts, VOCABULARY, min_count=2)

    def prepare(self, model: Any) -> None:
        """How rare each feature of its bag of words is, if it has one."""
        if model.config.buckets:
            batches = (inputs for inputs, _ in self.cut(self.training, model, 256).once())
            rows = (zip(*model.features(x.ids, x.mask), strict=True) for x in batches)
            model.bag.count_texts(np.unique(ids[there > 0]) for some in rows for ids, there in some)

    def sizes(self) -> dict[str, Any]:
        """Numbers of tokens and of labels."""
        sizes = {"vocab_size": self.tokenizer.vocab_size, "classes": len(self.names)}
        return sizes | {"labels": tuple(self.names)}

    @classmethod
    def suited(cls, data: LabelCorpus, **begun: Unpack[Begun]) -> Suited:
        """By the number of texts to train on."""
        start = begun.get("start")
        found = for_bert(training_texts(data), trained=start is not None, frozen=begun.get("frozen", False))
        return found._replace(sizes={}) if type(start) is BERTClassifier else found  # it has its head

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

    def cut(self, rows: list[Any], model: Any, batch_size: int, seed: int = 0) -> Bucketed:
        """Texts of like lengths."""
        kind = partial(FrozenBatches, model=model) if model.frozen else LabeledBatches
        return kind(
            [self.tokenizer.encode(row.text) for row in rows],
            [self.names[row.label] for row in rows],
            special=SpecialIds.of(self.tokenizer.special_ids),
            batch_size=batch_size,
            block_size=model.config.block_size,
            seed=seed,
            pool=8,
        )

    def confusion(self, model: Any, batches: EvalBatches) -> Confusion:
        """Which labels the model scores highest, and which are right."""
        with no_grad():
            found = ((model(*x).numpy().argmax(axis=-1), labels) for x, labels in batches)
            return Confusion.of(found, label_names(model))

    def scores(self, model: Any, batches: EvalBatches) -> dict[str, float | None]:
        """The fraction of labels that are the ones the model scores highest, and their F1."""
        return self.confusion(model, batches).scores()

    def evaluate(self, model: Any, batches: EvalBatches) -> dict[str, Any]:
        """The loss on these batches, the scores, and the confusion matrix."""
        loss, found = model.eval().mean_loss(batches), self.confusion(model, batches)
        return {self.unit: loss, **found.scores(), **found.details()}

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
        told = self.corpus.reading is not None and COPIES in self.corpus.reading.dropped
        copies = "" if told else copies_left_out(self.corpus.copies)
        return f"{len(self.corpus.texts):,} {self.what} of {self.corpus.name}: {most}{more}{copies}"


def training_texts(data: LabelCorpus) -> int:
    """About how many texts are trained on; the others are held back."""
    return round((1 - SPLIT.validation) * len(data.texts))


def label_names(model: Any) -> tuple[str, ...]:
    """Labels by number; a label without a name is its number."""
    return model.config.labels or tuple(map(str, range(model.config.classes)))
