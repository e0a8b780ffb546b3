"""The training loop: one step after the other, with evaluations, samples and checkpoints in between.

What step n does depends on what a checkpoint holds and on n alone: batches and dropout are functions of the seed and n.
So a run that is stopped and resumed gives the same bits as one that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from chainrule import random
from chainrule.data import BatchSource
from chainrule.distributed import world
from chainrule.doctor import Finding, Monitor, Watch
from chainrule.doctor.preflight import examine
from chainrule.machine import keep_freed_memory, one_blas_thread
from chainrule.models import Model
from chainrule.tasks.answer_options import shorten
from chainrule.tasks.objectives import check_causality
from chainrule.tasks.task import EvalBatches
from chainrule.text import Tokenizer
from chainrule.train.best import Best
from chainrule.train.bounds import Bounds
from chainrule.train.config import TrainConfig
from chainrule.train.evaluation import Evaluation, Measure
from chainrule.train.general import General
from chainrule.train.interrupt import Interrupt
from chainrule.train.log import Logger
from chainrule.train.plan import Plan
from chainrule.train.skips import check_sound, noted
from chainrule.train.step import GoingOn, GradientStep, Step


@dataclass(frozen=True)
class Result:
    """How a run ended. Losses are mean negative log-likelihoods in nats per token."""

    steps: int
    validation: float
    """NaN without evaluation batches."""
    seconds: float
    interrupted: bool
    best: tuple[int, float] | None = None
    """The step of the best evaluation and its loss; None without an evaluation."""


class Trainer:
    """A model of any family, how its steps are made, and how many are done.

    `evaluate` measures the loss on `eval_batches`, of (inputs, targets). With `scores` more is measured there, and the
    first of them, not the loss, says which evaluation is best, if `best_by_score`. With a tokenizer the doctor can name
    the token that makes trouble. Without a `step` of another kind they are `GradientStep`s on `batches`.
    """

    on_batches = True
    """A step learns from a batch that is there before it, at which one can look."""
    evaluated_by: ClassVar[type[Evaluation]] = Evaluation

    def __init__(
        self,
        model: Model,
        batches: Any,
        eval_batches: EvalBatches,
        config: TrainConfig,
        tokenizer: Tokenizer | None = None,
        step: Step | None = None,
        scores: Measure | None = None,
        best_by_score: bool = True,
    ) -> None:
        self.model = model
        self.best_by_score = best_by_score
        self.tokenizer = tokenizer
        self.step: Step = step or GradientStep(model, batches, config, tokenizer)
        self.evaluation = self.evaluated_by(model, eval_batches, self.step, scores)
        self.monitor = Monitor(config, model.n_classes)
        self.config = config
        self.plan = Plan(config)
        self.bounds = Bounds(self.step.uniform)
        self.best_so_far = Best()
        self.general: General | None = None  # the old task of a tuned model, if it is measured
        self.steps = 0  # done
        self.seconds = 0.0  # spent on them, evaluations included
        self.going_on: GoingOn = lambda said: True

    def run(
        self, log: Logger, save: Callable[[], object] = lambda: None, sample: Callable[[], str] | None = None
    ) -> Result:
        """Train to the end of the plan, or until Ctrl-C; `save` is called when a checkpoint is due, and last.

        Dropout is drawn from the seed of the configuration. If all steps are done, the model is only evaluated.
        """
        if self.finished:
            validation = self.evaluate()
            check_sound(self.model, self.config, self.steps, validation if self.eval_batches else 0.0)
            self.bounds.check_end(self.monitor.losses, self.config)
            return Result(self.steps, validation, self.seconds, False, self.best)
        check_causality(self.model)
        keep_freed_memory()
        began = time.perf_counter() - self.seconds
        validation, evaluated, whole = math.nan, -1, True
        with random.seeded(self.config.seed), one_blas_thread(), Interrupt() as interrupt:

            def going_on(said: str) -> bool:
                log.progress(said)
                return not asked_to_stop()

            def asked_to_stop() -> bool:
                unread = log.closed and self.steps > 0  # of no steps nothing would be kept
                return world().any(interrupt.asked or unread)

            self.going_on = going_on
            while not self.finished and not asked_to_stop():
                whole = self._advance(log, began)
                if not whole or self.plan.finished(self.steps, self.seconds):
                    break
                if sample and self._due(self.config.sample_every) and (text := sample()):
                    log.note(self.steps, {"sample": text}, f"writes: {shorten(text)}")
                if self._due(self.config.eval_every) and self.eval_batches:
                    validation, evaluated = self._evaluate(log), self.steps
                new_best = self.config.keep == "best" and self.best_so_far.step == self.steps
                if new_best or self._due(self.config.save_every):
                    self._check(log)
                    save()
            stopped = asked_to_stop() and not self.finished
            self.step.rest()
            if not stopped:
                if self.eval_batches and evaluated != self.steps:
                    validation = self._evaluate(log)
                save()
                self.bounds.check_end(self.monitor.losses, self.config)
            elif whole:  # do not log an evaluation: the log must equal that of an uninterrupted run
                self._check(log)
                save()
                validation = validation if evaluated == self.steps else self.evaluate()
        return Result(self.steps, validation, self.seconds, stopped, self.best)

    def _advance(self, log: Logger, began: float) -> bool:
        """One step, and what there is to tell of it; False if a long step was given up half-way."""
        with noted(log, self.steps + 1):
            made = self.update(self.plan.lr(self.steps))
        if made is None:
            return False
        self.seconds = world().from_first(time.perf_counter() - began)
        left = self.plan.seconds_left(self.steps, self.seconds)
        (loss, norm), lr = made, self.step.rate
        log.step(self.steps, loss, lr=lr, norm=norm, seconds=self.seconds, left=left)
        if norm is not None:
            if self.steps == 1:
                self.bounds.begin(loss)
            self._look(log, loss, norm, lr)
            self.bounds.check_gradient(norm, loss, self.steps, self.config)
        self.bounds.check(loss, self.steps, self.config)
        self.plan.revise(self.steps, self.seconds)
        return True

    def _look(self, log: Logger, loss: float, norm: float, lr: float) -> None:
        """What the doctor and the watch see after a step."""
        self.tell(log, self.monitor.step(loss, norm))
        if reason := self.gradient.skips.reason:
            log.note(self.steps, {"skipped": reason}, f"skipped: {reason}")
        if self.config.watch_every and (seen := self.look(lr)):
            log.note(self.steps, seen, *seen["watch"]["problems"])

    @property
    def finished(self) -> bool:
        """All planned steps are done, or patience is at its end, or too much of the old task is forgotten."""
        tired = 0 < self.config.patience <= self.best_so_far.waited
        tired = tired or (self.general is not None and self.general.forgot)
        return tired or self.plan.finished(self.steps, self.seconds)

    def update(self, lr: float) -> Any:
        """One step: the loss of its batch and the norm of its gradient before clipping, or None if it was given up."""
        made = self.step(self.steps, lr, self.going_on)
        self.steps += made is not None
        return made

    @property
    def gradient(self) -> GradientStep:
        """The step of a training on batches; an epoch of word vectors has no batch and no optimizer."""
        return cast(GradientStep, self.step)

    @property
    def batches(self) -> BatchSource:
        """What is learned from."""
        return self.gradient.batches

    @batches.setter
    def batches(self, batches: BatchSource) -> None:
        self.gradient.batches = batches

    @property
    def eval_batches(self) -> EvalBatches:
        """What is evaluated on."""
        return self.evaluation.batches

    @eval_batches.setter
    def eval_batches(self, batches: EvalBatches) -> None:
        self.evaluation.batches = batches

    @property
    def config(self) -> TrainConfig:
        """The settings, which may change between two steps."""
        return self._config

    @config.setter
    def config(self, config: TrainConfig) -> None:
        self._config = self.step.config = self.monitor.config = config

    def tell(self, log: Logger, findings: Iterable[Finding]) -> None:
        """Print findings, and log those that are not ok."""
        for finding in findings:
            record = {"finding": finding.to_dict()} if finding.level != "ok" else {}
            log.note(self.steps, record, str(finding))

    def _due(self, every: int) -> bool:
        return every > 0 and self.steps % every == 0

    def _evaluate(self, log: Logger) -> float:
        """The validation loss, which is logged with the scores."""
        validation, scores = self.evaluate(), self.evaluation.scores()
        entropy = self.evaluation.entropy()
        log.evaluation(self.steps, validation, seconds=self.seconds, entropy=entropy, scores=scores)
        self._check(log, validation)
        self.tell(log, self.monitor.evaluation(self.steps, validation))
        if not self.gradient.skips.reason:  # the gradient is that of a step that was taken
            self.gradient.share.complete()
            self.tell(log, self.monitor.weights(self.model.parameters(), self.gradient.optimizer))
        if self.general is not None and self._forgot(log, self.general):
            return validation  # no best: the checkpoint before is used
        score = next(iter(scores.values()), None) if self.best_by_score else None
        self.best_so_far.update(self.steps, validation, score)
        return validation

    def _forgot(self, log: Logger, general: General) -> bool:
        """Measure the old task; has too much of it been forgotten?"""
        with self.evaluation.as_kept():
            said = general.look()
        log.note(self.steps, {"general": general.last}, said)
        return general.forgot

    def _check(self, log: Logger, validation: float = 0.0) -> None:
        """Refuse to keep broken weights, or to call them a result."""
        with noted(log, self.steps):
            check_sound(self.model, self.config, self.steps, validation)
            self.bounds.check(validation, self.steps, self.config, "validation loss")

    @property
    def best(self) -> tuple[int, float] | None:
        """The step of the best evaluation so far and its loss."""
        return self.best_so_far.known

    def examine(self, *, fresh: bool = True) -> list[Finding]:
        """What the doctor finds before the next step; weights that are not `fresh` were trained."""
        return examine(
            *(self.model, self.batches, self.config, self.tokenizer),
            eval_batches=len(self.eval_batches),
            steps=self.steps,
            fresh=fresh,
            compiled=self.gradient.share.compiled is not None,
        )

    def look(self, lr: float) -> dict[str, Any] | None:
        """What happens inside the model on the next batch; None if it is not time for it."""
        watch = Watch(self.config.watch_every)
        if not watch.due(self.steps):
            return None
        batch = self.batches.batch(self.steps)
        return watch.observe(self.steps, self.model, batch, self.gradient.optimizer, lr)

    def evaluate(self) -> float:
        """The mean loss on the evaluation batches, or NaN if there are none."""
        return self.evaluation.loss()
