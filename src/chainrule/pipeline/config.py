"""How large the model of a pipeline is, and how long each stage takes."""

from __future__ import annotations

from dataclasses import dataclass

from chainrule.calls import Fields
from chainrule.validate import Check


@dataclass(frozen=True)
class PipelineConfig(Fields):
    """Sizes and steps. The default takes about ten minutes on two cores."""

    n_layer: int = 4
    """Blocks."""
    n_embd: int = 192
    """Width of the residual stream."""
    n_head: int = 4
    """Attention heads per block."""
    block_size: int = 160
    """Longest context, in tokens."""
    vocab_size: int = 1500
    """Tokens of the byte-pair tokenizer."""
    pretrain_steps: int = 500
    """Steps on pydoc. They are few: with twice as many the model overfits."""
    continued_steps: int = 450
    """Steps on docstrings, as plain text."""
    instruct_steps: int = 450
    """Steps on docstrings, as questions and answers."""
    comparisons: int = 1200
    """Prompts with two answers each that are compared."""
    reward_steps: int = 150
    """Steps of the reward model."""
    ppo_steps: int = 80
    """Steps of PPO."""
    dpo_steps: int = 120
    """Steps of DPO."""
    answer_tokens: int = 32
    """Longest answer."""
    compared: int = 200
    """Prompts that are held back, by which models are compared."""
    seed: int = 0
    """Seed of every random choice."""

    def __post_init__(self) -> None:
        check = Check("pipeline", self)
        names = [name for name in vars(self) if name != "seed"]
        check.at_least(1, *names)
        check.seed()


QUICK = PipelineConfig(
    n_layer=1, n_embd=16, n_head=2, block_size=128, vocab_size=400, pretrain_steps=6, continued_steps=4,
    instruct_steps=4, comparisons=40, reward_steps=4, ppo_steps=3, dpo_steps=4, answer_tokens=8, compared=10,
)  # fmt: skip
"""A few seconds, for a look at the parts; nothing is learned."""
