"""Alignment: preferences and rewards taught to a language model.

`dpo` learns from pairs (`preference_losses`); `ppo` and `group` from a reward of the policy's own answers (`rollouts`,
`advantages`, `policy_gradient`). `worlds` are small enough that the best policy is known exactly.
"""

from chainrule import lazy
from chainrule.align.dpo import DPO, Preference, pairs_of
from chainrule.align.group import GRPO, GroupConfig, Reinforce
from chainrule.align.ppo import PPO, PPOConfig
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

lazy.names(__name__)
