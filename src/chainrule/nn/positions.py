"""Positional encodings: added to embeddings, or to scores by distance.        Derivation: docs/derivations/positions.md

Positions count from 0.
"""

from __future__ import annotations

import math

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.recording import constant
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, ShapeError
from chainrule.nn.init import Init, normal, parameter
from chainrule.nn.layer import Layer


def frequencies(d: int, base: float = 10000.0) -> Array:
    """ω_i = base^(-2i/d) for the pairs i = 0 .. ⌈d/2⌉ - 1, in radians per position.

    d -> (⌈d/2⌉,)
    """
    if d < 1 or base <= 0:
        raise ConfigError(f"positions: size {d}, base {base!r} (both must be positive)")
    return base ** (-np.arange(0, d, 2) / d)  # [PE.1]


def wavelengths(d: int, base: float = 10000.0) -> Array:
    """How many positions each pair takes for a full turn, 2π/ω_i.

    d -> (⌈d/2⌉,)
    """
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
        return x + Tensor.wrap(constant(self.table[start:stop].astype(x.dtype)))


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
        return x + ops.embedding(self.weight, ids=constant(np.arange(start, stop)))


def distance_buckets(distances: Array, buckets: int, *, farthest: int = 128, causal: bool = False) -> Array:
    """Distances (n,) from a query to a key, below 0 for a key before it -> their buckets (n,), from 0 to buckets - 1

    Half of the buckets are for keys after the query; with `causal` these share bucket 0. Of either half the first half
    is for one distance each, the others for ever more of them, up to `farthest` (Raffel et al. 2020).

    >>> import numpy as np
    >>> from chainrule.nn.positions import distance_buckets
    >>> distance_buckets(np.array([-200, -9, -2, 0, 1, 20]), 32).tolist()
    [15, 8, 2, 0, 17, 26]
    """
    kinds = buckets if causal else buckets // 2
    exact = max(1, kinds // 2)
    if kinds < 2 or farthest <= exact:
        raise ConfigError(
            f"positions: {buckets} buckets up to distance {farthest} (must be at least {2 if causal else 4}, and the "
            "distance more than half of those for one direction)"
        )
    far = np.maximum(-distances, 0) if causal else np.abs(distances)
    # In float32, as in published code: at a power of two the last bit decides.
    ratio = np.log(np.maximum(far, 1).astype(np.float32) / np.float32(exact)) / np.float32(
        math.log(farthest / exact)
    )
    grown = exact + (ratio * np.float32(kinds - exact)).astype(np.int64)  # [PE.6]
    found = np.where(far < exact, far, np.minimum(grown, kinds - 1))
    after = 0 if causal else kinds * (distances > 0)
    return np.asarray(found + after)


class DistanceBias(Layer):
    """A learned number for each bucket of distances and each head: the bias of `ops.relative_attention`.

    `longest` is the largest number of positions.
    """

    def __init__(
        self,
        buckets: int,
        heads: int,
        longest: int,
        *,
        farthest: int = 128,
        causal: bool = False,
        init: Init = normal,
    ) -> None:
        distance_buckets(np.zeros(1, np.int64), buckets, farthest=farthest, causal=causal)  # checks them
        self.weight = parameter(init, (buckets, heads))
        self.longest = longest
        self.farthest = farthest
        self.causal = causal

    def forward(self) -> Tensor:
        """-> (H, 2N - 1), for distances from -(N - 1) to N - 1"""
        distances = np.arange(1 - self.longest, self.longest)
        places = distance_buckets(distances, len(self.weight), farthest=self.farthest, causal=self.causal)
        return ops.embedding(self.weight, ids=constant(places)).transpose(1, 0)
