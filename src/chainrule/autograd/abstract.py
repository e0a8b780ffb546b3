"""Abstract arrays: a shape and a dtype without numbers, so that a model of any size can be traced and counted.

They are NumPy arrays whose strides are 0: views, reshapes and transposes work and cost nothing. Each remembers how
much memory a real one would take.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule.autograd.types import Array, Saved, Shape
from chainrule.errors import ConfigError


class TooLarge(ConfigError):
    """An array that no memory could hold."""


class _Memory(bytearray):
    """One number that stands for all, and the bytes that all would take."""

    nbytes = 0


def abstract(shape: Shape, dtype: Any = np.float32) -> Array:
    """An array of this shape in the memory of a single number."""
    dtype = np.dtype(dtype)
    memory = _Memory(dtype.itemsize)
    memory.nbytes = math.prod(shape) * dtype.itemsize
    try:
        return np.ndarray(shape, dtype, buffer=memory, strides=(0,) * len(shape))
    except ValueError:
        raise TooLarge(f"an array of shape {shape} (is larger than any memory)") from None


def memory_of(x: Array) -> tuple[int, int]:
    """The identity of the memory behind an array or a view, and its bytes."""
    while isinstance(x.base, np.ndarray):
        x = x.base
    memory = x.base if isinstance(x.base, _Memory) else x
    return id(memory), memory.nbytes


# Abstract forward passes of functions of each element: outputs and `saved`, as in `forward`.


def saves_inputs(*xs: Array, **constants: Any) -> tuple[Array, Saved]:
    return _broadcast(xs), xs


def saves_shapes(*xs: Array) -> tuple[Array, Saved]:
    return _broadcast(xs), tuple(x.shape for x in xs)


def saves_output(x: Array) -> tuple[Array, Saved]:
    y = _broadcast((x,))
    return y, (y,)


def _broadcast(xs: tuple[Array, ...]) -> Array:
    return abstract(np.broadcast_shapes(*(x.shape for x in xs)), xs[0].dtype)
