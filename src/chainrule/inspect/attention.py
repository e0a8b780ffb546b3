"""Attention maps of a model, and the patterns they show."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule import ops
from chainrule.autograd import capture, no_grad
from chainrule.autograd.capture import Captured
from chainrule.autograd.types import Array
from chainrule.errors import ShapeError
from chainrule.inspect.inside.sites import arguments
from chainrule.inspect.probe import calls, op_of, untouched
from chainrule.nn import Layer
from chainrule.ops.neural.relative_attention import pair_bias
from chainrule.trace.cost import ATTENTION
from chainrule.types import Ids

PATTERN = 0.5
"""A map is named after a pattern that holds more than half of the weight that uniform attention leaves open."""

NEIGHBORS = 1
"""Distance from the diagonal that still counts as diagonal: a token and its neighbors."""

SAME_ROW = 0.5
"""Cosine between the rows of neighbors that look at the same group. Rows of a wide diagonal reach 0.67, but continue
without a break; rows of two blocks have nothing in common."""

# -- patterns ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pattern:
    """What a map of attention weights (queries × keys) looks like. Scores: 0 for uniform attention, 1 pure."""

    kind: str
    """block, diagonal, stripe, sparse or spread"""
    diagonal: float
    """Weight on the token itself and its neighbors."""
    stripe: float
    """Weight on the column that gets most of it, `column`."""
    column: int
    block: float
    """Weight inside groups of neighbors that look at the same range of keys."""
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
    near = np.abs(np.subtract.outer(np.arange(len(A)), np.arange(len(A)))) <= NEIGHBORS
    gains = [lift(A[:, j].mean(), uniform[:, j].mean()) for j in range(len(A))]
    column = int(np.argmax(gains))
    groups, inside = _groups(A)
    scores = {
        "block": lift((A * inside).sum(1).mean(), (uniform * inside).sum(1).mean()),
        "diagonal": lift((A * near).sum(1).mean(), (uniform * near).sum(1).mean()),
        "stripe": gains[column],
        "sparse": _sparsity(A, uniform),
    }
    kind = next((name for name, score in scores.items() if score > PATTERN), "spread")
    return Pattern(
        kind, diagonal=scores["diagonal"], stripe=scores["stripe"], column=column, block=scores["block"],
        groups=groups, sparsity=scores["sparse"],
        asymmetry=float(np.linalg.norm(A - A.T) / np.linalg.norm(A + A.T)),
        row_sum_error=float(np.abs(A.sum(1) - 1).max()),
    )  # fmt: skip


def lift(fraction: float, chance: float) -> float:
    """A fraction on the scale from chance (0) to all (1)."""
    return float((fraction - chance) / (1 - chance)) if chance < 1 else 0.0


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
    starts = np.concatenate([[0], np.flatnonzero(cosine < SAME_ROW) + 1])
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


def maps(model: Layer, ids: Any) -> dict[str, Array]:
    """Attention weights of every layer of any model, by name: (B, H, T, S); ids as in `view`, (B, T) too"""
    with untouched(model), no_grad(), capture(*calls(*ATTENTION)) as seen:
        model.eval()
        model(*arguments(model, ids))
    return {name: weights_of(entry) for name, entry in seen.items()}


def weights_of(entry: Captured) -> Array:
    """The map (B, H, T, S) of a captured call of attention, from what it saved."""
    q, k, _, _, _, causal, mask, scale, *_, last = entry.saved
    if op_of(entry.name) == "relative_attention":
        mask = pair_bias(last, mask, q.shape[-2], k.shape[-2])
    return ops.attention_weights(q, k, causal=causal, mask=mask, scale=scale)


def patterns(model: Layer, ids: Ids) -> dict[str, list[Pattern]]:
    """The pattern of every head by layer, of the mean over the batch: what depends on places alone stays."""
    return {name: [pattern(head) for head in A.mean(0)] for name, A in maps(model, ids).items()}
