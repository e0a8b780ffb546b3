"""`chainrule align dpo`"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from chainrule.cli.args.runs.align import AlignOptions


@dataclass(frozen=True)
class Command(AlignOptions):
    """Teach a language model which of two answers is preferred, directly: no reward model, no sampling.

    The policy begins as a copy of BASE and is held near it. At the start the loss is ln 2, a guess. At every evaluation
    rewards/accuracies says how often the preferred answer has gained more probability than the other, rewards/margins
    by how much, in nats times beta.

    Example: chainrule align dpo runs/chat preferences.jsonl --beta 0.1 --out runs/dpo
    """

    verb: ClassVar[str] = "dpo"
    loss: Literal["sigmoid", "ipo", "hinge", "robust"] = "sigmoid"
    """Loss of a pair: sigmoid (DPO), ipo (does not push without end), hinge, or robust (some labels are wrong)."""
    beta: float = 0.1
    """How strongly the policy is held near BASE: the larger, the nearer."""
    noise: float | None = None
    """Fraction of labels that are wrong, for --loss robust. Default: 0.1."""
    skip_ties: bool = False
    """Leave out pairs whose answers are the same; without it they are an error."""
