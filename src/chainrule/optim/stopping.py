"""Early stopping on the validation loss."""

from __future__ import annotations

import math

from chainrule.errors import ConfigError


class EarlyStopping:
    """True once the validation loss has not improved for `patience` evaluations.

    >>> from chainrule.optim import EarlyStopping
    >>> stop = EarlyStopping(patience=2)
    >>> [stop(step, loss) for step, loss in enumerate([3.0, 2.0, 2.5, 2.1])], stop.best_step
    ([False, False, False, True], 1)
    """

    def __init__(self, patience: int, *, min_delta: float = 0.0) -> None:
        if patience < 1:
            raise ConfigError(f"EarlyStopping: patience is {patience} (must be at least 1)")
        if min_delta < 0:
            raise ConfigError(f"EarlyStopping: min_delta is {min_delta!r} (must be at least 0)")
        self.patience = patience
        self.min_delta = min_delta
        self.best = math.inf
        self.best_step = -1
        self.waited = 0

    def __call__(self, step: int, loss: float) -> bool:
        """Record the validation `loss` at `step`; True when training should stop. NaN does not improve."""
        if loss < self.best - self.min_delta:
            self.best, self.best_step, self.waited = loss, step, 0
        else:
            self.waited += 1
        return self.waited >= self.patience
