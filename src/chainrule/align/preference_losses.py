"""Losses of preferences: y_w was preferred to y_l, and the policy should prefer it more than the reference does.

    margin = ln π(y_w|x)/π_ref(y_w|x) - ln π(y_l|x)/π_ref(y_l|x)

β ln π/π_ref is the reward that a policy implies: the optimum of E[r] - β KL(π ‖ π_ref) has this difference of rewards
between any two answers. So β·margin is the logit of "y_w is better" in the Bradley-Terry model.

| loss    | formula                                            |                                                  |
|---------|----------------------------------------------------|--------------------------------------------------|
| sigmoid | -ln σ(β m)                                         | DPO (Rafailov et al. 2023)                       |
| robust  | ((1-ε) L(m) - ε L(-m)) / (1-2ε), L of sigmoid      | unbiased if labels are wrong with probability ε  |
| ipo     | (m - 1/(2β))²                                      | does not push without end (Azar et al. 2023)     |
| hinge   | max(0, 1 - β m)                                    | content with a margin of 1/β (Zhao et al. 2023)  |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.calls import Fields
from chainrule.errors import ConfigError
from chainrule.suggest import hinted
from chainrule.validate import Check


@dataclass(frozen=True)
class PreferenceLoss(Fields):
    """The loss of a margin. A large β keeps the policy near the reference."""

    name: ClassVar[str]
    likelihood: ClassVar[bool] = False
    """It is a negative log-likelihood of the labels: where the margin is 0 it is ln 2."""
    beta: float = 0.1

    def __post_init__(self) -> None:
        Check(self.name, self).positive("beta")

    def __call__(self, margin: Tensor) -> Tensor:
        """margin (B,) -> losses (B,)"""
        raise NotImplementedError


@dataclass(frozen=True)
class Sigmoid(PreferenceLoss):
    """-ln σ(β m)"""

    name: ClassVar[str] = "sigmoid"
    likelihood: ClassVar[bool] = True

    def __call__(self, margin: Tensor) -> Tensor:
        return ops.softplus(margin * -self.beta)


@dataclass(frozen=True)
class Robust(PreferenceLoss):
    """The loss of sigmoid for labels that are wrong with probability `noise`: its mean is that of right labels."""

    name: ClassVar[str] = "robust"
    likelihood: ClassVar[bool] = True
    noise: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        Check(self.name, self).require(0 <= self.noise < 0.5, "noise", rule="must be from 0 to below 0.5")

    def __call__(self, margin: Tensor) -> Tensor:
        plain = Sigmoid(self.beta)
        right, wrong = plain(margin), plain(-margin)
        return (right * (1 - self.noise) - wrong * self.noise) * (1 / (1 - 2 * self.noise))


@dataclass(frozen=True)
class IPO(PreferenceLoss):
    """(m - 1/(2β))²: the margin has an aim, also where all judges agree."""

    name: ClassVar[str] = "ipo"

    def __call__(self, margin: Tensor) -> Tensor:
        gap = margin - 1 / (2 * self.beta)
        return gap * gap


@dataclass(frozen=True)
class Hinge(PreferenceLoss):
    """max(0, 1 - β m)"""

    name: ClassVar[str] = "hinge"

    def __call__(self, margin: Tensor) -> Tensor:
        return ops.relu(1 - margin * self.beta)


LOSSES: dict[str, type[PreferenceLoss]] = {kind.name: kind for kind in (Sigmoid, Robust, IPO, Hinge)}


def preference_loss(name: str, **settings: Any) -> PreferenceLoss:
    """The loss of this name, with its settings

    >>> from chainrule.align import preference_loss
    >>> preference_loss("ipo", beta=0.5)
    IPO(beta=0.5)
    """
    if name not in LOSSES:
        rule = hinted(f"must be one of {', '.join(LOSSES)}", name, LOSSES)
        raise ConfigError(f"preference loss {name!r}: not known ({rule})")
    return LOSSES[name](**settings)
