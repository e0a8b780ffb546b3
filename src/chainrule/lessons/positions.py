"""Why a position is sine and cosine: a raw number has no scale, and the sine alone does not tell 30° from 150°."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from chainrule.autograd.types import Array
from chainrule.nn.positions import sinusoidal

ALIKE = 1e-9  # codes that differ by less are the same


class Codes(NamedTuple):
    """Positions 0 .. n - 1, one degree apart, as they are encoded."""

    sine: Array  # (n, 1)
    pair: Array  # sine and cosine: (n, 2)


def degrees(n: int = 360) -> Codes:
    """The encoding of n positions by one pair that turns one degree per position."""
    base = (180 / math.pi) ** 2  # of d = 4: ω of its second pair is base^(-1/2) = π/180
    pair = sinusoidal(n, 4, base)[:, 2:]
    return Codes(pair[:, :1], pair)


def confused(codes: Array) -> list[tuple[int, int]]:
    """Pairs of positions with the same code (n, d).

    >>> (30, 150) in confused(degrees().sine), confused(degrees().pair)
    (True, [])
    """
    apart = np.abs(codes[:, None] - codes[None]).max(axis=-1)  # (n, n)
    return [(int(i), int(j)) for i, j in np.argwhere(apart < ALIKE) if i < j]


def relative_steps(table: Array) -> Array:
    """|p_t - p_{t-1}| / |p_{t-1}|: how much the code of a position differs from the one before it, (T, d) -> (T - 1,)

    >>> relative_steps(np.array([[1.0], [2.0], [3.0]])).tolist()  # raw numbers: the further, the less
    [1.0, 0.5]
    """
    return np.asarray(np.linalg.norm(np.diff(table, axis=0), axis=1) / np.linalg.norm(table[:-1], axis=1))
