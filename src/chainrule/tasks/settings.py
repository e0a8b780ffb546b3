"""What a task and the doctor read of the settings of a training: `train.TrainConfig` has all of it, and more."""

from __future__ import annotations

from typing import Protocol


class Settings(Protocol):
    """How batches are made, and how a step treats them."""

    @property
    def max_steps(self) -> int: ...

    @property
    def budget(self) -> float | None: ...

    @property
    def batch_size(self) -> int: ...

    @property
    def accumulate(self) -> int: ...

    @property
    def eval_windows(self) -> int: ...

    @property
    def recompute(self) -> bool: ...

    @property
    def seed(self) -> int: ...

    @property
    def lr(self) -> float: ...

    @property
    def warmup(self) -> int: ...

    @property
    def clip(self) -> float: ...
