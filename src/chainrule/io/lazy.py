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
    def weight_format(self) -> str | None:
        """The weight format of inference that holds a matrix exactly as it is stored, if it is not fp32"""
        return None

    def blocks(self) -> Matrix | None:
        """Its blocks, each with a `scale`, a row for each row, if `weight_format` is one of blocks"""
        return None

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


class Moved(Lazy):
    """The rows of an array in another order, which `move` gives them: the same numbers, so the same format."""

    def __init__(self, move: Callable[[Matrix], Matrix], array: Lazy) -> None:
        super().__init__(array.shape, lambda: move(np.asarray(array)), array.dtype)
        self.move, self.array = move, array

    @property
    def weight_format(self) -> str | None:
        return self.array.weight_format

    def blocks(self) -> Matrix | None:
        found = self.array.blocks()
        return None if found is None else self.move(found)


def moved(move: Callable[[Matrix], Matrix], array: Any) -> Matrix:
    """move(array), which only changes the order of rows, computed when it is read"""
    return Moved(move, array) if isinstance(array, Lazy) else later(move, array)  # type: ignore[return-value]


def later(function: Callable[..., Matrix], *arrays: Any, shape: tuple[int, ...] | None = None) -> Matrix:
    """function(*arrays), computed when it is read; of the shape of the first array unless given"""
    known = arrays[0].shape if shape is None else shape
    integers = next((array.dtype for array in arrays if array.dtype.kind != "f"), FLOAT32)
    return Lazy(known, lambda: function(*map(np.asarray, arrays)), integers)  # type: ignore[return-value]
