"""Several texts in one row that do not see each other: what attention may look at, and the position of each token."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from chainrule.autograd.types import Array
from chainrule.errors import ShapeError


class Apart(NamedTuple):
    """Where the texts of each row are."""

    mask: Array
    """(B, 1, T, T), True where a position may attend: in its own text; what comes later is for the causal mask."""
    positions: Array
    """(B, T), from 0 in each text."""


def apart(segments: Array, before: int = 0) -> Apart:
    """segments (B, T), the number of the text of each token -> masks and positions

    A text is a stretch of one number. The rows `before`, such as those of a soft prompt, are seen by all texts.

    >>> found = apart(np.array([[1, 1, 2]]))
    >>> found.positions.tolist(), found.mask[0, 0].astype(int).tolist()
    ([[0, 1, 0]], [[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    """
    if segments.ndim != 2:
        raise ShapeError(f"segments {segments.shape} (must be (B, T))")
    B, T = segments.shape
    first = np.ones((B, T), bool)
    first[:, 1:] = segments[:, 1:] != segments[:, :-1]
    starts = np.maximum.accumulate(np.where(first, np.arange(T), 0), axis=1)
    positions = before + np.arange(T) - starts
    mask = segments[:, None, :, None] == segments[:, None, None, :]  # (B, 1, T, T)
    if before:
        positions = np.concatenate([np.broadcast_to(np.arange(before), (B, before)), positions], axis=1)
        mask = np.pad(mask, ((0, 0), (0, 0), (before, 0), (before, 0)), constant_values=True)
    mask.flags.writeable = False  # all layers share it
    return Apart(mask, positions)
