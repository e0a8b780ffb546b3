"""The training loop: batch → loss → backward → clip → optimiser, with evaluations and checkpoints in between.

What step n does depends on the parameters, the optimiser's state, the state a recurrent model carries, and n alone:
batches and dropout are functions of the seed and n. So a run that is stopped and resumed gives the same bits as one
that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from chainrule import random
from chainrule.autograd import precision
from chainrule.data import BatchSource
from chainrule.doctor import Finding, Monitor, Watch
from chainrule.doctor.explain import explain
from chainrule.doctor.preflight import examine
from chainrule.errors import ConfigError, Setting
from chainrule.inspect import output_entropy
from chainrule.machine import keep_freed_memory, one_blas_thread
from chainrule.models import Model
from chainrule.models.gradient import backward
from chainrule.models.microbatch import Batch, State, row_count
from chainrule.optim import AdamW, EarlyStopping, clip_global_norm
from chainrule.tasks.objectives import check_causality, check_objective
from chainrule.text import Tokenizer
from chainrule.train.config import TrainConfig
from chainrule.train.ema import Average
from chainrule.train.interrupt import Interrupt
from chainrule.train.log import Logger, shorten
from chainrule.train.precision import LossScale, NoScale
from chainrule.train.schedule import Plan
from chainrule.train.skips import Skips, check_sound, noted
from chainrule.types import Ids


@dataclass(frozen=True)
class Result:
    """How a run ended. Losses are mean negative log-likelihoods in nats per token."""

    steps: int
    validation: float
    seconds: float
    interrupted: bool
    best: tuple[int, float] | None = None
    """The best step and its loss, of a run that stops when it finds no better."""


class Trainer:
    """A model of any family, its optimiser, and how far they have come.

    `evaluate` measures the loss on `eval_batches`, of (inputs, targets). With a tokenizer the doctor can name the token
    that makes trouble.
    """

    def __init__(
        self,
        model: Model,
        batches: BatchSource,
        eval_batches: Sequence[tuple[Any, Ids]],
        config: TrainConfig,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        self.model = model
        self.batches = batches
        self.eval_batches = eval_batches
        self.config = config
        if config.accumulate > 1 and not model.divisible:
            raise ConfigError(
                *(
                    "train: ",
                    Setting("accumulate"),
                    f" is {config.accumulate} (must be 1 for a {type(model).__name__}: its examples are ",
                ),
                "compared with all others of the batch; take a smaller batch_size, or recompute, for less memory)",
            )
        for _, part in model.named_layers():
            if isinstance(part, Model):  # the model, and the body inside it if it is a head on one
                part.recompute = config.recompute
        self.tokenizer = tokenizer
        self.monitor = Monitor(config, model.n_classes)
        self.optimiser = AdamW(
            model.parameters(), config.lr, (0.9, config.beta2), weight_decay=config.weight_decay
        )
        self.plan = Plan(config)
        self.scale = LossScale() if config.precision == "fp16" else NoScale()
        self.average = Average(model.parameters(), config.ema) if config.ema else None
        self.stopping = EarlyStopping(config.patience) if config.patience else None
        self.steps = 0  # done
        self.seconds = 0.0  # spent on them, evaluations included
        self.skips = Skips()
        self.state: State | None = None
        """What the model carries from the last batch to the next one; None if it carries nothing."""

    def run(
        self,
        log: Logger,
        save: Callable[[], object] = lambda: None,
        sample: Callable[[], str] | None = None,
    ) -> Result:
        """Train to the end of the plan, or until Ctrl-C; `save` is called when a checkpoint is due, and last.

        Dropout is drawn of the seed of the configuration. If all steps were made before, the model is only judged.
        """
        if self.finished:
            validation = self.evaluate()
            check_sound(self.model, self.config, self.steps, validation)
            return Result(self.steps, validation, self.seconds, False, self.best)
        check_causality(self.model)
        keep_freed_memory()
        began = time.perf_counter() - self.seconds
        validation, judged = math.nan, -1
        with random.seeded(self.config.seed), one_blas_thread(), Interrupt() as interrupt:
            while not self.finished and not interrupt.asked:
                self._advance(log, began)
                if self.plan.finished(self.steps, self.seconds):
                    break
                if sample and self._due(self.config.sample_every) and (text := sample()):
                    log.note(self.steps, {"sample": text}, f"writes: {shorten(text)}")
                if self._due(self.config.eval_every):
                    validation, judged = self._judge(log, save), self.steps
                if self._due(self.config.save_every):
                    self._check(log)
                    save()
            stopped = interrupt.asked and not self.finished
            if stopped:  # whoever asked may not wait; and what the unbroken run does not do leaves no trace
                self._check(log)
                save()
                validation = validation if judged == self.steps else self.evaluate()
            else:
                validation = validation if judged == self.steps else self._judge(log, save)
                save()
        return Result(self.steps, validation, self.seconds, stopped, self.best)

    def _advance(self, log: Logger, began: float) -> None:
        """One step, and what there is to tell of it."""
        lr = self.plan.lr(self.steps)
        with noted(log, self.steps + 1):
            loss, norm = self.update(lr)
        self.seconds = time.perf_counter() - began
        left = self.plan.seconds_left(self.steps, self.seconds)
        log.step(self.steps, loss, lr=lr, norm=norm, seconds=self.seconds, left=left)
        self.tell(log, self.monitor.step(loss, norm))
        if self.skips.reason:
            log.note(self.steps, {"skipped": self.skips.reason}, f"skipped: {self.skips.reason}")
        if self.config.watch_every and (seen := self.look(lr)):
            log.note(self.steps, seen, *seen["watch"]["problems"])
        self.plan.revise(self.steps, self.seconds)

    @property
    def finished(self) -> bool:
        """All planned steps are made, or patience is at its end."""
        tired = self.stopping is not None and self.stopping.waited >= self.stopping.patience
        return tired or self.plan.finished(self.steps, self.seconds)

    def update(self, lr: float) -> tuple[float, float]:
        """One step; returns the loss of its batch and the norm of its gradient before clipping."""
        inputs, targets = self.batches.batch(self.steps)
        check_objective(self.model, inputs)
        parameters = self.optimiser.params
        parameters.zero_grad()
        self.model.train()
        buffers = [(buffer, buffer.copy()) for _, buffer in self.model.named_buffers()]
        factor = self.scale.factor
        with (
            random.step(self.steps),
            precision(self.config.precision),
            np.errstate(all="ignore"),  # what is not finite is seen below
        ):
            batch = Batch(inputs, targets, self._state(row_count(inputs)))
            loss, state = backward(self.model, batch, accumulate=self.config.accumulate, factor=factor)
        norm = clip_global_norm(parameters, self.config.clip * factor) / factor
        finite = math.isfinite(loss + norm)
        if not finite:  # a running mean has taken it in already
            for buffer, before in buffers:
                buffer[...] = before
        self.scale.update(finite)
        if finite:
            if factor != 1:
                parameters.grad *= 1 / factor  # exact: a power of two
            self.optimiser.step(lr)
            self.state = state
            self.skips = Skips()
            if self.average:
                self.average.update(self.optimiser.steps)
        else:
            self._skip(loss, norm, batch)
        self.steps += 1
        return loss, norm

    def _state(self, rows: int) -> State | None:
        """The state that the rows of the next batch continue from: that of the last batch, or a new one."""
        if self.state is None or self.batches.begins(self.steps):
            return self.model.initial_state(rows)
        return self.state

    def _skip(self, loss: float, norm: float, batch: Batch) -> None:
        """Leave a step out that is not finite; the weights are as before it."""
        what = f"loss {loss}, gradient norm {norm} at step {self.steps + 1}"
        if isinstance(self.scale, NoScale):
            finding = explain(self.model, batch, self.config, self.steps, self.tokenizer)
            self.skips.add(what, finding, stop=self.config.on_nan == "stop")
        else:  # it is the way to find the largest scale
            self.skips.reason = f"{what} in fp16; from now on the loss is scaled by {self.scale.factor:g}"

    def tell(self, log: Logger, findings: Iterable[Finding]) -> None:
        """Say findings aloud, and write down what is not well."""
        for finding in findings:
            record = {"finding": finding.to_dict()} if finding.level != "ok" else {}
            log.note(self.steps, record, str(finding))

    def _due(self, every: int) -> bool:
        return every > 0 and self.steps % every == 0

    def _judge(self, log: Logger, save: Callable[[], object]) -> float:
        """The loss on what was held back; with patience, a new best is saved at once."""
        validation = self.evaluate()
        log.evaluation(self.steps, validation, seconds=self.seconds, entropy=self.entropy())
        self._check(log, validation)
        self.tell(log, self.monitor.evaluation(self.steps, validation))
        if not self.skips.reason:  # the gradient is that of a step that was taken
            self.tell(log, self.monitor.weights(self.model.parameters(), self.optimiser))
        if self.stopping:
            self.stopping(self.steps, validation)
            if self.stopping.best_step == self.steps:
                save()
        return validation

    def _check(self, log: Logger, validation: float = 0.0) -> None:
        """Nothing broken is kept, nor called a result."""
        with noted(log, self.steps):
            check_sound(self.model, self.config, self.steps, validation)

    @property
    def best(self) -> tuple[int, float] | None:
        """The best step so far and its loss, if it is kept."""
        stopping = self.stopping
        return (stopping.best_step, stopping.best) if stopping and stopping.best_step >= 0 else None

    def examine(self, *, fresh: bool = True) -> list[Finding]:
        """What the doctor finds before the next step; weights that are not `fresh` were trained."""
        sizes = {"eval_batches": len(self.eval_batches), "steps": self.steps}
        return examine(self.model, self.batches, self.config, self.tokenizer, **sizes, fresh=fresh)

    def look(self, lr: float) -> dict[str, Any] | None:
        """What the model looks like from inside, on the batch that comes next; None if it is not time for it."""
        watch = Watch(self.config.watch_every)
        if not watch.due(self.steps):
            return None
        return watch.observe(self.steps, self.model, self.batches.batch(self.steps), self.optimiser, lr)

    def evaluate(self) -> float:
        """The mean loss on what was held back, of the averaged weights if there are such."""
        self.model.eval()
        with precision(self.config.precision), self.averaged():
            return self.model.mean_loss(self.eval_batches)

    def entropy(self) -> float | None:
        """Mean entropy of the model's predictions on the first evaluation batch, in nats."""
        with precision(self.config.precision), self.averaged():
            return output_entropy(self.model, self.eval_batches[0]) if self.eval_batches else None

    def averaged(self) -> AbstractContextManager[None]:
        """The model has in here the weights that are judged and kept: their running mean, if there is one."""
        return self.average.in_place() if self.average else nullcontext()
