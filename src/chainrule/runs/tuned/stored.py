"""A tuned model to decode with: base and adapter stay in their files, and a decoder reads them once, array by array."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from chainrule.autograd.types import Array
from chainrule.io.opened import attach
from chainrule.models import Model
from chainrule.models.tuning.parts import parts
from chainrule.nn import TokenRows


def attach_tuned(model: Model, values: Mapping[str, Array]) -> None:
    """The stored parameters of a tuned model are read from values; rows of tokens are put into their tables then."""
    attach(model, values)
    for layer in parts(model).values():
        if isinstance(layer, TokenRows):
            table: Any = layer.base.weight
            table.read = partial(_with_rows, table.read, layer)
            table.format = table.read_blocks = None  # in the file are the rows as they were


def _with_rows(read: Callable[[], Array], layer: TokenRows) -> Array:
    found = np.array(read())
    found[layer.tokens] = layer.token_rows.array
    return found


def longer(rows: int, array: Array) -> Array:
    """A table (n, C) with zeros for the rows that it lacks: (rows, C)"""
    return np.pad(array, ((0, rows - len(array)), (0, 0)))
