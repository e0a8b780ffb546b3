"""Attention seen from outside: what scaling does to scores, and which patterns the maps show."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule import ops
from chainrule.autograd import capture, no_grad
from chainrule.autograd.types import Array
from chainrule.doctor import limits
from chainrule.errors import ConfigError, ShapeError
from chainrule.inspect.probe import untouched
from chainrule.nn import Layer
from chainrule.random import generator

Ids = npt.NDArray[np.integer[Any]]


# -- scores ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScoreVariance:
    """Dot products of random queries and keys of size d, plain and divided by √d."""

    d: int
    plain: float
    """Variance of q·k: d."""
    scaled: float
    """Variance of q·k / √d: 1."""
    plain_peak: float
    """Mean of the largest attention weight over `keys` keys, without scaling."""
    scaled_peak: float
    plain_slope: float
    """Mean L1 norm of the softmax Jacobian: how much of a gradient gets through to the scores."""
    scaled_slope: float


def score_variance(d: int, draws: int = 10_000, keys: int = 8, seed: int = 0) -> ScoreVariance:
    """Why scores are divided by √d: without it softmax takes all from one key, and stays there."""
    if min(d, draws, keys) < 1:
        raise ConfigError(f"score_variance: d {d}, draws {draws}, keys {keys} (must be at least 1)")
    scores = random_scores(d, draws, keys, seed)  # (draws, keys)
    scaled = scores / np.sqrt(d)
    weights = [ops.softmax(s) for s in (scores, scaled)]
    peaks = [float(p.max(axis=-1).mean()) for p in weights]
    slopes = [float(2 * (1 - (p * p).sum(axis=-1)).mean()) for p in weights]  # Σ_ij |p_i (δ_ij - p_j)|
    return ScoreVariance(d, float(scores.var()), float(scaled.var()), *peaks, *slopes)


def random_scores(d: int, draws: int, keys: int, seed: int = 0) -> Array:
    """q·k of standard normal vectors: (draws, keys), each row of one query"""
    rng = generator("score variance", d, seed=seed)
    q, k = rng.normal(size=(draws, d)), rng.normal(size=(draws, keys, d))
    return np.einsum("nd,nkd->nk", q, k)


# -- patterns ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pattern:
    """What a map of attention weights (queries × keys) looks like. Scores: 0 for uniform attention, 1 pure."""

    kind: str
    """block, diagonal, stripe, sparse or spread"""
    diagonal: float
    """Weight on the token itself and its neighbours."""
    stripe: float
    """Weight on the column that gets most of it, `column`."""
    column: int
    block: float
    """Weight inside groups of neighbours that look at the same range of keys."""
    groups: tuple[int, ...]
    """First rows of these groups."""
    sparsity: float
    """How few keys a query really uses."""
    asymmetry: float
    """`|A - Aᵀ| / |A + Aᵀ|`: 0 when attention is mutual, 1 when never."""
    row_sum_error: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"groups": list(self.groups)}


def pattern(A: npt.ArrayLike) -> Pattern:
    """Name the pattern of one map A (T, T) whose rows sum to 1.

    >>> import numpy as np
    >>> from chainrule.inspect.attention import pattern
    >>> pattern(np.eye(6)).kind
    'diagonal'
    """
    A = np.asarray(A, dtype=np.float64)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or len(A) < 2:
        raise ShapeError(f"pattern: map {A.shape} (must be square, at least 2 × 2)")
    uniform = _uniform(A)
    near = np.abs(np.subtract.outer(np.arange(len(A)), np.arange(len(A)))) <= limits.NEXT_TO
    gains = [lift(A[:, j].mean(), uniform[:, j].mean()) for j in range(len(A))]
    column = int(np.argmax(gains))
    groups, inside = _groups(A)
    scores = {
        "block": lift((A * inside).sum(1).mean(), (uniform * inside).sum(1).mean()),
        "diagonal": lift((A * near).sum(1).mean(), (uniform * near).sum(1).mean()),
        "stripe": gains[column],
        "sparse": _sparsity(A, uniform),
    }
    kind = next((name for name, score in scores.items() if score > limits.PATTERN), "spread")
    return Pattern(
        kind,
        diagonal=scores["diagonal"],
        stripe=scores["stripe"],
        column=column,
        block=scores["block"],
        groups=groups,
        sparsity=scores["sparse"],
        asymmetry=float(np.linalg.norm(A - A.T) / np.linalg.norm(A + A.T)),
        row_sum_error=float(np.abs(A.sum(1) - 1).max()),
    )


def lift(share: float, chance: float) -> float:
    """A share as a place between chance (0) and all (1)."""
    return float((share - chance) / (1 - chance)) if chance < 1 else 0.0


def _uniform(A: Array) -> Array:
    """Equal attention to all keys a query may see: all, or those before it if the map is causal."""
    allowed = np.tri(len(A)) if not np.triu(A, 1).any() else np.ones_like(A)
    return np.asarray(allowed / allowed.sum(1, keepdims=True))


def _sparsity(A: Array, uniform: Array) -> float:
    """1 if every query uses one key, 0 if all it may: by the effective number of keys e^H."""
    logs = np.log(A, out=np.zeros_like(A), where=A > 0)
    used = np.exp(-(A * logs).sum(1))
    allowed = (uniform > 0).sum(1)
    more = allowed > 1  # the first query of a causal map has no choice
    return float((1 - (used[more] - 1) / (allowed[more] - 1)).mean())


def _groups(A: Array) -> tuple[tuple[int, ...], npt.NDArray[np.bool_]]:
    """Runs of rows that look at the same range of keys: where they begin, and a mask of group × range.

    One single group is no block pattern, nor are groups of one row: then the mask is empty.
    """
    T = len(A)
    length = np.linalg.norm(A, axis=1)
    cosine = (A[1:] * A[:-1]).sum(1) / np.maximum(length[1:] * length[:-1], 1e-300)
    starts = np.concatenate([[0], np.flatnonzero(cosine < limits.SAME_ROW) + 1])
    ends = np.append(starts[1:], T)
    inside = np.zeros((T, T), dtype=bool)
    if len(starts) == 1 or np.median(ends - starts) < 2:
        return (), inside
    for start, end in zip(starts, ends, strict=True):
        keys = np.flatnonzero(A[start:end].mean(0) > 1 / T)  # more than uniform attention would give
        if keys.size > 1 and keys[-1] - keys[0] + 1 == keys.size:  # a range; one key would be a stripe
            inside[start:end, keys] = True
    return tuple(starts.tolist()), inside


# -- of a model --------------------------------------------------------------------------------------------------


def maps(model: Layer, ids: Ids) -> dict[str, Array]:
    """Attention weights of every layer of any model, by name: (B, H, T, T)"""
    names = [pattern for op in ("attention", "packed_attention") for pattern in (op, f"*.{op}")]
    with untouched(model), no_grad(), capture(*names) as seen:
        model.eval()
        model(ids)
    found = {}
    for name, entry in seen.items():
        q, k, _, _, _, causal, mask, scale, *_ = entry.saved
        found[name] = ops.attention_weights(q, k, causal=causal, mask=mask, scale=scale)
    return found


def patterns(model: Layer, ids: Ids) -> dict[str, list[Pattern]]:
    """The pattern of every head by layer, of the mean over the batch: what depends on places alone stays."""
    return {name: [pattern(head) for head in A.mean(0)] for name, A in maps(model, ids).items()}
