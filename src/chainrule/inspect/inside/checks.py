"""What a user may get wrong here: networks, numbers of blocks, heads, positions and tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, DataError, kind_of
from chainrule.nn import Layer


def check_network(model: Any) -> None:
    """Refuse what has no layers, such as a table of counts."""
    if not isinstance(model, Layer):
        raise ConfigError(f"inspect: got {kind_of(model)} (must be a network: a model with layers)")


def as_rows(x: Any) -> Array:
    """Ids (T,) or (B, T) -> (B, T), in memory of their own"""
    try:
        ids = np.array(x)
    except ValueError:
        raise DataError(
            "inspect: texts of several lengths (must be one text, or equally long ones)"
        ) from None
    if ids.dtype.kind not in "iub" or ids.ndim not in (1, 2) or not ids.size:
        rule = "must be whole numbers, (T,) or (B, T): a text is encoded by its tokenizer"
        raise DataError(f"inspect: ids {ids.shape} of dtype {ids.dtype} ({rule})")
    return ids[None] if ids.ndim == 1 else ids


def numbers(what: str, given: Any, n: int, *, of: str = "", backwards: bool = True) -> Array:
    """One or several numbers of n things, counted from 0; with `backwards` -1 is the last."""
    of = f" of {of}" if of else ""
    found = np.atleast_1d(np.asarray(given))
    if found.dtype.kind not in "iu" or found.ndim != 1 or not found.size:
        raise ConfigError(f"inspect: {what} {given!r}{of} (must be whole numbers, one or several)")
    wrong = found[(found < (-n if backwards else 0)) | (found >= n)]
    if wrong.size:
        raise ConfigError(f"inspect: {what} {wrong[0]}{of} (there are {n}, counted from 0)")
    return found % n


def number(what: str, given: Any, n: int, *, of: str = "", backwards: bool = True) -> int:
    """One number of n things, counted from 0."""
    return int(numbers(what, given, n, of=of, backwards=backwards)[0])


def floats(what: str, given: Any, dtype: Any) -> Array:
    """An array of floats."""
    try:
        return np.asarray(given, dtype)
    except (TypeError, ValueError):
        raise ConfigError(f"inspect: {what} is {kind_of(given)} (must be an array of numbers)") from None
