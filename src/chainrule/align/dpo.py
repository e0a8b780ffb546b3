"""DPO: preferences taught to a policy directly, without a reward model and without sampling.

A batch is pairs of answers to the same prompt, each a whole text (prompt and answer) whose targets count in the answer
alone. The reference never changes, so its log-probabilities are computed once, before the first step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from chainrule.align.preference_losses import PreferenceLoss, Sigmoid
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.data import pad
from chainrule.errors import DataError
from chainrule.models import LanguageModel, Model
from chainrule.types import IGNORE, Ids

Rows = npt.NDArray[np.floating]


class Pairs(NamedTuple):
    """Pairs of texts (B, 2, T), the preferred one first, and what the reference says of them."""

    ids: Ids
    reference: Rows
    """ln π_ref of both answers (B, 2)"""
    agreement: Rows
    """The probability that the first is preferred (B,): 1 if all judges agree"""


class Preference(NamedTuple):
    """Ids of a prompt and two answers to it, of which the first was preferred."""

    prompt: Sequence[int]
    chosen: Sequence[int]
    rejected: Sequence[int]


def preference_rows(preferences: Sequence[Preference]) -> tuple[Ids, Ids]:
    """inputs (B, 2, T) and targets (B, 2, T), which count in the answers alone"""
    rows, targets = [], []
    for number, preference in enumerate(preferences):
        check_preference(number, preference)
        prompt, *answers = preference
        for answer in answers:
            rows.append([*prompt, *answer][:-1])
            targets.append([IGNORE] * (len(prompt) - 1) + list(answer))
    shape = len(preferences), 2, -1
    return pad(rows)[0].reshape(shape), pad(targets, value=IGNORE)[0].reshape(shape)


def check_preference(number: int, preference: Preference) -> None:
    """A comparison needs two answers that differ."""
    if not all(map(len, preference)):
        raise DataError(f"preference {number}: an empty prompt or answer (must have at least one token)")
    if list(preference.chosen) == list(preference.rejected):
        raise DataError(f"preference {number}: chosen and rejected are the same (must differ)")


def answer_logprobs(model: LanguageModel, ids: Ids, targets: Ids) -> Tensor:
    """ids (..., T), targets (..., T) -> ln P of the targets of each text that count, summed (...)"""
    *lead, T = ids.shape
    found = model.logprobs(ids.reshape(-1, T), targets.reshape(-1, T)).sum(axis=-1)
    return found.reshape(tuple(lead))


def pairs_of(
    reference: LanguageModel,
    preferences: Sequence[Preference],
    agreement: npt.ArrayLike = 1.0,
    batch_size: int = 64,
) -> tuple[Pairs, Ids]:
    """All preferences as one batch, with the log-probabilities of the reference."""
    ids, targets = preference_rows(preferences)
    with reference.answering():
        found = [
            answer_logprobs(reference, ids[first : first + batch_size], targets[first : first + batch_size])
            for first in range(0, len(ids), batch_size)
        ]
    logs = np.concatenate([each.numpy() for each in found])
    return Pairs(ids, logs, np.broadcast_to(np.asarray(agreement, logs.dtype), len(ids)).copy()), targets


class DPO(Model):
    """A policy that learns from pairs; trained like any model, by the loss of its margins."""

    def __init__(self, policy: LanguageModel, loss: PreferenceLoss | None = None) -> None:
        super().__init__(policy.config)
        self.policy = policy
        self.preference_loss = loss or Sigmoid()

    def train(self, mode: bool = True) -> Self:
        """The policy has no dropout: the reference has none, so margins would begin with noise instead of 0."""
        super().train(mode)
        self.policy.eval()
        return self

    @property
    def n_classes(self) -> int | None:
        """Which of two is better: a guess costs ln 2, with every loss that is a likelihood."""
        return 2 if self.preference_loss.likelihood else None

    def implicit_rewards(self, pairs: Pairs, targets: Ids) -> Tensor:
        """ln π/π_ref of both answers (B, 2): the rewards that the policy implies, in units of β"""
        return answer_logprobs(self.policy, pairs.ids, targets) - pairs.reference

    def loss(self, inputs: Pairs, targets: Array) -> Tensor:
        """The mean loss of the pairs."""
        rewards = self.implicit_rewards(inputs, targets)
        margin = rewards[:, 0] - rewards[:, 1]
        losses = self.preference_loss(margin)
        if (inputs.agreement < 1).any():  # the other order is as true as the judges disagree
            p = inputs.agreement
            losses = losses * p + self.preference_loss(-margin) * (1 - p)
        return losses.mean()

    def counts(self, inputs: Pairs, targets: Array) -> tuple[int, ...]:
        return (len(inputs.ids),)

    def metrics(self, batches: Iterable[tuple[Pairs, Ids]]) -> dict[str, float]:
        """What is usually watched, over all these pairs; rewards are β ln π/π_ref."""
        with self.answering():
            found = [self.implicit_rewards(pairs, targets).numpy() for pairs, targets in batches]
        rewards = np.concatenate(found) * self.preference_loss.beta
        margins = rewards[:, 0] - rewards[:, 1]
        return {
            "rewards/chosen": float(rewards[:, 0].mean()),
            "rewards/rejected": float(rewards[:, 1].mean()),
            "rewards/accuracies": float((margins > 0).mean()),
            "rewards/margins": float(margins.mean()),
        }
