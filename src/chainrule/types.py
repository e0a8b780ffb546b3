"""Types that all rooms share: arrays, token ids, formats of weights, and the target that does not count."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Ids: TypeAlias = npt.NDArray[np.integer[Any]]
# In the order of their enums in native/decode/panels.hpp and decode.hpp: a format's number is its place.
WeightFormat: TypeAlias = Literal["fp32", "bf16", "fp16", "int8", "int4", "q8_0", "q4_0", "q4_1"]
CacheFormat: TypeAlias = Literal["fp32", "bf16", "int8"]
IGNORE = -1  # a target that does not count, such as padding


def as_ids(ids: Any) -> Any:
    """Lists become an array; what has a shape stays as it is, so that a trace sees it reach its embedding."""
    return ids if hasattr(ids, "shape") else np.asarray(ids)
