"""Parameters whose values are not in memory but where they can be read, such as in a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.autograd.abstract import abstract
from chainrule.autograd.mode import mode
from chainrule.autograd.param import Param
from chainrule.autograd.types import Array, Shape


class StoredParam(Param):
    """A parameter that reads its values when they are used and keeps none of them.

    So a model can be packed for inference, tensor by tensor, without being in memory. All else works too, and reads the
    values each time: it is right, but slow. A trace needs shapes alone, and reads nothing. What is read cannot be
    written to; assigning `array`, as `parameters()` does, gives it values of its own.
    """

    __slots__ = ("_own", "_shown", "format", "read", "read_blocks")

    def __init__(self, shape: Shape, *, decay: bool) -> None:
        self._own: Array | None = None
        self._shown = abstract(shape)
        self.read: Callable[[], Array] | None = None
        """What gives the values; until it is set there are none, only a shape."""
        self.format: str | None = None
        """The weight format of inference that holds the values exactly as they are stored, if it is not fp32."""
        self.read_blocks: Callable[[], Array | None] | None = None
        """What gives the bytes of its blocks, a row for each row, if `format` is one of blocks."""
        super().__init__(0.0, decay=decay)
        self._own = None

    @property
    def array(self) -> Array:
        if self._own is not None:
            return self._own
        if self.read is None or mode.trace is not None:
            return self._shown
        found = np.asarray(self.read(), order="C")  # as in memory: transposed, ops give other last bits
        found.setflags(write=False)
        return found

    @array.setter
    def array(self, values: Array) -> None:
        self._own = values

    @property
    def stored_format(self) -> str | None:
        """`format`, as long as the values are those that are stored"""
        return self.format if self._own is None else None

    def blocks(self, format: str) -> Array | None:
        """The bytes of its blocks, if it is stored in blocks of this format"""
        if self.read_blocks is None or self.stored_format != format:
            return None
        return self.read_blocks()

    @property
    def shape(self) -> Shape:
        return (self._shown if self._own is None else self._own).shape

    def __len__(self) -> int:
        return len(self._shown if self._own is None else self._own)

    @property
    def dtype(self) -> np.dtype[Any]:
        return (self._shown if self._own is None else self._own).dtype
