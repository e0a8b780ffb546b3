"""Numbers that JSON knows."""

from __future__ import annotations

import math
from typing import Any


def plain(value: Any) -> Any:
    """The same dicts, lists and numbers, with None for what is not finite."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
