"""Policy gradients without a value head: the other answers to the same prompt say what was to be expected."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import ops
from chainrule.align.advantages import group_advantages, leave_one_out
from chainrule.align.config import GroupConfig
from chainrule.align.policy_gradient import Experience, PolicyGradient, Reward, clipped_surrogate, masked_mean
from chainrule.autograd import Tensor
from chainrule.models import LanguageModel
from chainrule.validate import Check


class GroupMethod(PolicyGradient):
    """A method with `group` answers to each prompt."""

    config: GroupConfig

    def __init__(
        self,
        policy: LanguageModel,
        reference: LanguageModel,
        reward: Reward,
        config: GroupConfig | None = None,
    ) -> None:
        config = config or GroupConfig()
        self.group = config.group
        super().__init__(policy, reference, reward, config)


class Reinforce(GroupMethod):
    """-A ln π(y|x), A = r - β ln π/π_ref less the mean of the other answers (Williams 1992; Ahmadian et al. 2024)

    The gradient is that of the objective, without bias; on the rollout of a step it is used once.
    """

    def __init__(
        self,
        policy: LanguageModel,
        reference: LanguageModel,
        reward: Reward,
        config: GroupConfig | None = None,
    ) -> None:
        super().__init__(policy, reference, reward, config)
        check = Check("reinforce", self.config)
        for name in ("epochs", "minibatches"):
            once = getattr(self.config, name) == 1
            check.require(once, name, rule="must be 1: after an update the answers are not the policy's own")

    def estimate(self, experience: Experience) -> None:
        e = experience
        kl = np.where(e.mask, e.logs - e.reference, 0.0).sum(axis=1)
        advantages = leave_one_out(e.scores - self.beta * kl, self.group)
        e.advantages = np.where(e.mask, advantages[:, None], 0.0).astype(e.logs.dtype)

    def loss(self, experience: Experience, rows: Any) -> tuple[Tensor, dict[str, float]]:
        logs = self.logprobs(experience.rollout, rows)
        loss = (logs * -experience.advantages[rows]).sum() * (1 / len(rows))
        drift = (logs.numpy() - experience.logs[rows])[experience.mask[rows]]
        return loss, {"loss/policy": loss.item(), "policy/approxkl": float(0.5 * (drift**2).mean())}


class GRPO(GroupMethod):
    """Clipped ratios, advantages in standard deviations of the group, and the KL in the loss (Shao et al. 2024)

    The gradient of its estimate of the KL is that of KL(π_ref ‖ π), and dividing by the deviation changes the scale of
    the rewards from prompt to prompt: so its optimum is near to that of the objective, not equal to it.
    """

    def estimate(self, experience: Experience) -> None:
        advantages = group_advantages(experience.scores, self.group)
        spread = np.where(experience.mask, advantages[:, None], 0.0)
        experience.advantages = spread.astype(experience.logs.dtype)

    def loss(self, experience: Experience, rows: Any) -> tuple[Tensor, dict[str, float]]:
        e, mask = experience, experience.mask[rows]
        logs = self.logprobs(e.rollout, rows)
        policy, measured = clipped_surrogate(
            logs, e.logs[rows], e.advantages[rows], mask, self.config.clip_ratio
        )
        apart = e.reference[rows] - logs  # k3 = e^(ln π_ref - ln π) - 1 - (ln π_ref - ln π)
        kl = masked_mean(ops.exp(apart) - 1 - apart, mask)
        measured |= {"loss/policy": policy.item(), "loss/kl": kl.item()}
        return policy + kl * self.beta, measured
