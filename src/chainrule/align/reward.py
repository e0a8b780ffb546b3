"""Reward model: which of two answers people prefer, learned as one number for each (Bradley and Terry 1952).

    P(y_w is preferred to y_l) = σ(r(x, y_w) - r(x, y_l)),      loss = -ln σ(r_w - r_l)

Only differences matter: adding a constant to all rewards changes nothing. `center` keeps that constant near 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule import ops
from chainrule.align.dpo import Preference, check_preference
from chainrule.align.policy_gradient import Reward as RewardFunction
from chainrule.align.rollouts import Rollout
from chainrule.autograd import Tensor, no_grad
from chainrule.autograd.types import Array
from chainrule.data import pad
from chainrule.foundations.calibration import expected_calibration_error
from chainrule.models import Model, Reward
from chainrule.types import Ids


class Comparisons(NamedTuple):
    """Pairs of whole texts (B, 2, T), the preferred one first; the mask is True at tokens, False at padding."""

    ids: Ids
    mask: npt.NDArray[np.bool_]


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
    """A reward model that learns from comparisons; trained like any model."""

    def __init__(self, reward: Reward, center: float = 0.0) -> None:
        super().__init__(reward.body.config)
        self.reward = reward
        self.center = center

    @property
    def n_classes(self) -> int:
        """Which of two is better: a guess costs ln 2."""
        return 2

    def rewards(self, inputs: Comparisons) -> Tensor:
        """Of both texts (B, 2)"""
        B, _, T = inputs.ids.shape
        return self.reward(inputs.ids.reshape(-1, T), inputs.mask.reshape(-1, T)).reshape((B, 2))

    def loss(self, inputs: Comparisons, targets: Array) -> Tensor:
        """-ln σ(r_w - r_l), the mean, and `center` times the mean of (r_w + r_l)²"""
        found = self.rewards(inputs)
        better, worse = found[:, 0], found[:, 1]
        loss = ops.bradley_terry(better, worse)
        return loss + ((better + worse) ** 2).mean() * self.center if self.center else loss

    def counts(self, inputs: Comparisons, targets: Array) -> tuple[int, ...]:
        return (len(inputs.ids),)

    def metrics(self, batches: Iterable[tuple[Comparisons, Ids]]) -> dict[str, float]:
        """How often the better one has the higher reward, and whether σ(r_w - r_l) is as sure as it is right."""
        with self.answering():
            found = np.concatenate([self.rewards(inputs).numpy() for inputs, _ in batches]).astype(np.float64)
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
