"""Reward model: which of two answers people prefer, learned as one number for each (Bradley and Terry 1952).

    P(y_w is preferred to y_l) = σ(r(x, y_w) - r(x, y_l)),      loss = -ln σ(r_w - r_l)

Only differences matter: adding a constant to all rewards changes nothing. `center` keeps that constant near 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from chainrule import ops
from chainrule.align.dpo import Preference, check_preference
from chainrule.align.policy_gradient import Reward as RewardFunction
from chainrule.align.rollouts import Rollout
from chainrule.autograd import Tensor, no_grad
from chainrule.autograd.recording import constant
from chainrule.autograd.types import Array
from chainrule.data import pad
from chainrule.foundations.calibration import expected_calibration_error
from chainrule.models import Model, Reward
from chainrule.models.reward import Comparisons, preference_loss
from chainrule.types import Ids


def comparisons(preferences: Sequence[Preference]) -> tuple[Comparisons, Ids]:
    """The texts as one batch; the targets say that the first of each pair is the better one"""
    rows = []
    for number, preference in enumerate(preferences):
        check_preference(number, preference)
        rows += [[*preference.prompt, *answer] for answer in (preference.chosen, preference.rejected)]
    ids, mask = pad(rows)
    shape = len(preferences), 2, -1
    return Comparisons(ids.reshape(shape), mask.reshape(shape)), np.zeros(len(preferences), np.int32)


class RewardTraining(Model):
    """A reward model that learns with rewards near 0; trained like any model.

    Without `center` the model's own loss is the same: only differences of rewards count in it.
    """

    def __init__(self, reward: Reward, center: float) -> None:
        super().__init__(reward.config)
        self.reward = reward
        self.center = center
        reward.let_level_learn(center > 0)

    @property
    def n_classes(self) -> int:
        return self.reward.n_classes

    def loss(self, inputs: Comparisons, targets: Array) -> Tensor:
        """-ln σ(r_w - r_l), the mean, and in training `center` times the mean of (r_w + r_l)²"""
        rewards = self.reward.of_pairs(inputs)
        loss = preference_loss(rewards)
        if not self.training or not self.center:
            return loss
        level = ops.l2_loss(rewards[:, 0] + rewards[:, 1])  # ½ Σ (r_w + r_l)²
        return loss + level * constant(np.asarray(2 * self.center / len(rewards), rewards.dtype))

    def counts(self, inputs: Comparisons, targets: Array) -> tuple[int, ...]:
        return self.reward.counts(inputs, targets)


def reward_metrics(model: Reward, batches: Iterable[tuple[Comparisons, Ids]]) -> dict[str, float]:
    """How often the better one has the higher reward, and whether σ(r_w - r_l) is as sure as it is right."""
    with model.answering():
        found = np.concatenate([model.of_pairs(inputs).numpy() for inputs, _ in batches]).astype(np.float64)
    margins = found[:, 0] - found[:, 1]
    sure = 1 / (1 + np.exp(-np.abs(margins)))
    return {
        "accuracy": float((margins > 0).mean()),
        "margin": float(margins.mean()),
        "calibration_error": expected_calibration_error(sure, margins > 0),
        "mean_reward": float(found.mean()),
    }


def as_reward(model: Reward) -> RewardFunction:
    """A reward model as the reward of a policy: of prompt and answer, read to the last token."""

    def score(rollout: Rollout) -> npt.NDArray[np.floating]:
        texts = [[*x, *y] for x, y in zip(rollout.prompts, rollout.answers, strict=True)]
        ids, mask = pad(texts)
        return scores_of(model, ids, mask)

    return score


def scores_of(model: Reward, ids: Ids, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.floating]:
    """The rewards of texts (B,), without a gradient"""
    with no_grad():
        return model.eval()(ids, mask).numpy()
