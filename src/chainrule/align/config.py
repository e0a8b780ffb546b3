"""The settings of policy gradients."""

from __future__ import annotations

from dataclasses import dataclass

from chainrule.validate import Check


@dataclass(frozen=True)
class PolicyConfig:
    """What all methods have in common."""

    beta: float = 0.05
    """How much an answer costs per nat that it is likelier than under the reference."""
    max_new_tokens: int = 32
    """Longest answer."""
    lr: float = 1e-5
    epochs: int = 4
    """Updates on each rollout."""
    minibatches: int = 1
    """Parts of a rollout, each with an update of its own."""
    clip_ratio: float = 0.2
    """How far the ratio of probabilities may move from 1 in one step before it stops paying."""
    grad_clip: float = 1.0
    end: int | None = None
    """The token that ends an answer."""
    temperature: float = 1.0
    """Of the answers, and of the policy and the reference that score them: above 1 they vary more."""
    seed: int = 0

    def __post_init__(self) -> None:
        check = Check(type(self).__name__, self)
        check.not_negative("beta")
        check.positive("lr", "clip_ratio", "grad_clip", "temperature")
        check.at_least(1, "max_new_tokens", "epochs", "minibatches")


@dataclass(frozen=True)
class PPOConfig(PolicyConfig):
    """Settings of PPO."""

    gamma: float = 1.0
    """What a reward is worth one token earlier."""
    lam: float = 0.95
    """How far advantages look ahead: 1 to the end (no bias, much noise), 0 to the next value."""
    whiten: bool = True
    """Advantages get mean 0 and standard deviation 1 in each rollout."""
    value_clip: float = 0.2
    """How far a value may move from what it was in one step before it stops paying."""
    value_coef: float = 0.1
    """Weight of the loss of the value head."""
    entropy_coef: float = 0.0
    """Weight of a bonus for entropy, which keeps answers varied."""
    target_kl: float | None = None
    """If given, β is adapted until the KL to the reference is this many nats per answer (Ziegler et al. 2019)."""
    horizon: int = 10_000
    """Answers in which β adapts."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check = Check(type(self).__name__, self)
        check.positive("value_clip", "target_kl")
        check.not_negative("value_coef", "entropy_coef")
        check.at_least(1, "horizon")
        for name in ("gamma", "lam"):
            check.require(0 <= getattr(self, name) <= 1, name, rule="must be from 0 to 1")


@dataclass(frozen=True)
class GroupConfig(PolicyConfig):
    """Settings of methods that compare the answers to one prompt with each other."""

    epochs: int = 1
    group: int = 8
    """Answers to each prompt."""

    def __post_init__(self) -> None:
        super().__post_init__()
        Check(type(self).__name__, self).at_least(2, "group")
