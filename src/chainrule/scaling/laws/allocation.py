"""How a budget is split between parameters and tokens.

C = 6 N D: two FLOPs per parameter and token forward, four backward. `trace` counts exactly, with embeddings and
attention; Kaplan et al. leave the embeddings out of N, Hoffmann et al. count them in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from chainrule.errors import ConfigError
from chainrule.scaling.laws.joint import FLOPS, JointLaw

TOKENS_PER_PARAMETER = 20.0  # the rule of thumb after Hoffmann et al. 2022
EPOCHS = 4  # passes over the same text that are worth nearly as much as new text (Muennighoff et al. 2023)
INFERENCE = 2.0  # FLOPs per parameter of a token that is read or written


class Allocation(NamedTuple):
    """A model and how much it reads."""

    params: float
    tokens: float

    @property
    def flops(self) -> float:
        """Of the training."""
        return training_flops(self.params, self.tokens)


def training_flops(N: float, D: float) -> float:
    """6 N D

    >>> f"{training_flops(7e9, 140e9):.3g}"
    '5.88e+21'
    """
    return FLOPS * N * D


def chinchilla(C: float, ratio: float = TOKENS_PER_PARAMETER) -> Allocation:
    """N = √(C / (6 · ratio)) and D = ratio · N

    >>> chinchilla(5.88e23)
    Allocation(params=70000000000.0, tokens=1400000000000.0)
    """
    _positive(C=C, ratio=ratio)
    N = math.sqrt(C / (FLOPS * ratio))
    return Allocation(N, ratio * N)


def optimal(law: JointLaw, C: float) -> Allocation:
    """The N and D of the lowest loss for the compute C, in closed form"""
    _positive(C=C)
    N = law.best_params(C).item()
    return Allocation(N, C / (FLOPS * N))


def data_limited(C: float, tokens: float, ratio: float = TOKENS_PER_PARAMETER) -> dict[str, Allocation]:
    """What can be done with compute C and fewer tokens than it wants: three options

    `smaller`: a model that suits the text; compute is left over. `epochs`: the model that suits the compute, on the
    text again and again. `larger`: the text once, with a model so large that the compute is spent.
    """
    _positive(C=C, tokens=tokens, ratio=ratio)
    wanted = chinchilla(C, ratio)
    if tokens >= wanted.tokens:
        raise ConfigError(
            f"data: {tokens:.3g} tokens are enough for {C:.3g} FLOPs, which want {wanted.tokens:.3g} (no limit: use "
            "chinchilla)"
        )
    return {
        "smaller": Allocation(tokens / ratio, tokens),
        "epochs": wanted,
        "larger": Allocation(C / (FLOPS * tokens), tokens),
    }


def with_inference(law: JointLaw, loss: float, served: float) -> Allocation:
    """The N and D that reach `loss` at the lowest cost of training and of `served` tokens: 6 N D + 2 N served

    The more tokens are served, the smaller the model and the longer its training.
    """
    _positive(loss=loss)
    if served < 0:
        raise ConfigError(f"inference: {served:g} tokens served (must be 0 or more)")

    def tokens_for(log_N: float) -> float:
        """The D at which a model of N parameters reaches the loss; infinite if it never does"""
        N = math.exp(log_N)
        if law(N, math.inf).item() >= loss:
            return math.inf
        low, high = 0.0, 200.0  # ln D
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if law(N, math.exp(middle)).item() > loss else (low, middle)
        return math.exp(high)

    def cost(log_N: float) -> float:
        D = tokens_for(log_N)
        return math.inf if math.isinf(D) else log_N + math.log(FLOPS * D + INFERENCE * served)

    if law(math.inf, math.inf).item() >= loss:
        raise ConfigError(f"inference: loss {loss:g} is never reached by this law (must be above its floor)")
    log_N = _lowest(cost, 0.0, 100.0)
    return Allocation(math.exp(log_N), tokens_for(log_N))


def _lowest(cost: Callable[[float], float], low: float, high: float) -> float:
    """Where a cost with one valley is lowest: on a grid, then on finer ones around the best."""
    for _ in range(12):
        grid = np.linspace(low, high, 41)
        best = int(np.argmin([cost(x) for x in grid]))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    return float((low + high) / 2)


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise ConfigError(f"scaling: {name} is {value:g} (must be a positive number)")
