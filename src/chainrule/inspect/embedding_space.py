"""The geometry of a table of vectors: is it a cone, which vectors belong together, which directions mean something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, ShapeError
from chainrule.random import generator


def anisotropy(vectors: npt.ArrayLike) -> float:
    """The mean cosine over all pairs of different rows (n, d): 0 when they point everywhere, 1 in one direction."""
    unit = _unit(vectors, "anisotropy")
    n = len(unit)
    total = unit.sum(axis=0)  # |Σ u|² = n + Σ_{i≠j} u_i·u_j: no pair needs to be formed
    return float((total @ total - n) / (n * (n - 1)))


@dataclass(frozen=True)
class Clusters:
    """Groups of directions."""

    labels: npt.NDArray[np.int64]
    centers: Array
    """One unit vector per group."""
    tightness: float
    """Mean cosine of a row with the center of its own group."""
    separation: float
    """Mean cosine of a row with the nearest other center."""


def clusters(vectors: npt.ArrayLike, k: int, rounds: int = 50, seed: int = 0) -> Clusters:
    """k groups of rows by direction (spherical k-means, starting from rows far from each other)."""
    unit = _unit(vectors, "clusters")
    if not 2 <= k <= len(unit):
        raise ConfigError(f"clusters: k is {k}, there are {len(unit)} vectors (must be from 2 to that many)")
    centers = _far_apart(unit, k, generator("clusters", seed=seed))
    labels = np.full(len(unit), -1)
    for _ in range(rounds):
        before, labels = labels, (unit @ centers.T).argmax(axis=1)
        if (labels == before).all():
            break
        for i in set(labels.tolist()):
            total = unit[labels == i].sum(axis=0)
            centers[i] = total / max(float(np.linalg.norm(total)), 1e-300)
    cosine = unit @ centers.T  # (n, k)
    own = cosine[np.arange(len(unit)), labels]
    cosine[np.arange(len(unit)), labels] = -np.inf
    return Clusters(labels, centers, float(own.mean()), float(cosine.max(axis=1).mean()))


def _far_apart(unit: Array, k: int, rng: np.random.Generator) -> Array:
    """k rows: a random one, then each time the row that is least like all chosen so far."""
    chosen = [int(rng.integers(len(unit)))]
    nearest = unit @ unit[chosen[0]]
    while len(chosen) < k:
        chosen.append(int(nearest.argmin()))
        nearest = np.maximum(nearest, unit @ unit[chosen[-1]])
    return unit[chosen].copy()


@dataclass(frozen=True)
class Direction:
    """What the second of each pair has more of than the first."""

    vector: Array
    """Of length 1."""
    agreement: float
    """Mean cosine of the single differences with it: 1 when all pairs differ alike, about 1/√n by chance."""


def concept_direction(vectors: npt.ArrayLike, pairs: Sequence[tuple[int, int]]) -> Direction:
    """The mean difference of pairs of rows, such as (man, woman), (king, queen)."""
    V = np.asarray(vectors, dtype=np.float64)
    if len(pairs) < 1 or any(not 0 <= i < len(V) for pair in pairs for i in pair):
        raise ConfigError(f"concept_direction: pairs {list(pairs)[:3]} (must be rows from 0 to {len(V) - 1})")
    differences = _unit(np.array([V[b] - V[a] for a, b in pairs]), "concept_direction", least=1)
    mean = differences.mean(axis=0)
    length = float(np.linalg.norm(mean))
    if length == 0:
        raise ConfigError("concept_direction: the differences cancel (must have a direction in common)")
    return Direction(mean / length, length)  # the mean of d·m/|m| over unit vectors d is |m|


@dataclass(frozen=True)
class Components:
    """The directions in which rows differ most."""

    mean: Array
    directions: Array
    """(k, d), each of length 1; the sign makes its largest entry positive."""
    explained: Array
    """(k,) the fraction of the variance along each."""

    def project(self, vectors: npt.ArrayLike) -> Array:
        """Rows (n, d) -> coordinates (n, k)"""
        return np.asarray((np.asarray(vectors, np.float64) - self.mean) @ self.directions.T)


def principal_components(vectors: npt.ArrayLike, k: int = 2) -> Components:
    """The first k principal components of rows (n, d).

    >>> principal_components([[0, 0, 1], [2, 0, 1], [4, 0, 1]], 1).directions.tolist()
    [[1.0, 0.0, 0.0]]
    """
    V = np.asarray(vectors, dtype=np.float64)
    if V.ndim != 2 or not 1 <= k <= min(V.shape):
        raise ShapeError(
            f"principal_components: k is {k}, vectors {V.shape} (must be (n, d) with both at least k)"
        )
    mean = V.mean(axis=0)
    _, singular, directions = np.linalg.svd(V - mean, full_matrices=False)
    signs = np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])
    variance = singular**2
    explained = variance / max(float(variance.sum()), 1e-300)
    return Components(mean, (directions * np.where(signs == 0, 1, signs)[:, None])[:k], explained[:k])


@dataclass(frozen=True)
class EmbeddingReport:
    """The shape of a table of embeddings."""

    anisotropy: float
    centered: float
    """Anisotropy after the mean vector is subtracted."""
    clusters: Clusters


def embedding_space(vectors: npt.ArrayLike, k: int = 8, seed: int = 0) -> EmbeddingReport:
    """Anisotropy and clusters of a table (n, d)."""
    V = np.asarray(vectors, dtype=np.float64)
    groups = clusters(V, min(k, len(V)), seed=seed)
    return EmbeddingReport(anisotropy(V), anisotropy(V - V.mean(axis=0)), groups)


def _unit(vectors: npt.ArrayLike, name: str, least: int = 2) -> Array:
    V = np.asarray(vectors, dtype=np.float64)
    if V.ndim != 2 or len(V) < least:
        raise ShapeError(f"{name}: vectors {V.shape} (must be (n, d) with n at least {least})")
    length = np.linalg.norm(V, axis=1, keepdims=True)
    if not (np.isfinite(length) & (length > 0)).all():
        row = int(np.argmin(np.isfinite(length) & (length > 0)))
        raise ConfigError(f"{name}: row {row} has length {float(length[row, 0])} (must have a direction)")
    return np.asarray(V / length)
