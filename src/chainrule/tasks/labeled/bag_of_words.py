"""Labels by words alone: the baseline of every classifier, and a family of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

from chainrule.data import Bag, BagBatches, LabelCorpus, NGrams
from chainrule.models import BagOfWords
from chainrule.models.suited import Begun, Suited, for_bag_of_words
from chainrule.tasks.labeled.classification import ClassificationTask, training_texts
from chainrule.text import Tokenizer, WordTokenizer

VOCABULARY = 50_000  # words at most
RARE = 2  # a word that occurs less often is unknown: of one text nothing can be learned about it


@dataclass(frozen=True)
class BagOfWordsTask(ClassificationTask):
    """Texts to train on and texts to evaluate on, as bags of words; the same ones as for any other classifier."""

    baseline: ClassVar[str] = ""
    special_tokens: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        """Any tokenizer will do."""

    @classmethod
    def vocabulary(cls, texts: Sequence[str]) -> Tokenizer:
        """Words in lower case."""
        return WordTokenizer.train(texts, VOCABULARY, min_count=RARE, lowercase=True)

    @classmethod
    def suited(cls, data: LabelCorpus, **begun: Unpack[Begun]) -> Suited:
        """By the number of texts to train on."""
        return for_bag_of_words(training_texts(data))

    def prepare(self, model: BagOfWords) -> None:
        """How rare each feature is, by the texts to train on."""
        features = features_of(model)
        model.bag.count_texts(features(tokens)[0] for tokens in self._tokens(model, self.training))

    def _tokens(self, model: BagOfWords, rows: list[Any]) -> list[Any]:
        return [self.tokenizer.encode(row.text)[: model.config.block_size] for row in rows]

    def cut(self, rows: list[Any], model: BagOfWords, batch_size: int, seed: int = 0) -> BagBatches:
        """Bags of features."""
        return BagBatches(
            self._tokens(model, rows),
            [self.names[row.label] for row in rows],
            features=features_of(model),
            batch_size=batch_size,
            block_size=model.config.features,
            seed=seed,
        )

    @classmethod
    def inputs(cls, model: BagOfWords, tokenizer: Tokenizer, texts: Sequence[str]) -> Bag:
        """What the model reads of some texts."""
        return features_of(model).bag([tokenizer.encode(text)[: model.config.block_size] for text in texts])


def features_of(model: BagOfWords) -> NGrams:
    """The features that a model knows."""
    return NGrams(model.config.vocab_size, model.config.ngrams, model.config.buckets)
