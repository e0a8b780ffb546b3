"""What is measured of a model on batches that it does not learn from: its loss, scores, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from chainrule.autograd import precision
from chainrule.distributed import world
from chainrule.inspect import output_entropy
from chainrule.models import Model
from chainrule.models.microbatch import take
from chainrule.tasks.task import EvalBatches
from chainrule.train.log import Scores
from chainrule.train.step import Step

ENTROPY_TARGETS = 256  # enough for a mean, and next to nothing beside an evaluation

Measure = Callable[[Any, EvalBatches], Scores]


class Evaluation:
    """Of a model in training: in its precision, and with the running mean of its weights if there is one."""

    def __init__(
        self, model: Model, batches: EvalBatches, step: Step, measure: Measure | None = None
    ) -> None:
        """`measure` gives scores beside the loss."""
        self.model = model
        self.batches = batches
        self.step = step
        self.measure = measure

    @contextmanager
    def as_kept(self) -> Iterator[None]:
        """In here the model is in evaluation mode and has the weights that a checkpoint would be used with."""
        self.model.eval()
        with precision(self.step.config.precision), self.step.averaged():
            yield

    def loss(self) -> float:
        """The mean loss on the batches, or NaN if there are none."""
        if not self.batches:
            return math.nan
        with self.as_kept():
            return self._mean_loss()

    def _mean_loss(self) -> float:
        """The mean over all batches, of which each rank takes some."""
        ranks = world()
        if ranks.size == 1:
            return self.model.mean_loss(self.batches)
        sums = np.zeros((len(self.model.counts(*self.batches[0])), 2))
        for part, found in enumerate(self.model.loss_sums(self.batches[ranks.rank :: ranks.size])):
            sums[part] += found
        ranks.sum(sums.reshape(-1))
        return float((sums[:, 0] / np.maximum(sums[:, 1], 1)).sum())

    def scores(self) -> Scores:
        """What else is measured on the batches, by name; nothing if no `measure` was given."""
        if not (self.batches and self.measure):
            return {}
        with self.as_kept():
            return self.measure(self.model, self.batches)

    def entropy(self) -> float | None:
        """Mean entropy of the predictions for a few rows of the first batch, in nats."""
        if not self.batches:
            return None
        inputs, targets = self.batches[0]
        if self.model.divisible:
            few = slice(max(1, ENTROPY_TARGETS * len(targets) // max(1, targets.size)))
            inputs, targets = take(inputs, few), targets[few]
        with self.as_kept():
            return output_entropy(self.model, (inputs, targets))
