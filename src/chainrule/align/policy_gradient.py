"""Policy gradients: a policy writes answers, a reward scores them, and what was better than expected becomes likelier.

    maximize  E_π[r(x, y)] - β KL(π(·|x) ‖ π_ref(·|x))

`PolicyGradient` is the loop that all methods share: roll out, score, estimate advantages, update a few times. A method
is a small class that says how advantages are estimated and what is minimized: `PPO`, `Reinforce`, `GRPO`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chainrule import ops, random
from chainrule.align.advantages import Mask, Rows, kl_estimate
from chainrule.align.config import PolicyConfig
from chainrule.align.rollouts import Prompts, Rollout, roll_out
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ChainruleError, ConfigError, Failure, Setting
from chainrule.models import LanguageModel, Model
from chainrule.optim import AdamW, clip_factor, global_norm
from chainrule.random import generator

Reward = Callable[[Rollout], Sequence[float] | Rows]
"""Scores (B,) of the answers of a rollout."""


@dataclass
class Experience:
    """What a rollout has taught: arrays of one row per answer, (B, T) where not said otherwise."""

    rollout: Rollout
    scores: Rows
    """Of the reward (B,)"""
    logs: Rows
    """ln π of each token when it was written"""
    reference: Rows
    """ln π_ref"""
    advantages: Rows
    values: Rows
    """What was expected, 0 without a value head"""
    returns: Rows
    """What came"""

    @property
    def mask(self) -> Mask:
        return self.rollout.mask


class Actor(Model):
    """A policy as something that learns from its own answers: there is no loss of a batch that it is given."""

    n_classes = None

    def __init__(self, policy: LanguageModel) -> None:
        super().__init__(policy.config)
        self.policy = policy

    def beside(self) -> dict[str, Array]:
        """What learns beside the policy, by name: the value head, if there is one."""
        return {
            name: param.array for name, param in self.named_parameters() if not name.startswith("policy.")
        }


class PolicyGradient:
    """A policy, its frozen reference, a reward, and an optimizer.

    `step` makes one rollout and its updates, and returns what is usually watched; write your own loop around it.
    """

    group = 1
    """Answers to each prompt."""

    def __init__(
        self, policy: LanguageModel, reference: LanguageModel, reward: Reward, config: PolicyConfig
    ) -> None:
        if policy is reference:
            raise ConfigError(
                "policy: is the reference itself (must be a copy: it changes, the reference does not)"
            )
        self.policy = policy
        self.reference = reference.freeze().eval()
        self.reward = reward
        self.config = config
        self.beta = config.beta
        self.learner: Actor = self.learning()
        self.optimizer = AdamW(self.learner.parameters(), config.lr, weight_decay=0.0)

    def learning(self) -> Actor:
        """What the optimizer changes."""
        return Actor(self.policy)

    def logprobs(self, rollout: Rollout, rows: Any) -> Tensor:
        """ln π of the tokens of these rows now (B, T), at the temperature at which they are drawn"""
        return self.policy.logprobs(
            rollout.ids[rows], rollout.targets[rows], temperature=self.config.temperature
        )

    # -- one step ----------------------------------------------------------------------------------------------

    def step(self, prompts: Prompts, number: int = 0, lr: float | None = None) -> dict[str, float]:
        """Answers to the prompts, `group` of each, and the updates they lead to; number makes the draws its own."""
        began = time.perf_counter()
        rollout = self.roll_out([prompt for prompt in prompts for _ in range(self.group)], number)
        rolled = time.perf_counter()
        experience = self.experience(rollout)
        scored = time.perf_counter()
        metrics = self.update(experience, number, self.config.lr if lr is None else lr)
        ended = time.perf_counter()
        times = {"rollout": rolled - began, "scoring": scored - rolled, "update": ended - scored}
        return self.summary(experience) | metrics | {f"time/{name}": value for name, value in times.items()}

    def roll_out(self, prompts: Prompts, number: int) -> Rollout:
        config = self.config
        return roll_out(
            self.policy, prompts, max_new_tokens=config.max_new_tokens, end=config.end,
            temperature=config.temperature, seed=config.seed, number=number,
        )  # fmt: skip

    def experience(self, rollout: Rollout, *, estimated: bool = True) -> Experience:
        """Scores and log-probabilities of a rollout, and the advantages of its tokens, if they are wanted."""
        scores = np.asarray(self.reward(rollout), np.float64)
        count = len(rollout.answers)
        if scores.shape != (count,) or not np.isfinite(scores).all():
            one_each = scores.shape == (count,)
            wrong = scores[~np.isfinite(scores)][0] if one_each else f"an array of shape {scores.shape}"
            raise ChainruleError(f"reward: gave {wrong} for {count} answers (must be one finite number each)")
        logs, values = self.before(rollout)
        with self.reference.answering():
            reference = self.reference.logprobs(
                rollout.ids, rollout.targets, temperature=self.config.temperature
            ).numpy()
        nothing = np.zeros_like(logs)
        found = Experience(rollout, scores, logs, reference, nothing, values, nothing)
        if estimated:
            self.estimate(found)
        return found

    def before(self, rollout: Rollout) -> tuple[Rows, Rows]:
        """ln π of each token, by the pass that training makes, so that the first ratio is 1; and values."""
        with self.policy.answering():
            logs = self.logprobs(rollout, slice(None)).numpy()
        return logs, np.zeros_like(logs)

    def update(self, experience: Experience, number: int, lr: float) -> dict[str, float]:
        """`epochs` passes over the rollout, in minibatches; the means of what each update measured.

        Without dropout, as the answers were written: with it a ratio would be noise before the policy has changed.
        """
        parameters, config = self.learner.parameters(), self.config
        seen: list[dict[str, float]] = []
        self.learner.eval()
        for epoch in range(config.epochs):
            order = generator("minibatches", number, epoch, seed=config.seed).permutation(
                len(experience.scores)
            )
            for part in np.array_split(order, min(config.minibatches, len(order))):
                parameters.zero_grad()
                with random.step(number):
                    loss, measured = self.loss(experience, np.sort(part))
                    loss.backward()
                norm = global_norm(parameters)
                if not np.isfinite(loss.item() + norm):
                    said = f"loss {loss.item()}, gradient norm {norm} at step {number + 1} (must be finite): "
                    raise Failure(f"policy: {said}try a smaller ", Setting("lr"), f" than {lr:g}")
                self.optimizer.step(lr, scale=clip_factor(norm, config.grad_clip))
                seen.append(measured | {"loss/total": loss.item(), "policy/grad_norm": float(norm)})
        return {name: float(np.mean([each[name] for each in seen])) for name in seen[0]}

    # -- what a method decides ----------------------------------------------------------------------------------

    def estimate(self, experience: Experience) -> None:
        """Fill in the advantages (B, T)."""
        raise NotImplementedError

    def loss(self, experience: Experience, rows: Any) -> tuple[Tensor, dict[str, float]]:
        """The loss of these rows, and what is to be watched."""
        raise NotImplementedError

    # -- numbers ------------------------------------------------------------------------------------------------

    def evaluate(self, prompts: Prompts, number: int = 0) -> dict[str, float]:
        """How good one answer to each prompt is, without learning from it; the same draws for the same number."""
        return self.summary(self.experience(self.roll_out(prompts, number), estimated=False))

    def summary(self, experience: Experience) -> dict[str, float]:
        """How good the answers are, before the updates."""
        mask = experience.mask
        kl = (np.where(mask, kl_estimate(experience.logs, experience.reference), 0.0)).sum(axis=1)
        ended = experience.rollout.ended(self.config.end)
        return {
            "objective/scores": float(experience.scores.mean()),
            "objective/kl": float(kl.mean()),
            "objective/entropy": float(-np.where(mask, experience.logs, 0.0).sum(axis=1).mean()),
            "objective/non_score_reward": float(-self.beta * kl.mean()),
            "objective/rlhf_reward": float(experience.scores.mean() - self.beta * kl.mean()),
            "objective/beta": self.beta,
            "val/num_eos_tokens": float(ended.sum()),
            "val/answer_length": float(mask.sum(axis=1).mean()),
        }


def clipped_surrogate(
    logs: Tensor, before: Rows, advantages: Rows, mask: Mask, clip: float
) -> tuple[Tensor, dict[str, float]]:
    """-min(ρ A, clip(ρ, 1-ε, 1+ε) A), ρ = π/π_old, the mean over tokens that count (Schulman et al. 2017)

    Where a ratio has moved far enough in the direction that pays, it gets no gradient; in the other direction it does.
    """
    ratio = ops.exp(logs - before)
    losses = ops.maximum(ratio * -advantages, ops.clip(ratio, min=1 - clip, max=1 + clip) * -advantages)
    r, drift = ratio.numpy(), (logs.numpy() - before)[mask]
    beyond = (ops.clip(r, min=1 - clip, max=1 + clip) * -advantages > r * -advantages)[mask]
    return masked_mean(losses, mask), {
        "policy/clipfrac": float(beyond.mean()),
        "policy/approxkl": float(0.5 * (drift**2).mean()),
        "val/ratio": float(r[mask].mean()),
        "val/ratio_var": float(r[mask].var()),
    }


def masked_mean(x: Tensor, mask: Mask) -> Tensor:
    """The mean over the places where the mask is True."""
    return (x * mask.astype(x.dtype)).sum() * (1 / max(1, int(mask.sum())))
