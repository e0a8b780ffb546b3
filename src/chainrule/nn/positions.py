"""Positional encodings, added to embeddings.        Derivation: docs/derivations/positions.md

Positions count from 0.
"""

from __future__ import annotations

import math

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, ShapeError
from chainrule.nn.init import Init, normal, parameter
from chainrule.nn.layer import Layer


def frequencies(d: int, base: float = 10000.0) -> Array:
    """ω_i = base^(-2i/d) for the pairs i = 0 .. ⌈d/2⌉ - 1, in radians per position."""
    if d < 1 or base <= 0:
        raise ConfigError(f"positions: size {d}, base {base!r} (both must be positive)")
    return base ** (-np.arange(0, d, 2) / d)  # [PE.1]


def wavelengths(d: int, base: float = 10000.0) -> Array:
    """How many positions each pair takes for a full turn, 2π/ω_i."""
    return 2 * math.pi / frequencies(d, base)  # [PE.2]


def sinusoidal(
    n: int, d: int, base: float = 10000.0, layout: str = "interleaved", *, start: int = 0
) -> Array:
    """The encodings (n, d) of positions start .. start + n - 1, in float64.

    "interleaved": sin, cos of pair 0, sin, cos of pair 1, ...; "half": all sines, then all cosines. With an
    odd `d` the last cosine is dropped.
    """
    angles = np.arange(start, start + n)[:, None] * frequencies(d, base)  # (n, pairs)
    table = np.empty((n, d))
    sines, cosines = _columns(d, layout)
    table[:, sines] = np.sin(angles)  # [PE.3]
    table[:, cosines] = np.cos(angles)[:, : len(cosines)]  # [PE.4]
    return table


def shift_matrix(k: int, d: int, base: float = 10000.0, layout: str = "interleaved") -> Array:
    """The rotation R (d, d) with p(t + k) = R p(t) for every position t: the same step everywhere."""
    if d % 2:
        raise ConfigError(
            f"shift_matrix: size {d} (must be even: each frequency needs its sine and its cosine)"
        )
    angles = k * frequencies(d, base)
    sines, cosines = _columns(d, layout)
    R = np.zeros((d, d))
    R[sines, sines] = R[cosines, cosines] = np.cos(angles)
    R[sines, cosines] = np.sin(angles)  # [PE.5]
    R[cosines, sines] = -np.sin(angles)
    return R


def _columns(d: int, layout: str) -> tuple[Array, Array]:
    """Columns of the sines and of the cosines."""
    if layout not in ("interleaved", "half"):
        raise ConfigError(f"positions: layout {layout!r} (must be interleaved or half)")
    columns = np.arange(d)
    pairs = (d + 1) // 2
    return (columns[0::2], columns[1::2]) if layout == "interleaved" else (columns[:pairs], columns[pairs:])


class SinusoidalPositions(Layer):
    """x + p: the fixed encoding, for any length."""

    def __init__(self, dim: int, *, base: float = 10000.0, layout: str = "interleaved") -> None:
        self.dim = dim
        self.base = base
        self.layout = layout
        self.table = sinusoidal(0, dim, base, layout)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """x (..., T, C) at positions start .. start + T - 1 -> (..., T, C)"""
        stop = start + x.shape[-2]
        if start < 0:
            raise ShapeError(f"SinusoidalPositions: start is {start} (positions count from 0)")
        if stop > len(self.table):
            self.table = sinusoidal(max(stop, 2 * len(self.table)), self.dim, self.base, self.layout)
        return x + Tensor.wrap(self.table[start:stop].astype(x.dtype))


class LearnedPositions(Layer):
    """x + p with a learned row p for each of `max_len` positions; there is nothing beyond them."""

    def __init__(self, max_len: int, dim: int, *, init: Init = normal) -> None:
        self.weight = parameter(init, (max_len, dim))

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """x (..., T, C) at positions start .. start + T - 1 -> (..., T, C)"""
        stop, limit = start + x.shape[-2], len(self.weight)
        if start < 0 or stop > limit:
            raise ShapeError(
                f"LearnedPositions: positions {start} to {stop - 1}, the table has 0 to {limit - 1}"
            )
        return x + ops.embedding(self.weight, ids=np.arange(start, stop))
