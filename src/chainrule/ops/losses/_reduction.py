"""Reduction of the losses of examples to one number, and its gradient; shared by all losses."""

from __future__ import annotations

from chainrule.autograd.types import Array
from chainrule.errors import ConfigError


def check_reduction(name: str, reduction: str) -> None:
    if reduction not in ("mean", "sum", "none"):
        raise ConfigError(f"{name}: reduction is {reduction!r} (must be 'mean', 'sum' or 'none')")


def reduced(name: str, losses: Array, reduction: str) -> Array:
    """The mean or sum of `losses`, or all of them; the mean of no losses is 0."""
    check_reduction(name, reduction)
    if reduction == "none":
        return losses
    total: Array = losses.sum()
    return total / max(1, losses.size) if reduction == "mean" else total


def spread(dy: Array, size: int, reduction: str) -> Array:
    """The gradient of each of `size` losses, given that of the reduced loss; one number if all are equal."""
    return dy / max(1, size) if reduction == "mean" else dy
