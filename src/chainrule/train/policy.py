"""Policy gradients as an ordinary training: a step is a rollout and its updates.

A checkpoint keeps, beside the policy, what else a step depends on: the optimizer, the value head, and β if it adapts.
What is drawn in step n depends on the seed and n alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from chainrule.align.policy_gradient import PolicyGradient
from chainrule.autograd import precision
from chainrule.autograd.types import Array
from chainrule.data import BatchSource
from chainrule.distributed import world
from chainrule.doctor import Finding
from chainrule.errors import ConfigError
from chainrule.tasks.preferences.policy import PolicyTask
from chainrule.tasks.task import EvalBatches
from chainrule.train.config import TrainConfig
from chainrule.train.evaluation import Evaluation
from chainrule.train.log import Logger, Scores
from chainrule.train.share import check_alone
from chainrule.train.step import GoingOn, GradientStep
from chainrule.train.trainer import Trainer

BESIDE, BETA = "beside.", "beta"  # names in the file of the optimizer
SHOWN = ("objective/scores", "objective/kl", "val/answer_length")  # of an evaluation
# What settings must be.
UNUSED = {"accumulate": (1, None), "ema": (0.0,), "on_nan": ("stop",), "watch_every": (0,)}
COMMAND, WHY_ALONE = "align ppo", "one decoder writes all answers"
HELD_OUT = 1 << 40  # the number of rollouts that are not of a step: the same draws in every evaluation


class PolicyStep(GradientStep):
    """A rollout of the policy, its scores, and several updates."""

    def __init__(self, method: PolicyGradient, batches: BatchSource, config: TrainConfig) -> None:
        check_alone(COMMAND, world().size, WHY_ALONE)
        for name, wanted in UNUSED.items():
            if getattr(config, name) not in wanted:
                raise ConfigError.of("ppo", {name: getattr(config, name)}, f"must be {wanted[0]}")
        if config.precision == "fp16":
            raise ConfigError.of(
                "ppo", {"precision": "fp16"}, "must be fp32 or bf16: there is no loss to scale"
            )
        super().__init__(method.learner, batches, config)
        self.method = method
        self.uniform = math.inf  # rewards have no unit: nothing is known of a loss
        method.optimizer = self.optimizer

    def __call__(self, number: int, lr: float, going_on: GoingOn = lambda said: True) -> tuple[float, float]:
        self.rate = lr
        with (
            precision(self.config.precision),
            np.errstate(all="ignore"),  # what is not finite is seen by the method
        ):
            self.metrics = self.method.step(self.batches.batch(number)[0], number, lr)
        return self.metrics["loss/total"], self.metrics["policy/grad_norm"]

    def arrays(self) -> Mapping[str, Any]:
        beside = {BESIDE + name: array for name, array in self.model_beside().items()}
        return dict(self.optimizer.state()) | beside | {BETA: np.array([self.method.beta])}

    def model_beside(self) -> dict[str, Array]:
        """What learns beside the policy."""
        return self.method.learner.beside()

    def load(self, arrays: Mapping[str, Any]) -> None:
        left = dict(arrays)
        self.method.beta = float(left.pop(BETA)[0])
        for name, array in self.model_beside().items():
            array[...] = left.pop(BESIDE + name)
        self.model.parameters().changed()
        self.optimizer.load(left)


class PolicyEvaluation(Evaluation):
    """Of a policy, by its answers to prompts that are held back: the loss is minus the objective."""

    step: PolicyStep
    found: Scores

    def loss(self) -> float:
        """Minus reward - β KL, with the same draws each time."""
        with precision(self.step.config.precision):
            self.found = self.step.method.evaluate(self.batches[0][0], HELD_OUT)
        objective = self.found["objective/rlhf_reward"]
        return math.nan if objective is None else -objective

    def scores(self) -> Scores:
        """What `loss` has found beside it."""
        return {name: self.found[name] for name in SHOWN}

    def entropy(self) -> None:
        """It is among the scores."""


class PolicyTrainer(Trainer):
    """A training on what the policy writes itself."""

    on_batches = False
    evaluated_by = PolicyEvaluation
    step: PolicyStep

    def examine(self, *, fresh: bool = True) -> list[Finding]:
        """There are no targets to look at before the policy has written something."""
        return []

    def _look(self, log: Logger, loss: float, norm: float, lr: float) -> None:
        """Losses of policy gradients go up and down by nature: what is to be watched is in the metrics."""
        log.note(self.steps, dict(self.step.metrics))


def policy_trainer(
    task: PolicyTask, model: Any, batches: Any, held_out: EvalBatches, config: TrainConfig
) -> PolicyTrainer:
    """The trainer of a policy."""
    method = task.policy_gradient(model, config)
    step = PolicyStep(method, batches, config)
    return PolicyTrainer(
        method.learner, batches, held_out, config, task.tokenizer, step, task.scores, best_by_score=False
    )
