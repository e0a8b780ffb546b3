"""The settings of a training run, in three groups: how to learn, when to look, and all the rest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from chainrule.errors import ConfigError
from chainrule.native import PRECISIONS
from chainrule.tasks.registry import task_of

SCHEDULES = ("wsd", "cosine", "linear", "constant", "step", "inverse_sqrt")
ON_NAN = ("stop", "skip")


@dataclass(frozen=True)
class Learning:
    """AdamW, clipped gradients, and a learning rate that changes with the step."""

    max_steps: int = 2000
    """Updates to make."""
    budget: float | None = None
    """Time to train, in seconds (on the command line also 10m or 2h); replaces max_steps by as many as fit. Without
    sizes they are chosen to fit too."""
    batch_size: int = 32
    """Windows of text, or other examples, per update."""
    accumulate: int = 1
    """Pieces that a batch is worked through in: the same update in less memory."""
    lr: float = 3e-3
    """Highest learning rate."""
    schedule: str = "wsd"
    """Of the rate: wsd rises, stays and falls; cosine, linear, constant, step (a tenth for the last tenth of the
    steps), or inverse_sqrt, that of the first transformer."""
    min_lr: float = 0.0
    """Where the rate of wsd, cosine and linear ends."""
    warmup: int = 100
    """Steps over which the rate rises; it ends when the decay begins."""
    decay: float = 0.5
    """Share of the steps over which the rate of wsd falls at the end."""
    weight_decay: float = 0.1
    """Pull of the matrices towards 0; biases and gains are left alone."""
    beta2: float = 0.99
    """Memory of AdamW's second moment."""
    clip: float = 1.0
    """Largest norm of the gradient."""


@dataclass(frozen=True)
class Looking:
    """What is looked at on the way, and how often."""

    eval_every: int = 250
    """Steps between evaluations on the validation text."""
    eval_windows: int = 512
    """Windows per evaluation, at most."""
    patience: int = 0
    """Stop after this many evaluations without a new best; the best is what is used. 0 never stops early."""
    sample_every: int = 0
    """Steps between samples of what the model writes; 0 writes none."""
    save_every: int = 500
    """Steps between checkpoints; the last step is always saved."""
    watch_every: int = 0
    """Steps between looks at activations, gradients and updates, written to log.jsonl; 0 never looks."""


@dataclass(frozen=True)
class TrainConfig(Looking, Learning):
    """How to train."""

    precision: str = "fp32"
    """Of the factors of the linear layers: fp32, bf16 or fp16. Sums, weights and all else stay in fp32."""
    recompute: bool = False
    """Keep only what enters each block and compute the rest again in backward: less memory, a third more time."""
    ema: float = 0.0
    """Judge and keep a running mean of the weights with this memory, such as 0.999; 0 keeps the weights themselves."""
    on_nan: str = "stop"
    """What to do about a loss or gradient that is not finite: stop, or skip the step."""
    seed: int = 0
    """Of every random choice."""

    def __post_init__(self) -> None:
        self._at_least(1, "max_steps", "batch_size", "accumulate", "eval_every", "eval_windows", "save_every")
        self._at_least(0, "warmup", "watch_every", "sample_every", "patience")
        self._finite(lambda value: value > 0, "a positive number", "lr", "clip")
        if self.budget is not None:
            self._finite(lambda value: value > 0, "a positive number of seconds", "budget")
        self._finite(lambda value: value >= 0, "at least 0", "weight_decay")
        if self.weight_decay * self.lr >= 1:  # a step would leave nothing of a weight, or turn it round
            raise ConfigError(
                f"train: lr is {self.lr:g}, weight_decay {self.weight_decay:g} (their product must be below 1, "
                "the share of a weight that a step takes away: make one of them smaller)"
            )
        self._finite(lambda value: 0 <= value <= self.lr, f"from 0 to lr, {self.lr:g}", "min_lr")
        self._finite(lambda value: 0 <= value < 1, "at least 0 and below 1", "beta2", "ema")
        self._finite(lambda value: 0 < value < 1, "between 0 and 1", "decay")
        for name, known in (("precision", PRECISIONS), ("schedule", SCHEDULES), ("on_nan", ON_NAN)):
            self._require(getattr(self, name) in known, name, f"one of {', '.join(known)}")
        self._require(
            self.budget is None or self.schedule == "wsd",
            "schedule",
            "wsd with a budget: the number of steps is not known, and only wsd can do without",
        )
        self._require(
            self.accumulate <= self.batch_size, "accumulate", f"at most batch_size, {self.batch_size}"
        )
        self._require(0 <= self.seed < 2**64, "seed", "from 0 to 2**64 - 1")

    def _at_least(self, least: int, *names: str) -> None:
        for name in names:
            self._require(getattr(self, name) >= least, name, f"at least {least}")

    def _finite(self, holds: Any, rule: str, *names: str) -> None:
        for name in names:
            self._require(math.isfinite(getattr(self, name)) and holds(getattr(self, name)), name, rule)

    def _require(self, holds: bool, name: str, rule: str) -> None:
        if not holds:
            raise ConfigError(f"train: {name} is {getattr(self, name)} (must be {rule})")


def defaults(family: str) -> TrainConfig:
    """How a family is trained unless told otherwise."""
    return TrainConfig(lr=task_of(family).lr)
