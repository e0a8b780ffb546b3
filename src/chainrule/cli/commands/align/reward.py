"""`chainrule align reward`"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from chainrule.cli.args.runs.align import AlignOptions
from chainrule.errors import ConfigError


@dataclass(frozen=True)
class Command(AlignOptions):
    """Train a reward model: one number for a text, higher for the answer that was preferred (Bradley and Terry 1952).

    It is the body of BASE with a new head at the last token. Only differences of rewards mean something. At every
    evaluation accuracy says how often the preferred answer has the higher reward, calibration_error whether the model
    is as sure as it is right.

    Example: chainrule align reward runs/chat preferences.jsonl --out runs/reward
    """

    verb: ClassVar[str] = "reward"
    reads: ClassVar[str] = "reading the pairs"
    center: float = 0.0
    """Weight of (r_w + r_l)² in the loss, such as 0.01: keeps rewards near 0, as a reward for PPO should be."""
    skip_ties: bool = False
    """Leave out pairs whose answers are the same; without it they are an error."""

    def family(self, start: Any) -> str:
        from chainrule.models.registry import REWARDS

        family = super().family(start)
        found = family if family in REWARDS else f"{family}-reward"
        if found not in REWARDS:
            known = ", ".join(name.removesuffix("-reward") for name in REWARDS)
            raise ConfigError(f"align reward: BASE is a {family} (must be one of {known})")
        return found
