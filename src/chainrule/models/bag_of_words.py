"""A bag of words: logistic regression on the words and pairs of words of a text, whatever their order.

    x_f    = tf_f idf_f / length                     tf = 1 + ln count,  idf = 1 + ln((1 + N) / (1 + N_f))
    logits = W x + b
    loss   = cross-entropy + ½ l2 ‖W‖²               the penalty in training only

N is the number of training texts, N_f that of texts with the feature f. A text has a few features out of many: W x
gathers their rows and adds them up, and never sees the zeros.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.recording import constant
from chainrule.autograd.types import Array
from chainrule.models.microbatch import Batch, lengthened, rounded
from chainrule.models.model import Config, Model, check_labels
from chainrule.nn import Layer
from chainrule.nn.init import buffer, parameter, zeros
from chainrule.ops.arrays.indexing import check_ids
from chainrule.types import IGNORE
from chainrule.validate import Check

WEIGHTINGS = ("tfidf", "counts", "binary")


@dataclass(frozen=True)
class BagOfWordsConfig(Config):
    """The size of a bag of words.

    >>> import chainrule as cr
    >>> cr.models.BagOfWordsConfig(vocab_size=1000, buckets=500, classes=3).n_params
    4503
    """

    ngrams: int = 2
    """Longest run of neighboring words that is a feature; 1 for single words only."""
    buckets: int = 1 << 16
    """Features for runs of words, which are hashed to them."""
    weighting: str = "tfidf"
    """What a feature counts: tfidf (often in the text, rare elsewhere), counts, or binary (there or not)."""
    l2: float = 1e-5
    """Weight of half the squared length of W in the training loss: rare words must not decide alone."""
    block_size: int = 1024
    """Longest text, in words; of a longer one the beginning is read."""
    vocab_size: int = 256
    """Vocabulary size."""
    classes: int = 2
    """Different labels."""
    labels: tuple[str, ...] = ()
    """Their names by number; empty if unknown."""

    def __post_init__(self) -> None:
        check = Check("bag of words", self)
        check.at_least(1, "ngrams", "buckets", "block_size", "vocab_size")
        check.one_of("weighting", WEIGHTINGS)
        check.not_negative("l2")
        check_labels("bag of words", self)

    @property
    def features(self) -> int:
        """Words, and buckets for runs of them."""
        return self.vocab_size + (self.buckets if self.ngrams > 1 else 0)


class Weighed(NamedTuple):
    """The features of texts (B, F), and what each of them counts (B, F); 0 for padding."""

    features: Array
    values: Array


class Bag(Layer):
    """W x of texts: scores of the classes by their features alone.

    The weights are `scale` times the parameters, so that beside other layers, at their learning rate, they grow as fast
    as a logistic regression wants.
    """

    buffers = ("idf",)

    def __init__(
        self, features: int, classes: int, *, weighting: str = "tfidf", l2: float = 0.0, scale: float = 1.0
    ) -> None:
        self.weight = parameter(zeros, (features, classes), decay=False)  # a row per feature
        self.idf = buffer(1.0, (features,))
        self.weighting = weighting
        self.l2 = l2
        self.scale = scale

    def count_texts(self, texts: Iterable[Array]) -> None:
        """Learn how rare each feature is, from the features (F,) of each training text, each once"""
        count, having = 0, np.zeros(len(self.idf))
        for ids in texts:
            count += 1
            having[ids] += 1
        self.idf[...] = 1 + np.log((1 + count) / (1 + having))

    def forward(self, ids: Array, counts: Array) -> Tensor:
        """ids (B, F), counts (B, F) -> (B, classes)"""
        return self.scores(self.weighed(ids, counts))

    def weighed(self, ids: Array, counts: Array) -> Weighed:
        """ids (B, F), counts (B, F) -> features and what each of them counts"""
        ids = check_ids("embedding", ids, len(self.idf))
        return Weighed(ids, (self.scale * self.values(ids, counts)).astype(self.weight.dtype))

    def scores(self, x: Weighed) -> Tensor:
        """features (B, F), values (B, F) -> (B, classes)"""
        return ops.embedding_bag(self.weight, ids=x.features, weights=x.values)

    def values(self, ids: Array, counts: Array) -> Array:
        """What each feature counts (B, F), in rows of length 1; 0 for padding"""
        there = np.asarray(counts) > 0
        match self.weighting:
            case "tfidf":
                x = np.where(there, 1 + np.log(np.maximum(counts, 1)), 0) * self.idf[ids]
            case "counts":
                x = np.asarray(counts, np.float32)
            case _:
                x = there.astype(np.float32)
        return np.asarray(x / np.sqrt(np.maximum((x * x).sum(axis=1, keepdims=True), 1e-12)))

    def penalty(self) -> Tensor:
        """½ l2 ‖W‖²"""
        factor = np.asarray(self.l2 * self.scale**2, self.weight.dtype)
        return ops.l2_loss(self.weight) * constant(factor)


class BagOfWords(Model):
    """A label for each text, by its words. A batch is `data.Bag` (ids, counts) and labels (B,).

    >>> import chainrule as cr, numpy as np
    >>> model = cr.models.BagOfWords(cr.models.BagOfWordsConfig(ngrams=1, vocab_size=10, classes=3))
    >>> model(np.array([[4, 7]]), np.array([[1, 2]])).shape
    (1, 3)
    """

    def __init__(self, config: BagOfWordsConfig) -> None:
        super().__init__(config)
        self.bag = Bag(config.features, config.classes, weighting=config.weighting, l2=config.l2)
        self.bias = parameter(zeros, (config.classes,))

    def example_batch(self, rows: int, tokens: int, source: int = 0, masked: int = 0) -> tuple[Any, Array]:
        ids, targets = super().example_batch(rows, tokens)
        return (ids, np.ones((rows, tokens), np.int32)), targets[:, 0]

    def forward(self, ids: Array, counts: Array) -> Tensor:
        """ids (B, F), counts (B, F) -> logits (B, classes)"""
        return self.bag(ids, counts) + self.bias

    def prepared(self, batch: Batch) -> Batch:
        """What each feature counts, in rows of few lengths."""
        if isinstance(batch.inputs, Weighed):
            return batch
        found = self.bag.weighed(*batch.inputs)
        size = found.features.shape[1]
        longer = Weighed(*(lengthened(x, rounded(size) - size, axis=1) for x in found))
        return batch._replace(inputs=longer)

    def loss(self, inputs: Any, targets: Array) -> Tensor:
        """The mean negative log-likelihood of the labels that count, in nats; in training with the penalty."""
        logits = self.bag.scores(self.prepared(Batch(inputs, targets)).inputs) + self.bias
        surprise = ops.cross_entropy(logits, targets=targets, ignore_index=IGNORE)
        return surprise + self.bag.penalty() if self.training and self.config.l2 else surprise
