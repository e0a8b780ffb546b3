"""How one step of a training is made. A `Trainer` decides when; a step object knows how, and what must be kept of it.

`GradientStep` is the usual one: batch → loss → backward → clip → optimizer. What it does depends on the parameters, the
optimizer's state, the state the model carries, and the number of the step alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from chainrule import random
from chainrule.autograd import precision
from chainrule.autograd.types import Array
from chainrule.data import BatchSource
from chainrule.doctor.explain import explain
from chainrule.errors import ConfigError, kind_of
from chainrule.models import Model
from chainrule.models.gradient import batch_count
from chainrule.models.microbatch import Batch, State, row_count
from chainrule.optim import clip_factor
from chainrule.tasks.objectives import check_objective
from chainrule.text import Tokenizer
from chainrule.train.config import TrainConfig
from chainrule.train.ema import Average
from chainrule.train.general import Pull
from chainrule.train.precision import LossScale, NoScale
from chainrule.train.share import Share
from chainrule.train.skips import Skips

GoingOn = Callable[[str], bool]


class Step:
    """How steps are made."""

    by_epoch = False
    """A step reads all data once. Its log and checkpoint hold nothing but its number and its result."""
    rate = 0.0
    """The learning rate at the end of the last step."""
    average: Average | None = None
    """A running mean of the weights, if it is asked for."""
    state: State | None = None
    """What the model carries from the last batch to the next one; None if it carries nothing."""
    uniform: float | None = None
    """The loss of a uniform guess, if that is known."""
    config: TrainConfig
    metrics: Mapping[str, float] = MappingProxyType({})
    """What is known of the last step beside its loss, for the log."""

    @property
    def tokens(self) -> int:
        """Targets of a step; 0 if a step tells its pace itself."""
        return 0

    def __call__(self, number: int, lr: float, going_on: GoingOn) -> tuple[float, float | None] | None:
        """Make step `number`, counted from 0: its loss, and the norm of its gradient if there is one.

        A long step tells `going_on` how far it is, and is given up (None) if the answer is no.
        """
        raise NotImplementedError

    def rest(self) -> None:
        """Free what steps alone need: there is none for a while."""

    def averaged(self) -> AbstractContextManager[None]:
        """In here the model has the weights that are evaluated and kept: their running mean, if there is one."""
        return self.average.in_place() if self.average else nullcontext()

    def arrays(self) -> Mapping[str, Array]:
        """What an optimizer remembers, and what else a step depends on, for a checkpoint."""
        return {}

    def load(self, arrays: Mapping[str, Array]) -> None:
        """Take back what `arrays` gave."""


class GradientStep(Step):
    """The gradient of a batch, clipped, and one update of AdamW. A step that is not finite is left out."""

    def __init__(
        self, model: Model, batches: BatchSource, config: TrainConfig, tokenizer: Tokenizer | None = None
    ) -> None:
        if (config.accumulate or 1) > 1 and not model.divisible:
            fix = "take a smaller batch_size, or recompute, for less memory"
            rule = f"must be 1 for {kind_of(model)}: its examples are compared with all others of the batch"
            raise ConfigError.of("train", {"accumulate": config.accumulate}, f"{rule}; {fix}")
        for _, part in model.named_layers():
            if isinstance(part, Model):  # the model, and the body inside it if it is a head on one
                part.recompute = config.recompute
        self.model = model
        self.batches = batches
        self.config = config
        self.tokenizer = tokenizer
        self.prepare()
        self.scale = LossScale() if config.precision == "fp16" else NoScale()
        self.average = Average(model.parameters(), config.ema) if config.ema else None
        self.skips = Skips()
        self.pull: Pull | None = None  # towards the weights that a tuned model had
        self.uniform = math.log(model.n_classes) if model.n_classes else None

    def prepare(self) -> None:
        """Make the optimizer, and what this process computes of a gradient, as the settings say."""
        self.share = Share.of(self.model, self.config)
        self.optimizer = self.share.optimizer(self.config)

    @property
    def tokens(self) -> int:
        return self.batches.tokens

    def __call__(self, number: int, lr: float, going_on: GoingOn = lambda said: True) -> tuple[float, float]:
        """One update, or none if its loss or gradient is not finite; returns both, the gradient as its norm."""
        self.rate = lr
        inputs, targets = self.batches.batch(number)
        check_objective(self.model, inputs)
        self.model.train()
        buffers = [(buffer, buffer.copy()) for _, buffer in self.model.named_buffers()]
        factor = self.scale.factor
        with (
            random.step(number),
            precision(self.config.precision),
            np.errstate(all="ignore"),  # what is not finite is seen below
        ):
            batch = Batch(inputs, targets, self._state(number, row_count(inputs)))
            loss, state = self.share.backward(batch, self.config.accumulate, factor)
            loss += self.pull.backward(factor) if self.pull else 0.0
        norm = self.share.norm() / factor
        finite = math.isfinite(loss + norm)
        if not finite:  # a running mean has taken it in already
            for buffer, before in buffers:
                buffer[...] = before
        self.scale.update(finite)
        if finite:
            self.share.update(self.optimizer, lr, clip_factor(norm, self.config.clip) / factor)
            self.state = state
            self.skips = Skips()
            if self.average:
                self.average.update(self.optimizer.steps)
        else:
            self._skip(number, loss, norm, batch)
        return loss, norm

    def rest(self) -> None:
        self.share.rest()

    def _state(self, number: int, rows: int) -> State | None:
        """The state that the rows of this batch continue from: that of the last batch, or a new one."""
        if self.state is None or self.batches.begins(number):
            return self.model.initial_state(rows)
        return self.state

    def _skip(self, number: int, loss: float, norm: float, batch: Batch) -> None:
        """Leave out a step that is not finite; the weights are as before it."""
        what = f"loss {loss}, gradient norm {norm} at step {number + 1}"
        if isinstance(self.scale, NoScale):
            # Parts as they were computed, so that dropout drops the same. A model that compares all rows of a batch is
            # searched in one part: on several ranks, where each read some rows, it had other masks.
            ranks = self.share.ranks if self.model.divisible else 1
            count = batch_count(self.model, batch.inputs, self.config.accumulate, ranks)
            parts = min(self.config.batch_size, count)
            config = replace(self.config, accumulate=parts)
            finding = explain(self.model, batch, config, number, self.tokenizer)
            self.skips.add(what, finding, stop=self.config.on_nan == "stop")
        else:  # it is the way to find the largest scale
            self.skips.reason = f"{what} in fp16; from now on the loss is scaled by {self.scale.factor:g}"

    def arrays(self) -> Mapping[str, Any]:
        return self.optimizer.views()

    def load(self, arrays: Mapping[str, Any]) -> None:
        self.optimizer.load(arrays)
