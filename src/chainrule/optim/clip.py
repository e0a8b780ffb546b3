"""Clipping gradients before a step.        Derivation: docs/derivations/optimizers.md"""

from __future__ import annotations

import math

import numpy as np

from chainrule.errors import ConfigError
from chainrule.optim.optimizer import CHUNK, Block


def global_norm(params: Block) -> float:
    """The Euclidean norm of all trainable gradients together.

    Summed in float64 over chunks of fixed size: no overflow, and the same bits for any number of threads.
    """
    if kernels := params.kernels():
        return math.sqrt(sum(kernels.sum_of_squares(params.grad[span]) for span, _ in params.ranges()))
    squares = np.empty(CHUNK, np.float64)
    total = 0.0
    for span, _ in params.ranges():
        for start in range(span.start, span.stop, CHUNK):
            piece = params.grad[start : min(start + CHUNK, span.stop)]
            total += float(np.square(piece, out=squares[: piece.size], dtype=np.float64).sum())
    return math.sqrt(total)  # [OP.19]


def clip_global_norm(params: Block, limit: float) -> float:
    """Scale all gradients so that their global norm is at most `limit`; returns the norm before clipping.

    The direction is kept. If the norm is infinite or NaN, nothing is scaled; the caller must skip the step.
    """
    _check("clip_global_norm", limit)
    norm = global_norm(params)
    if math.isfinite(norm) and norm > limit:
        kernels = params.kernels()
        for span, _ in params.ranges():
            if kernels:
                kernels.scale(params.grad[span], limit / norm)
            else:
                params.grad[span] *= limit / norm  # [OP.20]
    return norm


def clip_value(params: Block, limit: float) -> None:
    """Clip every entry of the gradient to [-limit, limit]; unlike clipping by norm, this changes the direction."""
    _check("clip_value", limit)
    for span, _ in params.ranges():
        piece = params.grad[span]
        np.clip(piece, -limit, limit, out=piece)


def _check(who: str, limit: float) -> None:
    if not limit > 0:
        raise ConfigError(f"{who}: limit is {limit!r} (must be positive)")
