"""The training loop: batch → loss → backward → clip → optimiser, with evaluations and checkpoints in between.

What step n does depends on the parameters, the optimiser's state, the state a recurrent model carries, and n alone:
batches and dropout are functions of the seed and n. So a run that is stopped and resumed gives the same bits as one
that was not.
R-132, R-513 (seed 002 §15.1; seed 004 §5.6)
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from chainrule import random
from chainrule.autograd import Tensor, no_grad, precision
from chainrule.data import Streams
from chainrule.errors import ChainruleError
from chainrule.inspect import Watch
from chainrule.machine import keep_freed_memory, one_blas_thread
from chainrule.models import IGNORE, LanguageModel, RecurrentLM
from chainrule.models.rnn_lm import State
from chainrule.optim import AdamW, clip_global_norm
from chainrule.train.config import TrainConfig
from chainrule.train.plan import Plan
from chainrule.train.scaling import LossScale, NoScale

Ids = npt.NDArray[np.integer[Any]]


class BatchSource(Protocol):
    """What is learnt from: a batch for every step, a pure function of its number."""

    @property
    def tokens(self) -> int:
        """How many targets one batch holds."""

    def batch(self, step: int) -> tuple[Ids, Ids]:
        """inputs (B, T) and targets (B, T); a target IGNORE counts for nothing"""


class Logger(Protocol):
    """Who is told how training goes; `train.Log` prints it and writes it down."""

    def step(
        self, step: int, loss: float, *, lr: float, norm: float, seconds: float, left: float
    ) -> None: ...

    def evaluation(self, step: int, loss: float, *, seconds: float) -> None: ...

    def watched(self, record: dict[str, Any]) -> None: ...


@dataclass(frozen=True)
class Result:
    """How a run ended. Losses are mean negative log-likelihoods in nats per token."""

    steps: int
    validation: float
    seconds: float
    interrupted: bool


class Trainer:
    """A language model of any family, its optimiser, and how far they have come.

    `exam` are the batches (inputs, targets) of text held back, on which `evaluate` judges the model.
    """

    def __init__(
        self, model: LanguageModel, batches: BatchSource, exam: Sequence[tuple[Ids, Ids]], config: TrainConfig
    ) -> None:
        self.model = model
        self.batches = batches
        self.exam = exam
        self.config = config
        self.optimiser = AdamW(
            model.parameters(), config.lr, (0.9, config.beta2), weight_decay=config.weight_decay
        )
        self.plan = Plan(config)
        self.scale = LossScale() if self.skips else NoScale()
        self.steps = 0  # done
        self.seconds = 0.0  # spent on them, evaluations included
        self.carried: State | None = None
        """Of a recurrent model: its state after the last batch, which the next one of the same streams goes on from."""

    def run(self, log: Logger, save: Callable[[], object] = lambda: None) -> Result:
        """Train to the end of the plan, or until Ctrl-C; `save` is called when a checkpoint is due, and last.

        Dropout is drawn of the seed of the configuration. If all steps were made before, the model is only judged.
        """
        nothing_left = self.plan.finished(self.steps, self.seconds)
        keep_freed_memory()
        began = time.perf_counter() - self.seconds
        with random.seeded(self.config.seed), one_blas_thread(), Interrupt() as interrupt:
            while not self.plan.finished(self.steps, self.seconds) and not interrupt.asked:
                lr = self.plan.lr(self.steps)
                loss, norm = self.update(lr)
                self.seconds = time.perf_counter() - began
                left = self.plan.seconds_left(self.steps, self.seconds)
                log.step(self.steps, loss, lr=lr, norm=norm, seconds=self.seconds, left=left)
                if self.config.watch_every and (seen := self.look(lr)):
                    log.watched(seen)
                self.plan.revise(self.steps, self.seconds)
                if self.plan.finished(self.steps, self.seconds):
                    break
                if self.steps % self.config.eval_every == 0:
                    log.evaluation(self.steps, self.evaluate(), seconds=self.seconds)
                if self.steps % self.config.save_every == 0:
                    save()
            validation = self.evaluate()
            if not nothing_left:
                log.evaluation(self.steps, validation, seconds=self.seconds)
                save()
        return Result(self.steps, validation, self.seconds, interrupt.asked)

    def update(self, lr: float) -> tuple[float, float]:
        """One step; returns the loss of its batch and the norm of its gradient before clipping."""
        inputs, targets = self.batches.batch(self.steps)
        parameters = self.optimiser.params
        parameters.zero_grad()
        self.model.train()
        factor = self.scale.factor
        with (
            random.step(self.steps),
            precision(self.config.precision),
            np.errstate(all="ignore"),  # what is not finite is seen below
        ):
            loss, carried = self._forward(inputs, targets)
            loss.backward(np.asarray(factor, np.float32))
        norm = clip_global_norm(parameters, self.config.clip * factor) / factor
        finite = math.isfinite(loss.item() + norm)
        self.scale.update(finite)
        if finite:
            if factor != 1:
                parameters.grad *= 1 / factor  # exact: a power of two
            self.optimiser.step(lr)
            self.carried = carried
        elif not self.skips:
            raise ChainruleError(
                f"train: loss {loss.item()}, gradient norm {norm} at step {self.steps + 1} "
                f"(must be finite: try a smaller lr than {self.config.lr:g}); the step was not taken"
            )
        self.steps += 1
        return loss.item(), norm

    def _forward(self, inputs: Ids, targets: Ids) -> tuple[Tensor, State | None]:
        if not (isinstance(self.model, RecurrentLM) and isinstance(self.batches, Streams)):
            return self.model.loss(inputs, targets), None
        before = None if self.batches.begins(self.steps) else self.carried
        return self.model.loss_from(before, inputs, targets)

    @property
    def skips(self) -> bool:
        """True if a step that is not finite is left out, and the next one tried with a smaller factor."""
        return self.config.precision == "fp16"

    def look(self, lr: float) -> dict[str, Any] | None:
        """What the model looks like from inside, on the batch that comes next; None if it is not time for it."""
        watch = Watch(self.config.watch_every)
        if not watch.due(self.steps):
            return None
        return watch.observe(self.steps, self.model, self.batches.batch(self.steps), self.optimiser, lr)

    def evaluate(self) -> float:
        """The mean loss on the validation text."""
        self.model.eval()
        total, count = 0.0, 0
        with no_grad(), precision(self.config.precision):
            for inputs, targets in self.exam:
                counted = int(np.count_nonzero(targets != IGNORE))
                total += self.model.loss(inputs, targets).item() * counted
                count += counted
        return total / count


class Interrupt:
    """Ctrl-C or SIGTERM asks to stop after the step at hand; a second one stops at once."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> Interrupt:
        # Only the main thread may catch signals.
        self.catching = threading.current_thread() is threading.main_thread()
        if self.catching:
            self.before = {s: signal.signal(s, self._ask) for s in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *error: object) -> None:
        if self.catching:
            for number, handler in self.before.items():
                signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
