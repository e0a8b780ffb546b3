"""Matrices as maps of space: rank, determinant, eigenvectors, singular values.

Matrices are (m, n) and act on column vectors: y = A x.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule.errors import ConfigError, ShapeError
from chainrule.foundations._check import Array, Matrix, array, matrix, square, vector


def rank(A: npt.ArrayLike) -> int:
    """The number of independent directions of the outputs A x.

    A (m, n) -> ()
    """
    return int(np.linalg.matrix_rank(matrix(A, "rank")))


def null_space(A: npt.ArrayLike) -> Array:
    """Orthonormal inputs that A maps to zero, one per row: (n - rank, n).

    A (m, n) -> (n - rank, n)
    """
    A = matrix(A, "null_space")
    _, _, Vt = np.linalg.svd(A)
    return Vt[rank(A) :]


def determinant(A: npt.ArrayLike) -> float:
    """The factor by which A scales areas or volumes; negative if it mirrors, 0 if it flattens space.

    A (n, n) -> ()
    """
    A = square(A, "determinant")
    if len(A) == 2:
        (a, b), (c, d) = A.tolist()
        return float(a * d - b * c)
    if len(A) == 3:
        (a, b, c), (d, e, f), (g, h, i) = A.tolist()
        return float(a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g))
    return _determinant_by_elimination(A.copy())


def _determinant_by_elimination(U: Array) -> float:
    """Subtracting rows keeps the determinant, swapping two negates it; a triangular one is the product of its
    diagonal."""
    sign = 1.0
    for k in range(len(U)):
        pivot = k + int(np.abs(U[k:, k]).argmax())
        if U[pivot, k] == 0:
            return 0.0
        if pivot != k:
            U[[k, pivot]] = U[[pivot, k]]
            sign = -sign
        U[k + 1 :] -= np.outer(U[k + 1 :, k] / U[k, k], U[k])
    return sign * float(np.prod(np.diag(U)))


def signed_area(polygon: npt.ArrayLike) -> float:
    """Area of a polygon (corners, 2): positive when the corners run counterclockwise.

    polygon (corners, 2) -> ()
    """
    P = matrix(polygon, "signed_area")
    if P.shape[1] != 2:
        raise ShapeError(f"signed_area: corners of size {P.shape[1]} (must be 2)")
    Q = np.roll(P, -1, axis=0)
    return float((P[:, 0] * Q[:, 1] - Q[:, 0] * P[:, 1]).sum() / 2)


class Intent(NamedTuple):
    """The effect of the shape of a weight matrix."""

    kind: Literal["compress", "expand", "mix"]
    rank: int  # dimension of the outputs
    lost: int  # dimension of the inputs mapped to zero


def intent(W: npt.ArrayLike) -> Intent:
    """W (outputs, inputs): fewer outputs compress, more expand, equal ones mix.

    W (outputs, inputs) -> a word
    """
    W = matrix(W, "intent")
    outputs, inputs = W.shape
    r = rank(W)
    return Intent("compress" if outputs < inputs else "expand" if outputs > inputs else "mix", r, inputs - r)


def lift(x: npt.ArrayLike) -> Array:
    """(n,) -> (n, 2): each x becomes the point [x, x²] on a parabola."""
    x = vector(x, "lift")
    return np.stack([x, x * x], axis=1)


def separator(points: npt.ArrayLike, labels: npt.ArrayLike, epochs: int = 1000) -> tuple[Array, float] | None:
    """A plane with w·x + b > 0 exactly where the label is true, by the perceptron rule; None if none is found.

    points (m, n), labels (m,) -> w (n,), b ()

    The rule ends after finitely many corrections if a plane exists, and never otherwise.
    """
    X, positive = matrix(points, "separator"), np.asarray(labels, dtype=bool)
    if positive.shape != (len(X),):
        raise ShapeError(f"separator: {len(X)} points, labels of shape {positive.shape} (one for each point)")
    sign = np.where(positive, 1.0, -1.0)
    w, b = np.zeros(X.shape[1]), 0.0
    for _ in range(epochs):
        wrong = [i for i in range(len(X)) if sign[i] * (X[i] @ w + b) <= 0]
        if not wrong:
            return w, b
        w, b = w + sign[wrong[0]] * X[wrong[0]], b + sign[wrong[0]]
    return None


# Eigenvectors: the directions a matrix only stretches.


def characteristic_polynomial(A: npt.ArrayLike) -> Array:
    """Coefficients of det(λI - A), highest power first, by the Faddeev-LeVerrier recursion: (n + 1,).

    A (n, n) -> (n + 1,)

    For 2×2 it is λ² - (a + d) λ + (ad - bc).
    """
    A = square(A, "characteristic_polynomial")
    n = len(A)
    c = np.ones(n + 1)
    M = np.zeros_like(A)
    for k in range(1, n + 1):
        M = A @ M + c[k - 1] * np.eye(n)
        c[k] = -np.trace(A @ M) / k
    return c


def eigenvalues(A: npt.ArrayLike) -> Matrix:
    """The roots of the characteristic polynomial, largest first; complex where A rotates. For small A.

    A (n, n) -> (n,)
    """
    roots = np.roots(characteristic_polynomial(A))
    return roots[_largest_first(roots)]


def eigen(A: npt.ArrayLike) -> tuple[Matrix, Matrix]:
    """Eigenvalues (n,), largest first, and unit eigenvectors as the columns of (n, n): A V = V diag(λ)."""
    values, vectors = np.linalg.eig(square(A, "eigen"))
    order = _largest_first(values)
    return values[order], vectors[:, order]


def _largest_first(values: Matrix) -> npt.NDArray[np.intp]:
    return np.lexsort((-values.imag, -values.real))


def power_apply(A: npt.ArrayLike, x: npt.ArrayLike, n: int) -> Array:
    """Aⁿ x without a matmul: in the eigenbasis each coordinate is multiplied by λⁿ.

    A (n, n), x (n,) -> (n,)
    """
    x = vector(x, "power_apply")
    values, V = eigen(A)
    if len(x) != len(V):
        raise ShapeError(f"power_apply: matrix {V.shape}, vector {x.shape} (sizes must agree)")
    if np.linalg.cond(V) > 1e12:
        raise ConfigError(f"power_apply: eigenvectors of rank {np.linalg.matrix_rank(V)} (must be a basis)")
    c = np.linalg.solve(V, x)  # x = Σ c_i v_i
    return np.real(V @ (values**n * c))


def rotation(theta: float) -> Array:
    """The rotation of the plane by theta radians, (2, 2); eigenvalues e^(±iθ): no real direction is kept."""
    return np.array([[np.cos(theta), -np.sin(theta)], [np.sin(theta), np.cos(theta)]])


def is_orthogonal(Q: npt.ArrayLike, tolerance: float = 1e-12) -> bool:
    """QᵀQ = I: the columns are perpendicular unit vectors, so lengths and angles are kept.

    Q (m, n) -> bool
    """
    Q = square(Q, "is_orthogonal")
    return bool(np.abs(Q.T @ Q - np.eye(len(Q))).max() <= tolerance)


# Singular values: how a matrix scales a gradient that passes it.


class Spectrum(NamedTuple):
    """Singular values, largest first: they bound the scaling of a gradient that passes the matrix."""

    values: Array
    rank: int  # number of nonzero ones, up to rounding
    condition: float  # largest over smallest, infinite if a direction is lost


def singular_spectra(weights: Mapping[str, npt.ArrayLike]) -> dict[str, Spectrum]:
    """The spectrum of every weight matrix, by name; a matrix of rank 1 carries one direction only.

    matrices (m, n) by name -> spectra (min(m, n),) by name
    """
    spectra = {}
    for name, W in weights.items():
        W = matrix(W, name)
        values = array(np.linalg.svd(W, compute_uv=False))
        floor = values[0] * max(W.shape) * np.finfo(np.float64).eps
        r = int((values > floor).sum())
        condition = float(values[0] / values[-1]) if r == len(values) else float("inf")
        spectra[name] = Spectrum(values, r, condition)
    return spectra
