"""PPO: policy gradients with a value head, generalized advantages, and clipped ratios (Schulman et al. 2017).

loss = policy loss + c_v · value loss - c_e · entropy
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import ops
from chainrule.align.advantages import Rows, gae, kl_penalized, whitened
from chainrule.align.config import PPOConfig
from chainrule.align.policy_gradient import (
    Actor,
    Experience,
    PolicyGradient,
    Reward,
    clipped_surrogate,
    masked_mean,
)
from chainrule.align.rollouts import Rollout
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.models.language_model import LanguageModel, TransformerLM, tempered
from chainrule.nn import Linear
from chainrule.nn.init import zeros
from chainrule.types import IGNORE


class ActorCritic(Actor):
    """A policy with a second head on its last hidden rows: what reward is still to come."""

    policy: TransformerLM

    def __init__(self, policy: TransformerLM) -> None:
        super().__init__(policy)
        self.value = Linear(policy.config.n_embd, 1, init=zeros)

    def forward(
        self, ids: Array, targets: Array, *, entropy: bool = False, temperature: float = 1.0
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """ids (B, T), targets (B, T) -> ln π of the targets, values and, if asked for, entropies (B, T)"""
        hidden = self.policy.hidden(ids)
        values = self.value(hidden).reshape(targets.shape)
        hidden = tempered(hidden, temperature)
        if not entropy:  # no logits are kept
            return -self.policy.cross_entropy(hidden, targets, reduction="none"), values, None
        logits = ops.linear(hidden, self.policy.head.weight)
        logs = -ops.cross_entropy(logits, targets=targets, ignore_index=IGNORE, reduction="none")
        each = ops.log_softmax(logits)
        return logs, values, -(ops.exp(each) * each).sum(axis=-1)


class PPO(PolicyGradient):
    """A policy that learns by PPO; `config.beta` is the weight of the KL to the reference, per token."""

    config: PPOConfig

    def __init__(
        self, policy: TransformerLM, reference: LanguageModel, reward: Reward, config: PPOConfig | None = None
    ) -> None:
        if not isinstance(policy, TransformerLM):
            raise ConfigError(
                f"PPO: got {type(policy).__name__} (must be a transformer: a value head reads its rows)"
            )
        self.actor = ActorCritic(policy)
        super().__init__(policy, reference, reward, config or PPOConfig())

    def learning(self) -> Actor:
        return self.actor

    def before(self, rollout: Rollout) -> tuple[Rows, Rows]:
        with self.policy.answering():
            logs, values, _ = self.actor(rollout.ids, rollout.targets, temperature=self.config.temperature)
        return logs.numpy(), values.numpy()

    def estimate(self, experience: Experience) -> None:
        config, e, mask = self.config, experience, experience.mask
        rewards = kl_penalized(e.scores, e.logs, e.reference, mask, self.beta)
        advantages, e.returns = gae(rewards, e.values, mask, config.gamma, config.lam)
        e.advantages = (whitened(advantages, mask) if config.whiten else advantages).astype(e.logs.dtype)
        e.returns = e.returns.astype(e.logs.dtype)
        if config.target_kl is not None:
            kl = float(np.where(mask, e.logs - e.reference, 0.0).sum(axis=1).mean())
            error = np.clip(kl / config.target_kl - 1, -0.2, 0.2)
            self.beta *= float(1 + error * len(e.scores) / config.horizon)

    def loss(self, experience: Experience, rows: Any) -> tuple[Tensor, dict[str, float]]:
        config, e = self.config, experience
        mask = e.mask[rows]
        logs, values, entropy = self.actor(
            e.rollout.ids[rows],
            e.rollout.targets[rows],
            entropy=config.entropy_coef > 0,
            temperature=config.temperature,
        )
        policy, measured = clipped_surrogate(logs, e.logs[rows], e.advantages[rows], mask, config.clip_ratio)
        value, clipped = value_loss(values, e.values[rows], e.returns[rows], mask, config.value_clip)
        total = policy + value * config.value_coef
        measured |= {"loss/policy": policy.item(), "loss/value": value.item(), "val/clipfrac": clipped}
        if entropy is not None:
            mean = masked_mean(entropy, mask)
            total = total - mean * config.entropy_coef
            measured["policy/entropy"] = mean.item()
        return total, measured


def value_loss(values: Tensor, before: Rows, returns: Rows, mask: Any, clip: float) -> tuple[Tensor, float]:
    """½ max((V - R)², (V_clipped - R)²), V_clipped within `clip` of the value before; and the fraction clipped"""
    near = ops.clip(values - before, min=-clip, max=clip) + before
    errors = ops.maximum((values - returns) ** 2, (near - returns) ** 2)
    beyond = (near.numpy() - returns) ** 2 > (values.numpy() - returns) ** 2
    return masked_mean(errors, mask) * 0.5, float(beyond[mask].mean())
