"""Clipping gradients before a step.        Derivation: docs/derivations/optimizers.md"""

from __future__ import annotations

import math

import numpy as np

from chainrule.calls import answering
from chainrule.errors import ConfigError
from chainrule.optim.optimizer import CHUNK
from chainrule.optim.tensors import Block, Learned, as_block


@answering
def global_norm(params: Learned) -> float:
    """The Euclidean norm of all trainable gradients together."""
    return math.sqrt(squared_norm(as_block("global_norm", params, ())))  # [OP.19]


def squared_norm(block: Block) -> float:
    """The sum of the squares of all trainable gradients.

    Summed in float64 over chunks of fixed size: no overflow, and the same bits for any number of threads.
    """
    if kernels := block.kernels():
        return float(sum(kernels.sum_of_squares(grads) for _, grads, *_ in block.pieces()))
    squares = np.empty(CHUNK, np.float64)
    total = 0.0
    for _, grads, *_ in block.pieces():
        for start in range(0, grads.size, CHUNK):
            piece = grads[start : start + CHUNK]
            total += float(np.square(piece, out=squares[: piece.size], dtype=np.float64).sum())
    return total


@answering
def clip_global_norm(params: Learned, limit: float) -> float:
    """Scale all gradients so that their global norm is at most `limit`; returns the norm before clipping.

    The direction is kept. If the norm is infinite or NaN, nothing is scaled; the caller must skip the step.
    """
    _check("clip_global_norm", limit)
    block = as_block("clip_global_norm", params, ())
    norm = global_norm(block)
    multiply(block, clip_factor(norm, limit))
    return norm


@answering
def clip_factor(norm: float, limit: float) -> float:
    """The factor that brings gradients of norm `norm` down to at most `limit`; pass it as `scale` to a step."""
    _check("clip_factor", limit)
    return limit / norm if math.isfinite(norm) and norm > limit else 1.0  # [OP.20]


def multiply(block: Block, factor: float) -> None:
    """Multiply all trainable gradients."""
    if factor == 1:
        return
    kernels = block.kernels()
    for _, grads, *_ in block.pieces():
        if kernels:
            kernels.scale(grads, factor)
        else:
            grads *= factor


@answering
def clip_value(params: Learned, limit: float) -> None:
    """Clip every entry of the gradient to [-limit, limit]; unlike clipping by norm, this changes the direction."""
    _check("clip_value", limit)
    for _, grads, *_ in as_block("clip_value", params, ()).pieces():
        np.clip(grads, -limit, limit, out=grads)


def _check(who: str, limit: float) -> None:
    if not limit > 0:
        raise ConfigError(f"{who}: limit is {limit!r} (must be positive)")
