"""The few types that ops and the tape exchange."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Saved: TypeAlias = tuple[Any, ...]  # what forward keeps for backward: arrays, None or small constants
Needs: TypeAlias = tuple[bool, ...]  # per positional argument: is its gradient wanted?
Grads: TypeAlias = tuple[Array | None, ...]  # per positional argument: its gradient, None where not wanted
Shape: TypeAlias = tuple[int, ...]

FLOATS = (np.float32, np.float64)


def is_float(array: Array) -> bool:
    """True for the dtypes that can carry a gradient."""
    return array.dtype.kind == "f"
