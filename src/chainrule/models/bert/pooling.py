"""One vector for a text from the rows of its tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.recording import constant, stays
from chainrule.autograd.types import Array, is_float
from chainrule.errors import ShapeError

POOLINGS = ("mean", "cls", "max")


def pool(hidden: Tensor, mask: Array | None, pooling: str) -> Tensor:
    """hidden (B, T, C), mask (B, T) True where a token is -> (B, C): the mean, the first row or the maximum

    >>> import chainrule as cr, numpy as np
    >>> from chainrule.models.bert.pooling import pool
    >>> hidden = cr.Tensor([[[1.0], [5.0], [9.0]]])
    >>> [pool(hidden, np.array([[True, True, False]]), each).item() for each in ("mean", "cls", "max")]
    [3.0, 1.0, 5.0]
    """
    if pooling == "cls":
        check_tokens(mask)
        return hidden[:, 0]
    counted = constant(np.ones(hidden.shape[:2], bool)) if mask is None else mask
    return ops.pool(hidden, mask=counted, kind=pooling)


def check_tokens(mask: Array | None) -> None:
    """Each text has a token."""
    if mask is None or stays(mask):  # in a replay a kernel or `prepared` looks
        return
    counted = np.asarray(mask, bool)
    if not counted.any(axis=1).all():
        row = int(counted.any(axis=1).argmin())
        raise ShapeError(f"pooling: row {row} has no token (must have at least one)")


def unit(vectors: Any) -> Any:
    """vectors (..., C) -> the same directions, of length 1: their dot products are cosines"""
    C, dtype = vectors.shape[-1], vectors.dtype if is_float(vectors) else np.float32
    gain = constant(np.full(C, C**-0.5, dtype))  # the root mean square of a unit vector
    return ops.rmsnorm(vectors, gain, eps=1e-12 / C)
