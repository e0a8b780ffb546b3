"""Arrays that are computed when they are read, so that a model comes and goes array by array.

To code that only looks at shapes and copies values, a `Lazy` is an array: `target[...] = lazy` computes it, copies it
and forgets it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Matrix: TypeAlias = npt.NDArray[Any]
Arrays: TypeAlias = dict[str, Matrix]


FLOAT32 = np.dtype(np.float32)


class Lazy:
    """An array with a known shape, of float32 unless it is made of integers; `read` computes it."""

    def __init__(
        self, shape: tuple[int, ...], read: Callable[[], Matrix], dtype: np.dtype[Any] = FLOAT32
    ) -> None:
        self.shape = shape
        self.read = read
        self.dtype = dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def T(self) -> Matrix:
        return later(np.transpose, self, shape=self.shape[::-1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Matrix:
        count = len(range(len(self))[rows])
        return later(lambda array: array[rows], self, shape=(count, *self.shape[1:]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Matrix:
        return np.asarray(self.read(), dtype)


def later(function: Callable[..., Matrix], *arrays: Any, shape: tuple[int, ...] | None = None) -> Matrix:
    """function(*arrays), computed when it is read; of the shape of the first array unless given"""
    known = arrays[0].shape if shape is None else shape
    integers = next((array.dtype for array in arrays if array.dtype.kind != "f"), FLOAT32)
    return Lazy(known, lambda: function(*map(np.asarray, arrays)), integers)  # type: ignore[return-value]
