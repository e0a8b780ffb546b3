"""Types that all rooms share: arrays, token ids, and the target that does not count."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Ids: TypeAlias = npt.NDArray[np.integer[Any]]
IGNORE = -1  # a target that does not count, such as padding


def as_ids(ids: Any) -> Any:
    """Lists become an array; what has a shape stays as it is, so that a trace sees it reach its embedding."""
    return ids if hasattr(ids, "shape") else np.asarray(ids)
