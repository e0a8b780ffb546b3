"""What a pre-trained BERT is for: a label per text, a label per token, a vector per text.

    classifier    logits = classifier(dropout(pooled))                      Hugging Face's BertForSequenceClassification
                  pooled: what stands at [CLS], or with pooling="mean" the mean of the hidden rows; with buckets
                  a bag of words is added to the logits (boosting: Freund and Schapire 1997)
    tagger        logits = classifier(dropout(hidden))                      BertForTokenClassification
    embedder      vector = mean of the hidden rows, length 1                cosine = dot product

All of them have the body as `bert`, with the names of its weights: `fine_tune` takes it over from a model that has been
trained, or from a body alone. `model.bert = other.bert` even shares it: two heads on one body.
(Devlin et al. 2018; Reimers and Gurevych 2019 for the vectors of texts)
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple, TypeVar

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.recording import constant, settled
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.models.bag_of_words import Bag, Weighed
from chainrule.models.bert.body import BERT, BERTConfig, init
from chainrule.models.bert.pooling import POOLINGS, check_tokens, pool, unit
from chainrule.models.bert.pretraining import BERTPretraining, BERTPretrainingConfig
from chainrule.models.microbatch import Batch
from chainrule.models.model import Model, check_labels
from chainrule.nn import Dropout, Linear
from chainrule.types import IGNORE
from chainrule.validate import Check

M = TypeVar("M", bound=Model)

SCALE = 50.0  # of the weights of a bag of words: at 1e-3 they learn as at 0.05
PRIME = 0x9E3779B1  # spreads pairs of tokens over the buckets


@dataclass(frozen=True)
class BERTLabelsConfig(BERTConfig):
    """The size of a BERT that knows labels."""

    classes: int = 2
    """Different labels."""
    labels: tuple[str, ...] = ()
    """Their names by number; empty if unknown."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_labels("BERT", self)


@dataclass(frozen=True)
class BERTClassifierConfig(BERTLabelsConfig):
    """Sizes of a BERT that labels texts: those of its body, and the labels."""

    pooling: str = "cls"
    """What the label is read off: what stands at [CLS] (cls), as in Hugging Face's model, or the mean of all tokens."""
    buckets: int = 0
    """Buckets for pairs of neighboring tokens, of a bag of words beside the encoder; 0 for none, as in Hugging Face's
    model. The encoder then learns what the words alone leave open."""
    l2: float = 1e-5
    """Weight of half the squared length of the bag's weights in the training loss."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check = Check("BERT", self)
        check.one_of("pooling", POOLINGS)
        check.at_least(0, "buckets")
        check.not_negative("l2")


@dataclass(frozen=True)
class BERTTaggerConfig(BERTLabelsConfig):
    """The size of a BERT that labels tokens."""


class WithBag(NamedTuple):
    """The inputs of an encoder, and what the bag of words beside it reads."""

    texts: Any
    bag: Weighed


class BERTClassifier(Model):
    """A label for each text, or for each pair of texts, read off at [CLS] or off the mean of the tokens.

    A batch is `data.Segmented` (ids, mask, segments) and labels (B,).

    >>> import chainrule as cr, numpy as np
    >>> config = cr.models.BERTClassifierConfig(n_layer=1, n_head=2, n_embd=16, vocab_size=10, classes=3)
    >>> cr.models.BERTClassifier(config)(np.array([[1, 2, 3]])).shape
    (1, 3)
    """

    per_token = False

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.bert = BERT(config, pooled=getattr(config, "pooling", "") == "cls")
        self.dropout = Dropout(config.dropout)
        self.classifier = Linear(config.n_embd, config.classes, init=init)
        if buckets := getattr(config, "buckets", 0):
            self.bag = Bag(config.vocab_size + buckets, config.classes, l2=config.l2, scale=SCALE)

    def example_batch(self, rows: int, tokens: int, source: int = 0, masked: int = 0) -> tuple[Any, Array]:
        ids, targets = super().example_batch(rows, tokens)
        return (ids, None, None), targets if self.per_token else targets[:, 0]

    def forward(
        self, ids: Array, mask: Array | None = None, segments: Array | None = None, gist: Array | None = None
    ) -> Tensor:
        """ids (B, T), mask (B, T), segments (B, T) -> logits (B, classes); `gist` if it is known already"""
        read = self.read(ids, mask, segments, gist)
        return read + self.bag(*self.features(ids, mask)) if self.config.buckets else read

    def read(
        self, ids: Array, mask: Array | None, segments: Array | None, gist: Array | None = None
    ) -> Tensor:
        """What the encoder makes of a text: the same shapes"""
        pooling = self.config.pooling
        if gist is None:
            hidden = self.bert(ids, mask, segments)
        else:
            hidden, mask = Tensor.wrap(settled(gist)), None
        text = self.bert.pooler(hidden) if pooling == "cls" else pool(hidden, mask, pooling)  # (B, C)
        return self.classifier(self.dropout(text))

    def gist(self, ids: Array, mask: Array | None, segments: Array | None) -> Tensor:
        """ids (B, T), mask (B, T), segments (B, T) -> (B, 1, C): a row of which the head makes what it makes of all"""
        hidden, pooling = self.bert(ids, mask, segments), self.config.pooling
        return hidden[:, :1] if pooling == "cls" else pool(hidden, mask, pooling).reshape(len(ids), 1, -1)

    @property
    def frozen(self) -> bool:
        """Its body does not learn: a text always has the same gist."""
        return not any(param.requires_grad for _, param in self.bert.encoder.named_parameters())

    def features(self, ids: Array, mask: Array | None = None) -> tuple[Array, Array]:
        """ids (B, T), mask (B, T) -> what the bag reads: tokens and hashed pairs (B, 2T - 1), 1 where there is one"""
        ids = np.asarray(ids, np.int64)
        there = np.ones(ids.shape, np.int32) if mask is None else np.asarray(mask, np.int32)
        pairs = self.config.vocab_size + (ids[:, :-1] * PRIME + ids[:, 1:]) % self.config.buckets
        return np.concatenate([ids, pairs], axis=1), np.concatenate([there, there[:, 1:]], axis=1)

    def loss(self, inputs: Any, targets: Array) -> Tensor:
        """The mean negative log-likelihood of the labels that count, in nats.

        In training with a bag it is the mean of two: that of the bag alone, and that of both, in which the encoder
        learns what the bag leaves open. Learned together, an encoder that knows every text leaves the bag nothing.
        """
        inputs, targets, _ = self.prepared(Batch(inputs, targets))

        def surprise(logits: Tensor) -> Tensor:
            return ops.cross_entropy(logits, targets=targets, ignore_index=IGNORE)

        if not self._has_bag:
            return surprise(self(*inputs))
        read, words = self.read(*inputs.texts), self.bag.scores(inputs.bag)
        if not self.training:
            return surprise(read + words)
        total = surprise(words) + self.bag.penalty() + surprise(read + words.detach())
        return total * constant(np.asarray(0.5, total.dtype))

    def prepared(self, batch: Batch) -> Batch:
        """With a bag, what each of its features counts."""
        if not self._has_bag or isinstance(batch.inputs, WithBag):
            return batch
        ids, mask, *_ = batch.inputs
        return batch._replace(inputs=WithBag(batch.inputs, self.bag.weighed(*self.features(ids, mask))))

    @property
    def _has_bag(self) -> bool:
        return bool(getattr(self.config, "buckets", 0))


class BERTTagger(BERTClassifier):
    """A label for each token: names in a text, parts of speech. A batch is `data.Segmented` and labels (B, T).

    >>> import chainrule as cr, numpy as np
    >>> config = cr.models.BERTTaggerConfig(n_layer=1, n_head=2, n_embd=16, vocab_size=10, classes=5)
    >>> cr.models.BERTTagger(config)(np.array([[1, 2, 3]])).shape
    (1, 3, 5)
    """

    per_token = True

    # Of its rows each has a label: there is no gist that stands for all.
    def forward(  # type: ignore[override]
        self, ids: Array, mask: Array | None = None, segments: Array | None = None
    ) -> Tensor:
        """ids (B, T), mask (B, T), segments (B, T) -> logits (B, T, classes)"""
        return self.classifier(self.dropout(self.bert(ids, mask, segments)))


@dataclass(frozen=True)
class BERTEmbedderConfig(BERTConfig):
    """The size of a BERT that turns texts into vectors."""

    temperature: float = 0.05
    """Cosines are divided by it before the softmax of the loss: the smaller, the more the nearest ones count."""
    pooling: str = "mean"
    """What is made of the rows of a text: their mean, the first one (cls) or the maximum of each number (max)."""
    normalize: bool = True
    """Vectors have length 1."""
    max_length: int | None = None
    """Tokens that are read of a text, special ones included; block_size unless given."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check = Check("BERT", self)
        check.positive("temperature")
        check.one_of("pooling", POOLINGS)
        check.at_least(3, "max_length")
        fits = self.max_length is None or self.max_length <= self.block_size
        check.require(fits, "max_length", "block_size", rule="must not be more")


class BERTEmbedder(Model):
    """A vector for each text, of length 1 unless told otherwise; texts that mean the same shall have a large cosine.

    A batch is `data.Twins`, rows of texts (ids, mask) with their partners. The loss asks each text which partner
    of the batch is its own, and each partner the same: all others of the batch are wrong answers. So a larger batch is
    a harder question, and a batch cut into pieces is an easier one. Targets (B,) only say which rows count.

    >>> import chainrule as cr, numpy as np
    >>> config = cr.models.BERTEmbedderConfig(n_layer=1, n_head=2, n_embd=16, vocab_size=10)
    >>> vectors = cr.models.BERTEmbedder(config)(np.array([[1, 2, 3], [4, 5, 6]])).numpy()
    >>> vectors.shape, np.allclose((vectors**2).sum(axis=1), 1)
    ((2, 16), True)
    """

    n_classes = None  # the batch decides among how many
    divisible = False

    def __init__(self, config: BERTEmbedderConfig) -> None:
        super().__init__(config)
        self.bert = BERT(config, pooled=False)

    def example_batch(self, rows: int, tokens: int, source: int = 0, masked: int = 0) -> tuple[Any, Array]:
        ids, targets = super().example_batch(rows, tokens)
        return (ids, None, ids, None), targets[:, 0]

    def forward(self, ids: Array, mask: Array | None = None, segments: Array | None = None) -> Tensor:
        """ids (B, T), mask (B, T), segments (B, T) -> (B, C)"""
        vectors = pool(self.bert(ids, mask, segments), mask, self.config.pooling)
        return unit(vectors) if self.config.normalize else vectors

    def loss(self, inputs: Any, targets: Array) -> Tensor:
        """Contrastive loss: in nats, how surprising it is that a text belongs to its partner and not to another's.

        inputs (ids, mask, partner_ids, partner_mask), each (B, T), targets (B,) -> scalar; the others of the batch are
        the negatives, and both directions count alike.
        """
        return self.compared(self.to_compare(inputs), targets)

    def prepared(self, batch: Batch) -> Batch:
        """Looks for texts without a token where no kernel does: the first row of a text is there in any case."""
        if self.config.pooling == "cls":
            _, mask, _, partner_mask = batch.inputs
            check_tokens(mask)
            check_tokens(partner_mask)
        return batch

    def to_compare(self, inputs: Any) -> tuple[Tensor, ...]:
        """Vectors of texts and of their partners, (B, C) each, of length 1"""
        ids, mask, partner_ids, partner_mask = inputs
        texts, partners = self(ids, mask), self(partner_ids, partner_mask)
        return (texts, partners) if self.config.normalize else (unit(texts), unit(partners))

    def compared(self, vectors: tuple[Tensor, ...], targets: Array) -> Tensor:
        texts, partners = vectors
        texts = texts * constant(np.asarray(1 / self.config.temperature, texts.dtype))
        own = ops.diagonal_targets(targets, IGNORE)
        there, back = (
            ops.cross_entropy(ops.linear(a, b), targets=own, ignore_index=IGNORE)  # of scores (B, B)
            for a, b in ((texts, partners), (partners, texts))
        )
        return (there + back) * constant(np.asarray(0.5, texts.dtype))


def body_of(model: Any) -> BERT | None:
    """The BERT inside a model, or the model itself if it is one."""
    inside = getattr(model, "bert", model)
    return inside if isinstance(inside, BERT) else None


def fits_head(trained: Model, kind: type[Model]) -> bool:
    """There is a body in `trained` that a model of this kind can take."""
    return kind in CONFIGS and body_of(trained) is not None


def fine_tune(trained: Model, kind: type[M], **sizes: Any) -> M:
    """A new model of another kind on a copy of the body of `trained`; what it does not have starts anew.

    `sizes` are fields of the new config; those that are not given are those of `trained`.

    >>> import chainrule as cr
    >>> trained = cr.models.make("bert", n_layer=1, n_head=2, n_embd=16, vocab_size=10)
    >>> cr.models.fine_tune(trained, cr.models.BERTClassifier, classes=3).config.classes
    3
    """
    body = body_of(trained)
    if body is None or kind not in CONFIGS:
        known = ", ".join(each.__name__ for each in CONFIGS)
        raise ConfigError(
            f"fine_tune: {type(trained).__name__} to {getattr(kind, '__name__', kind)} "
            f"(must be a model with a BERT inside to one of {known})"
        )
    config = CONFIGS[kind]
    known_sizes = {field.name for field in fields(config)}
    kept = {name: value for name, value in asdict(trained.config).items() if name in known_sizes}
    model = kind(config(**kept | sizes))
    state = model.state()
    taken = {f"bert.{name}": value for name, value in body.state().items()}
    model.load(state | {name: value for name, value in taken.items() if name in state})
    return model


CONFIGS: dict[type[Model], type[Any]] = {
    BERTPretraining: BERTPretrainingConfig,
    BERTClassifier: BERTClassifierConfig,
    BERTTagger: BERTTaggerConfig,
    BERTEmbedder: BERTEmbedderConfig,
}
