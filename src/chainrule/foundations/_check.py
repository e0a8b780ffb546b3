"""Checks of arguments, shared by the functions of this package."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from chainrule.errors import ShapeError

Array: TypeAlias = npt.NDArray[np.float64]
Matrix: TypeAlias = npt.NDArray[Any]  # real or complex


def array(x: npt.ArrayLike) -> Array:
    """x as a float64 array of any shape."""
    return np.asarray(x, dtype=np.float64)


def vector(x: npt.ArrayLike, name: str) -> Array:
    """x as a float64 vector (n,)."""
    v = array(x)
    if v.ndim != 1:
        raise ShapeError(f"{name}: got shape {v.shape} (must be a vector, one axis)")
    return v


def matrix(x: npt.ArrayLike, name: str) -> Array:
    """x as a float64 matrix (m, n)."""
    A = array(x)
    if A.ndim != 2:
        raise ShapeError(f"{name}: got shape {A.shape} (must be a matrix, two axes)")
    return A


def square(x: npt.ArrayLike, name: str) -> Array:
    """x as a float64 matrix (n, n)."""
    A = matrix(x, name)
    if A.shape[0] != A.shape[1]:
        raise ShapeError(f"{name}: got shape {A.shape} (must be square)")
    return A


def alike(x: npt.ArrayLike, y: npt.ArrayLike, name: str) -> tuple[Array, Array]:
    """x and y as float64 arrays of one shape."""
    a, b = array(x), array(y)
    if a.shape != b.shape:
        raise ShapeError(f"{name}: shapes {a.shape} and {b.shape} (must be equal)")
    return a, b


def vector_pair(u: npt.ArrayLike, v: npt.ArrayLike, name: str) -> tuple[Array, Array]:
    """u and v as float64 vectors of one size (n,)."""
    return alike(vector(u, name), vector(v, name), name)
