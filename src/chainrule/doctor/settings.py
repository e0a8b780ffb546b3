"""What the doctor reads of the settings of a training; `train.TrainConfig` has all of them."""

from __future__ import annotations

from typing import Protocol


class Settings(Protocol):
    """How long to train, how a step treats its batch, and how large the step is."""

    @property
    def max_steps(self) -> int: ...

    @property
    def budget(self) -> float | None: ...

    @property
    def eval_every(self) -> int: ...

    @property
    def accumulate(self) -> int: ...

    @property
    def precision(self) -> str: ...

    @property
    def seed(self) -> int: ...

    @property
    def lr(self) -> float: ...

    @property
    def warmup(self) -> int: ...

    @property
    def clip(self) -> float: ...

    @property
    def weight_decay(self) -> float: ...
