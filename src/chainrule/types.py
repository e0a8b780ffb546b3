"""Types shared by data, models and tasks: token ids, and the target that does not count."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ids: TypeAlias = npt.NDArray[np.integer[Any]]
IGNORE = -1  # a target that does not count, such as padding
