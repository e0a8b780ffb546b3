"""The settings of a training run."""

from __future__ import annotations

import math
from dataclasses import dataclass

from chainrule.errors import ConfigError
from chainrule.native import PRECISIONS


@dataclass(frozen=True)
class TrainConfig:
    """How to train: AdamW, clipped gradients, and a learning rate that rises, stays, and falls to 0."""

    max_steps: int = 2000
    """Updates to make."""
    budget: float | None = None
    """Seconds to train; replaces max_steps by as many as fit."""
    batch_size: int = 32
    """Windows of text per update."""
    lr: float = 3e-3
    """Highest learning rate."""
    warmup: int = 100
    """Steps over which the rate rises; it ends when the decay begins."""
    decay: float = 0.5
    """Share of the steps over which the rate falls at the end."""
    weight_decay: float = 0.1
    """Pull of the matrices towards 0."""
    beta2: float = 0.99
    """Memory of AdamW's second moment."""
    clip: float = 1.0
    """Largest norm of the gradient."""
    precision: str = "fp32"
    """Of the factors of the linear layers: fp32, bf16 or fp16. Sums, weights and all else stay in fp32."""
    eval_every: int = 250
    """Steps between evaluations on the validation text."""
    eval_windows: int = 512
    """Windows per evaluation, at most."""
    save_every: int = 500
    """Steps between checkpoints; the last step is always saved."""
    watch_every: int = 0
    """Steps between looks at activations, gradients and updates, written to log.jsonl; 0 never looks."""
    seed: int = 0
    """Of every random choice."""

    def __post_init__(self) -> None:
        for name in ("max_steps", "batch_size", "eval_every", "eval_windows", "save_every"):
            self._require(getattr(self, name) >= 1, name, "at least 1")
        for name in ("lr", "clip"):
            value = getattr(self, name)
            self._require(math.isfinite(value) and value > 0, name, "a positive number")
        if self.budget is not None:
            self._require(
                math.isfinite(self.budget) and self.budget > 0, "budget", "a positive number of seconds"
            )
        for name in ("warmup", "watch_every"):
            self._require(getattr(self, name) >= 0, name, "at least 0")
        self._require(0 < self.decay < 1, "decay", "between 0 and 1")
        self._require(
            math.isfinite(self.weight_decay) and self.weight_decay >= 0, "weight_decay", "at least 0"
        )
        self._require(0 <= self.beta2 < 1, "beta2", "at least 0 and below 1")
        self._require(self.precision in PRECISIONS, "precision", f"one of {', '.join(PRECISIONS)}")
        self._require(0 <= self.seed < 2**64, "seed", "from 0 to 2**64 - 1")

    def _require(self, holds: bool, name: str, rule: str) -> None:
        if not holds:
            raise ConfigError(f"train: {name} is {getattr(self, name)} (must be {rule})")
