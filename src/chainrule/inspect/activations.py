"""Activations of a layer and their gradients: spread, saturation, dead units, histograms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule import ops
from chainrule.autograd.capture import Capture, Captured
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, ShapeError
from chainrule.inspect.probe import op_of

SQUASHING = {"tanh": 1.0, "sigmoid": 0.25, "rnn_cell": 1.0, "rnn_sequence": 1.0}  # with their steepest slope
RECTIFYING = dict.fromkeys(("relu", "gelu", "gelu_tanh", "silu", "swiglu", "elu", "softplus"), 1.0)
OTHERS = ("leaky_relu", "prelu", "gru_cell", "gru_sequence", "lstm_cell", "lstm_sequence")  # never quite flat
ACTIVATIONS = (*SQUASHING, *RECTIFYING, *OTHERS)
STREAM = "add"  # the residual stream is a chain of sums

SATURATED = 0.99
"""|tanh| above this is saturated: its slope 1 - 0.99² = 0.02 lets a fiftieth of the gradient through."""

BINS = 60


def saturation_point(M: float = SATURATED) -> float:
    """The x at which tanh x = M: ln((1 + M) / (1 - M)) / 2.

    >>> from chainrule.inspect.activations import saturation_point
    >>> round(saturation_point(0.99), 4)
    2.6467
    """
    if not 0 <= M < 1:
        raise ConfigError(f"saturation_point: M is {M} (must be at least 0 and below 1)")
    return math.log((1 + M) / (1 - M)) / 2


def saturated_fraction(y: npt.ArrayLike, M: float = SATURATED) -> float:
    """The fraction of outputs of tanh with `|y| > M`."""
    return float((np.abs(np.asarray(y)) > M).mean())


def gradient_map(x: npt.ArrayLike) -> Array:
    """1 - tanh² x of pre-activations (examples, units): how much of a gradient passes each entry."""
    return np.asarray(1 - np.tanh(np.asarray(x)) ** 2)


def dead_units(slopes: npt.ArrayLike, flat: float = 1 - SATURATED**2) -> list[int]:
    """Units (columns) whose slope is below `flat` for every example of the sample.

    A larger sample can only make the list shorter: dead means that no example seen so far moves the unit.
    """
    steep: Array = np.abs(np.asarray(slopes))
    if steep.ndim != 2 or steep.shape[0] == 0:
        raise ShapeError(
            f"dead_units: slopes {steep.shape} (must be (examples, units), at least one example)"
        )
    return [int(i) for i in np.flatnonzero((steep <= flat).all(axis=0))]


@dataclass(frozen=True)
class Histogram:
    """How many entries fall between neighboring edges; all finite entries are counted."""

    counts: npt.NDArray[np.int64]
    edges: npt.NDArray[np.float64]

    @classmethod
    def of(cls, values: Array, bins: int = BINS) -> Histogram:
        kept = _finite(values)
        low, high = (np.float64(kept.min()), np.float64(kept.max())) if kept.size else (0.0, 1.0)
        # Edges in float64, and apart: float32 values that differ in their last bit must not share an edge.
        margin = max(1e-30, 1e-9 * max(abs(low), abs(high)))
        reach = (low, high) if high - low > margin else (low - margin, high + margin)
        counts, edges = np.histogram(kept, bins=bins, range=reach)
        return cls(counts, edges)

    @property
    def density(self) -> npt.NDArray[np.float64]:
        """Counts as a curve of area 1."""
        area = self.counts.sum() * np.diff(self.edges)
        return np.divide(self.counts, area, out=np.zeros(len(self.counts)), where=area > 0)

    def to_dict(self) -> dict[str, Any]:
        return {"counts": self.counts.tolist(), "edges": self.edges.tolist()}


@dataclass(frozen=True)
class Distribution:
    """One array of numbers, summed up."""

    mean: float
    std: float
    finite: bool
    histogram: Histogram

    @classmethod
    def of(cls, values: Array) -> Distribution:
        kept = _finite(values)
        mean = float(kept.mean(dtype=np.float64)) if kept.size else math.nan
        std = float(kept.std(dtype=np.float64)) if kept.size else math.nan
        return cls(mean, std, kept.size == values.size, Histogram.of(kept))

    def to_dict(self) -> dict[str, Any]:
        return vars(self) | {"histogram": self.histogram.to_dict()}


def _finite(values: Array) -> Array:
    finite = np.isfinite(values)
    return values if finite.all() else values[finite]


@dataclass(frozen=True)
class LayerReport:
    """What a layer put out for one batch, and the gradient that came back to it."""

    name: str
    op: str
    examples: int
    units: int
    value: Distribution
    grad: Distribution | None
    flat: float | None
    """Fraction of entries that let less than a fiftieth of the gradient through: saturated, or silent."""
    dead: tuple[int, ...]
    """Units that are flat for every example."""

    def to_dict(self) -> dict[str, Any]:
        grad = self.grad.to_dict() if self.grad else None
        return vars(self) | {"value": self.value.to_dict(), "grad": grad, "dead": list(self.dead)}


def layers(seen: Capture) -> list[LayerReport]:
    """One report for every captured activation and residual sum, in the order of the forward pass."""
    return [layer(entry) for entry in seen.values() if op_of(entry.name) in (*ACTIVATIONS, STREAM)]


def layer(entry: Captured) -> LayerReport:
    """Sum up one captured call; the last axis holds the units, all others are examples."""
    op = op_of(entry.name)
    units = entry.value.shape[-1] if entry.value.ndim else 1
    slopes = slope(entry)
    flat: float | None = None
    dead: tuple[int, ...] = ()
    if slopes is not None:
        limit = (1 - SATURATED**2) * (SQUASHING | RECTIFYING)[op]
        slopes = slopes.reshape(-1, units)
        flat, dead = float((np.abs(slopes) <= limit).mean()), tuple(dead_units(slopes, limit))
    grad = None if entry.grad is None else Distribution.of(entry.grad)
    examples = entry.value.size // units
    return LayerReport(entry.name, op, examples, units, Distribution.of(entry.value), grad, flat, dead)


def slope(entry: Captured) -> Array | None:
    """dy/dx at every entry of an activation, None for an op that is not elementwise or never flat."""
    op = op_of(entry.name)
    if op.startswith("rnn_"):
        return np.asarray(1 - entry.value**2)  # forward was: y = tanh(a)
    if op not in SQUASHING | RECTIFYING:
        return None
    saved = entry.saved
    if op == "swiglu":
        op, saved = "silu", saved[:1]  # forward was: y = silu(gate) up; the gate decides
    with np.errstate(all="ignore"):  # what is not finite is a finding
        # The backward pass of an elementwise op, given ones, is its slope.
        return ops.all_ops()[op].run_backward(np.ones_like(entry.value), saved, (True,))[0]


def factor_per_layer(spreads: npt.ArrayLike) -> float:
    """The factor q with last = first · q^(n-1): what one layer does to a spread."""
    spreads = np.asarray(spreads, dtype=np.float64)
    if len(spreads) < 2 or not (spreads > 0).all():
        return math.nan
    return float((spreads[-1] / spreads[0]) ** (1 / (len(spreads) - 1)))
