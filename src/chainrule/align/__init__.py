"""Alignment: preferences and rewards taught to a language model.

`dpo` learns from pairs (`preference_losses`); `ppo` and `group` from a reward of the policy's own answers (`rollouts`,
`advantages`, `policy_gradient`). `worlds` are small enough that the best policy is known exactly.
"""

from typing import TYPE_CHECKING

from chainrule import lazy

if TYPE_CHECKING:
    from chainrule.align.config import GroupConfig, PPOConfig
    from chainrule.align.dpo import DPO, Preference, pairs_of
    from chainrule.align.group import GRPO, Reinforce
    from chainrule.align.ppo import PPO
    from chainrule.align.preference_losses import preference_loss
    from chainrule.align.worlds import World

__all__ = [
    "DPO",
    "GRPO",
    "PPO",
    "GroupConfig",
    "PPOConfig",
    "Preference",
    "Reinforce",
    "World",
    "pairs_of",
    "preference_loss",
]

lazy.names(
    __name__,
    rooms="advantages behavior config distill dpo group policy_gradient ppo preference_losses reward rollouts worlds",
    config="GroupConfig PPOConfig",
    dpo="DPO Preference pairs_of",
    group="GRPO Reinforce",
    ppo="PPO",
    preference_losses="preference_loss",
    worlds="World",
)
