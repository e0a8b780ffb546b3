"""Learning-rate schedules: functions of the step.        Derivation: docs/derivations/optimizers.md

    schedule = cosine(3e-4, steps=1000, warmup=50)
    for step in range(1000):
        ...
        optimizer.step(schedule(step))

Steps count from 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from chainrule.calls import answering
from chainrule.errors import ConfigError

Schedule: TypeAlias = Callable[[int], float]


@answering
def constant(lr: float) -> Schedule:
    """Always `lr`."""
    _require(lr >= 0, "constant", f"lr is {lr!r} (must be at least 0)")
    return lambda step: lr


@answering
def step_decay(lr: float, steps: int, *, at: float = 0.9, factor: float = 10.0) -> Schedule:
    """`lr`, divided by `factor` after the fraction `at` of all steps."""
    _require(0 <= at <= 1, "step_decay", f"at is {at!r} (must be a fraction from 0 to 1)")
    _require(factor > 0, "step_decay", f"factor is {factor!r} (must be positive)")
    drop = round(at * steps)
    return lambda step: lr if step < drop else lr / factor  # [OP.21]


@answering
def inverse_sqrt(d_model: int, warmup: int = 4000, *, scale: float = 1.0) -> Schedule:
    """d^-½ min(t^-½, t warmup^-3/2): rises to a peak at t = `warmup`, then falls like 1/√t.

    The paper counts t from 1, so step 0 gets the rate of t = 1.
    """
    _require(d_model > 0, "inverse_sqrt", f"d_model is {d_model} (must be positive)")
    _require(warmup > 0, "inverse_sqrt", f"warmup is {warmup} (must be positive)")

    def schedule(step: int) -> float:
        t = max(step, 1)
        return scale * d_model**-0.5 * min(t**-0.5, t * warmup**-1.5)  # [OP.22]

    return schedule


@answering
def cosine(lr: float, steps: int, *, warmup: int = 0, final: float = 0.0) -> Schedule:
    """Linear warm-up to `lr`, then half a cosine wave down to `final` at `steps`, constant after that."""
    return _rise_and_fall(
        "cosine", lr, steps, warmup, steps - warmup, final, lambda x: (1 + math.cos(math.pi * x)) / 2
    )


@answering
def linear(lr: float, steps: int, *, warmup: int = 0, final: float = 0.0) -> Schedule:
    """Linear warm-up to `lr`, then a straight line down to `final` at `steps`, constant after that."""
    return _rise_and_fall("linear", lr, steps, warmup, steps - warmup, final, lambda x: 1 - x)


@answering
def wsd(lr: float, steps: int, *, warmup: int = 0, decay: int, final: float = 0.0) -> Schedule:
    """Warm-up, stable, decay: up to `lr`, constant, then linearly to `final` in the last `decay` steps."""
    left = steps - warmup
    _require(0 < decay <= left, "wsd", f"decay is {decay} of {left} steps left after the warm-up")
    return _rise_and_fall("wsd", lr, steps, warmup, decay, final, lambda x: 1 - x)


def _rise_and_fall(
    who: str, lr: float, steps: int, warmup: int, decay: int, final: float, shape: Callable[[float], float]
) -> Schedule:
    """Linear rise over `warmup` steps; over the last `decay` steps `shape` falls from 1 to 0."""
    _require(0 <= warmup < steps, who, f"warmup is {warmup}, steps {steps} (must be fewer than the steps)")
    _require(0 <= final <= lr, who, f"final is {final!r}, lr {lr!r} (must be from 0 to lr)")

    def fall(step: int) -> float:
        x = (step - (steps - decay)) / decay
        return final + (lr - final) * shape(min(max(x, 0.0), 1.0))  # [OP.24]

    return after_warmup(fall, warmup, lr)


def after_warmup(schedule: Schedule, warmup: int, lr: float) -> Schedule:
    """The schedule, but over the first `warmup` steps a rise to `lr`."""

    def rise(step: int) -> float:
        if step < warmup:
            return lr * (step + 1) / (warmup + 1)  # not 0: step 0 moves too    [OP.23]
        return schedule(step)

    return rise


class Transferred(NamedTuple):
    """Settings for another model size."""

    lr: float
    batch: float


@answering
def transfer(lr: float, batch: float, *, params: float, to_params: float) -> Transferred:
    """Settings tuned on a model of `params` parameters, for one of `to_params`: rate ∝ N^-½, batch ∝ N^½.

    A starting point, not a law.

    >>> from chainrule.optim import transfer
    >>> transfer(1e-3, 32, params=1e8, to_params=1e10)
    Transferred(lr=0.0001, batch=320.0)
    """
    sizes = f"sizes {params!r} and {to_params!r}"
    _require(params > 0 and to_params > 0, "transfer", f"{sizes} (must be positive)")
    growth = math.sqrt(to_params / params)
    return Transferred(lr / growth, batch * growth)  # [OP.25]


def _require(holds: bool, who: str, message: str) -> None:
    if not holds:
        raise ConfigError(f"{who}: {message}")
