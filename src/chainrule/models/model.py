"""What training knows of a model: a loss for a batch, in parts that are each a mean over what counts.

A batch is (inputs, targets). Inputs are an array of ids, or a named tuple of arrays with one row per example, such as
`data.Pair`; what they mean is between a model and its batches.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from chainrule.autograd import Tensor, checkpoint, no_grad
from chainrule.autograd.abstract import TooLarge, abstract
from chainrule.autograd.types import Array
from chainrule.calls import Fields
from chainrule.errors import ConfigError
from chainrule.models.microbatch import Batch, State
from chainrule.nn import Layer
from chainrule.nn.init import abstract_parameters
from chainrule.types import IGNORE
from chainrule.validate import Check

ABSURD = 1 << 24  # wider than any layer, larger than any vocabulary, longer than any context


class Config(Fields):
    """Base of the dataclasses of sizes."""

    if TYPE_CHECKING:  # of those with an MLP in each block
        n_embd: int
        n_hidden: int | None

    @property
    def inside(self) -> int:
        """Width inside the MLP: four times n_embd, unless n_hidden is given."""
        return 4 * self.n_embd if self.n_hidden is None else self.n_hidden

    @property
    def n_params(self) -> int:
        """The number of parameters of the model that has these sizes."""
        from chainrule.models.registry import model_class  # which knows all models

        return model_class(self).n_params(self)


def check_labels(owner: str, config: Any) -> None:
    """The rules of `classes` and `labels`, fields of every classifier's config."""
    object.__setattr__(config, "labels", tuple(config.labels))  # JSON has lists only
    Check(owner, config).at_least(2, "classes")
    if config.labels and len(set(config.labels)) != config.classes:
        raise ConfigError(
            f"{owner}: labels are {', '.join(config.labels)}, classes {config.classes} (must be as many names)"
        )


class Model(Layer):
    """Something to train. `config` is its frozen dataclass of sizes."""

    def __init__(self, config: Any) -> None:
        self._check_kind(config)
        self.config = config

    def _check_kind(self, config: Any) -> None:
        """Refuse what is not the config of this model, such as a dict of its fields."""
        from chainrule.models.registry import ALL  # which knows all models

        name, kind = next(((n, f.config) for n, f in ALL.items() if f.model is type(self)), ("", object))
        if not isinstance(config, kind):
            owner, given = type(self).__name__, type(config).__name__
            fix = f'cr.models.{owner}(cr.models.{kind.__name__}(...)), or cr.models.make("{name}", ...)'
            raise ConfigError(f"{owner}: config is a {given} (must be a {kind.__name__}: {fix})")

    @property
    def context(self) -> int:
        """Tokens that it reads at most."""
        return int(self.config.block_size)

    @classmethod
    def abstract(cls, config: Any) -> Self:
        """A model of this size whose parameters have shapes only: to be traced and counted."""
        with abstract_parameters():
            return cls(config)

    @classmethod
    def n_params(cls, config: Any) -> int:
        """The number of parameters of a model of this size, without making it.

        All layers from the second on are alike: so a file that asks for a billion of them costs no time. Of sizes that
        no memory could hold it is the largest integer.
        """
        layers = getattr(config, "n_layer", 1)
        sizes = [size for name, size in vars(config).items() if name != "n_layer" and isinstance(size, int)]
        if max(sizes, default=0) >= ABSURD:
            return sys.maxsize
        try:
            return cls._count(config, layers)
        except TooLarge:
            return sys.maxsize

    @classmethod
    def _count(cls, config: Any, layers: int) -> int:
        if layers <= 3:
            return cls.abstract(config).count()
        two, three = (cls.abstract(replace(config, n_layer=n)).count() for n in (2, 3))
        return two + (layers - 2) * (three - two)

    @property
    def n_classes(self) -> int | None:
        """The number of classes of its loss, or of the first part of it: a uniform guess costs ln(n_classes).

        None if there are none.
        """
        of_config = (getattr(self.config, name, None) for name in ("classes", "vocab_size"))
        return next(filter(None, of_config), None)

    divisible = True
    """A batch may be split into microbatches: its loss is made of theirs. If not there are `to_compare`, `compared`."""
    recompute = False
    """Keep only the input of each block and recompute the rest in backward."""

    @property
    def microbatch_tokens(self) -> int | None:
        """Tokens of a batch that are learned from at a time, unless told otherwise; None: all of them."""
        return None

    @contextmanager
    def answering(self) -> Iterator[Self]:
        """The model without dropout and without gradients; afterwards it is in the mode that it was in."""
        before = self.training
        try:
            with no_grad():
                yield self.eval()
        finally:
            self.train(before)

    def through(self, block: Callable[..., Tensor], *inputs: Any) -> Tensor:
        """`block(*inputs)`, with activations kept or recomputed."""
        return checkpoint(block, *inputs) if self.recompute else block(*inputs)

    reads: ClassVar[tuple[str, ...]] = ("tokens",)
    """Which sizes, besides its rows, a batch of it has: tokens, source (tokens of another text), masked (words)."""

    def example_batch(self, rows: int, tokens: int, source: int = 0, masked: int = 0) -> tuple[Any, Array]:
        """Inputs and targets of this size, all of them 0: for what depends on shapes alone."""
        return abstract((rows, tokens), np.int64), abstract((rows, tokens), np.int64)

    def decoder(self, ids: Array, *memory: Any) -> Tensor:
        """One decoding pass: ids (B, T) -> logits (B, T, V) of what follows each token

        A model that reads a source takes its memory (B, S, C) too.
        """
        raise NotImplementedError

    def loss(self, inputs: Any, targets: Array) -> Tensor:
        """The mean loss of a batch, in nats; with several parts, their sum."""
        raise NotImplementedError

    def losses(self, inputs: Any, targets: Array) -> tuple[Tensor, ...]:
        """The parts of the loss, each a mean over as many targets as `counts` says."""
        return (self.loss(inputs, targets),)

    def to_compare(self, inputs: Any) -> tuple[Tensor, ...]:
        """By what examples are compared with all others of a batch: tensors with a row for each, made of it alone."""
        raise NotImplementedError

    def compared(self, vectors: tuple[Tensor, ...], targets: Array) -> Tensor:
        """The loss of a batch by what `to_compare` gives for it."""
        raise NotImplementedError

    def initial_state(self, B: int) -> State | None:
        """The state of B texts before their first token; None for a model that carries no state from batch to batch."""
        return None

    def prepared(self, batch: Batch) -> Batch:
        """What NumPy makes of a batch before the pass, which is then the same ops for all batches of these shapes.

        Whatever depends on the values of inputs and targets belongs here: which places count, masks, features. What is
        prepared stays as it is, so a loss takes both.
        """
        return batch

    def losses_and_state(self, batch: Batch) -> tuple[tuple[Tensor, ...], State | None]:
        """The parts of the loss, and the state after the batch, from which its texts continue."""
        return self.losses(batch.inputs, batch.targets), None

    def counts(self, inputs: Any, targets: Array) -> tuple[int, ...]:
        """Number of targets in each part of the loss, to weight microbatches by."""
        return (int(np.count_nonzero(np.asarray(targets) != IGNORE)),)

    def mean_loss(self, batches: Iterable[tuple[Any, Array]]) -> float:
        """The loss of many batches as if they were one, without a gradient."""
        return sum(self.mean_losses(batches))

    def mean_losses(self, batches: Iterable[tuple[Any, Array]]) -> list[float]:
        """Each part of the loss of many batches, as if they were one."""
        return [total / max(1, count) for total, count in self.loss_sums(batches)]

    def loss_sums(self, batches: Iterable[tuple[Any, Array]]) -> list[tuple[float, int]]:
        """Each part of the loss of many batches: the sum over its targets, and their number."""
        sums: dict[int, float] = {}
        counts: dict[int, int] = {}
        with no_grad():
            for inputs, targets in batches:
                parts = zip(self.losses(inputs, targets), self.counts(inputs, targets), strict=True)
                for part, (loss, n) in enumerate(parts):
                    sums[part] = sums.get(part, 0.0) + (loss.item() * n if n else 0.0)
                    counts[part] = counts.get(part, 0) + n
        return [(sums[part], counts[part]) for part in sums]
