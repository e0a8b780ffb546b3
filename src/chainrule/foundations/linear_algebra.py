"""Vector spaces, lengths and angles, and two loop orders of matmul.

Vectors are (n,), matrices (m, n); a list of vectors is a matrix with one vector per row.
"""

from __future__ import annotations

import math
import timeit
from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule.errors import ConfigError, ShapeError
from chainrule.foundations._check import Array, array, matrix, square, vector, vector_pair
from chainrule.foundations.matrices import rank
from chainrule.random import generator

Order = Literal["rows", "columns"]
Map = Callable[[Array], npt.ArrayLike]


# Vector spaces and linearity.


def vector_space_errors(
    u: npt.ArrayLike,
    v: npt.ArrayLike,
    w: npt.ArrayLike,
    a: float,
    b: float,
    add: Callable[[Array, Array], Array] = np.add,
    scale: Callable[[float, Array], Array] = np.multiply,
) -> dict[str, float]:
    """The error of `add` and `scale` in each of the nine properties of a vector space, for these vectors.

    u (n,), v (n,), w (n,) -> nine numbers
    """
    u, v, w = array(u), array(v), array(w)
    zero = np.zeros_like(v)

    def inside(x: Array) -> float:
        return 0.0 if x.shape == v.shape and np.isfinite(x).all() else math.inf

    def gap(x: Array, y: Array) -> float:
        return float(np.abs(x - y).max(initial=0.0)) if x.shape == y.shape else math.inf

    return {
        "closed under addition": inside(add(u, v)),
        "closed under scaling": inside(scale(a, v)),
        "associative": gap(add(add(u, v), w), add(u, add(v, w))),
        "commutative": gap(add(u, v), add(v, u)),
        "zero": gap(add(v, zero), v),
        "inverse": gap(add(v, scale(-1.0, v)), zero),
        "distributive": max(
            gap(scale(a, add(u, v)), add(scale(a, u), scale(a, v))),
            gap(scale(a + b, v), add(scale(a, v), scale(b, v))),
        ),
        "scaling associative": gap(scale(a, scale(b, v)), scale(a * b, v)),
        "one": gap(scale(1.0, v), v),
    }


def scaling_probe(f: Map, x: npt.ArrayLike, a: float) -> tuple[Array, Array]:
    """f(a x) and a f(x): equal when f is linear. With a = 0 the first must be 0.

    f: (n,) -> (m,), x (n,) -> two of (m,)
    """
    x = array(x)
    return array(f(a * x)), a * array(f(x))


def is_linear(f: Map, n: int, trials: int = 20, seed: int = 0) -> bool:
    """Whether f(a u + b v) = a f(u) + b f(v) for random vectors u, v of size n and numbers a, b."""
    rng = generator("is linear", seed=seed)
    for _ in range(trials):
        u, v = rng.normal(size=(2, n))
        a, b = rng.normal(size=2)
        if not np.allclose(f(a * u + b * v), a * array(f(u)) + b * array(f(v)), rtol=1e-9, atol=1e-9):
            return False
    return True


def linear_combination(coefficients: npt.ArrayLike, vectors: npt.ArrayLike) -> Array:
    """c1 v1 + ... + ck vk; coefficients (k,), vectors (k, n)."""
    c, V = vector(coefficients, "linear_combination"), matrix(vectors, "linear_combination")
    if len(c) != len(V):
        raise ShapeError(f"linear_combination: {len(c)} coefficients, {len(V)} vectors (must be equal)")
    return c @ V


def is_independent_set(vectors: npt.ArrayLike) -> bool:
    """True if no vector is a combination of the others: only zero coefficients give the zero vector.

    vectors (k, n) -> bool
    """
    V = matrix(vectors, "is_independent_set")
    return rank(V) == len(V)


def is_basis(vectors: npt.ArrayLike) -> bool:
    """True if the vectors are independent, and as many as the space has dimensions.

    vectors (k, n) -> bool
    """
    V = matrix(vectors, "is_basis")
    return V.shape[0] == V.shape[1] and is_independent_set(V)


def standard_basis(n: int) -> Array:
    """e1 ... en as rows, (n, n)."""
    return np.eye(n)


def coordinates(v: npt.ArrayLike, basis: npt.ArrayLike) -> Array:
    """The c with c1 b1 + ... + cn bn = v; `linear_combination(c, basis)` inverts it.

    v (n,), basis (n, n) -> c (n,)
    """
    B, v = square(basis, "coordinates"), vector(v, "coordinates")
    if not is_basis(B) or len(v) != len(B):
        sizes = f"{len(B)} basis vectors of rank {rank(B)}, vector of size {len(v)}"
        raise ConfigError(f"coordinates: {sizes} (all three must be equal)")
    return array(np.linalg.solve(B.T, v))


# Lengths and angles.


def dot(u: npt.ArrayLike, v: npt.ArrayLike) -> float:
    """u1 v1 + ... + un vn.

    u (n,), v (n,) -> ()
    """
    u, v = vector_pair(u, v, "dot")
    return float(u @ v)


def angle(u: npt.ArrayLike, v: npt.ArrayLike) -> float:
    """The angle in radians from three lengths alone: |u - v|² = |u|² + |v|² - 2 |u| |v| cos θ.

    u (n,), v (n,) -> ()
    """
    u, v = vector_pair(u, v, "angle")
    uu, vv, difference = dot(u, u), dot(v, v), dot(u - v, u - v)  # squared lengths
    if uu == 0 or vv == 0:
        raise ConfigError("angle: the zero vector has no direction (must not be 0)")
    cosine = (uu + vv - difference) / (2 * math.sqrt(uu * vv))
    return math.acos(min(1.0, max(-1.0, cosine)))


def norm(v: npt.ArrayLike, p: float = 2) -> float:
    """(Σ |v_i|^p)^(1/p); p = inf gives the largest entry, the limit of the others.

    v (n,) -> ()
    """
    v = np.abs(vector(v, "norm"))
    if not p >= 1:
        raise ConfigError(f"norm: p = {p} (must be at least 1, or the triangle inequality fails)")
    largest = float(v.max(initial=0.0))
    if largest == 0 or math.isinf(p):
        return largest
    return largest * float(((v / largest) ** p).sum() ** (1 / p))  # scaled first, so that no power overflows


def distance(u: npt.ArrayLike, v: npt.ArrayLike, p: float = 2) -> float:
    """|u - v|: Euclidean for p = 2, Manhattan for p = 1.

    u (n,), v (n,) -> ()
    """
    u, v = vector_pair(u, v, "distance")
    return norm(u - v, p)


def unit(v: npt.ArrayLike) -> Array:
    """v / |v|, the same direction with length one.

    v (n,) -> (n,)
    """
    length = norm(v)
    if length == 0:
        raise ConfigError("unit: the zero vector has no direction (must not be 0)")
    return array(v) / length


def frobenius(A: npt.ArrayLike) -> float:
    """The length of a matrix read as one long vector.

    A (m, n) -> ()
    """
    return norm(matrix(A, "frobenius").reshape(-1))


# Products.


def matvec(A: npt.ArrayLike, x: npt.ArrayLike, order: Order = "rows") -> Array:
    """A x in one of two orders: a dot product per row, or a sum of scaled columns.

    A (m, n), x (n,) -> (m,)

    Both give the same numbers. Rows are contiguous in a row-major matrix, columns in a column-major one; the order that
    reads contiguous memory is faster (`time_matvec`).
    """
    A, x = _fitting(A, x, "matvec")
    if order == "rows":
        y = np.empty(len(A))
        for i in range(len(A)):
            y[i] = A[i] @ x
        return y
    if order == "columns":
        y = np.zeros(len(A))
        for j in range(len(x)):
            y += x[j] * A[:, j]
        return y
    raise ConfigError(f"matvec: order {order!r} (must be 'rows' or 'columns')")


def matvec_terms(A: npt.ArrayLike, x: npt.ArrayLike) -> Array:
    """The scaled columns x_j a_j whose sum is A x, one per row: (n, m)."""
    A, x = _fitting(A, x, "matvec_terms")
    return x[:, None] * A.T


def matmul(A: npt.ArrayLike, B: npt.ArrayLike, order: Order = "rows") -> Array:
    """A B, column by column: (m, n) (n, p) -> (m, p), each column by `matvec` in the given order."""
    A, B = matrix(A, "matmul"), matrix(B, "matmul")
    if A.shape[1] != B.shape[0]:
        raise ShapeError(f"matmul: {A.shape} times {B.shape} (inner sizes must be equal)")
    return np.stack([matvec(A, B[:, j], order) for j in range(B.shape[1])], axis=1)


class Timing(NamedTuple):
    """Seconds for one matrix-vector product."""

    order: str  # rows or columns
    layout: str  # row-major or column-major
    seconds: float


def time_matvec(n: int = 1000, repeats: int = 3) -> list[Timing]:
    """Both orders on both memory layouts of one n×n matrix; the best of `repeats` runs each."""
    rng = generator("time matvec", seed=0)
    A, x = rng.normal(size=(n, n)), rng.normal(size=n)
    orders: tuple[Order, Order] = ("rows", "columns")
    timings = []
    for layout, stored in (("row-major", np.ascontiguousarray(A)), ("column-major", np.asfortranarray(A))):
        for order in orders:
            seconds = timeit.repeat(partial(matvec, stored, x, order), number=1, repeat=repeats)
            timings.append(Timing(order, layout, min(seconds)))
    return timings


def is_symmetric(A: npt.ArrayLike, tolerance: float = 1e-12) -> bool:
    """Aᵀ = A, up to `tolerance` times the largest entry.

    A (n, n) -> bool
    """
    A = square(A, "is_symmetric")
    return bool(np.abs(A - A.T).max(initial=0.0) <= tolerance * np.abs(A).max(initial=0.0))


def _fitting(A: npt.ArrayLike, x: npt.ArrayLike, name: str) -> tuple[Array, Array]:
    A, x = matrix(A, name), vector(x, name)
    if A.shape[1] != len(x):
        raise ShapeError(f"{name}: matrix {A.shape} times vector {x.shape} (columns must equal entries)")
    return A, x
