"""The loss of an untrained model, the shape of a loss curve, and the entropy of what a model predicts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.autograd import capture
from chainrule.autograd.capture import Capture
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, DataError
from chainrule.inspect.probe import calls, evaluating, op_of

OUTPUTS = ("cross_entropy", "linear_cross_entropy")  # ops that turn logits into a loss
CHUNK = 1 << 22  # logits at a time


def expected_loss(vocab_size: int) -> float:
    """-ln(1/V) = ln V: the loss of a uniform guess.

    >>> from chainrule.inspect.losses import expected_loss
    >>> round(expected_loss(27), 4)
    3.2958
    """
    if vocab_size < 1:
        raise ConfigError(f"expected_loss: vocab_size is {vocab_size} (must be at least 1)")
    return math.log(vocab_size)


# -- curves ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """A loss curve in a few numbers; `lowest` and `last` are smoothed over a twentieth of the curve."""

    n_classes: int
    first: float
    lowest: float
    last: float
    steps_to_uniform: int
    """Steps until the smoothed loss is down at ln n_classes: they only undo the initialization."""
    broken: tuple[int, float] | None = None
    """The first step whose loss is not finite, counted from 1, and that loss."""

    @property
    def expected(self) -> float:
        return expected_loss(self.n_classes)


def curve(losses: npt.ArrayLike, n_classes: int) -> Curve:
    """The shape of the losses of single steps, from the first one on."""
    y = np.asarray(losses, dtype=np.float64)
    if y.ndim != 1 or y.size == 0:
        raise DataError(f"curve: losses of shape {y.shape} (must be one row with at least one step)")
    if not np.isfinite(y).all():
        step = int(np.argmin(np.isfinite(y)))
        return Curve(n_classes, float(y[0]), math.nan, math.nan, step, broken=(step + 1, float(y[step])))
    smooth = moving_mean(y, max(1, y.size // 20))
    down = np.flatnonzero(smooth <= expected_loss(n_classes))
    steps = int(down[0]) if down.size else y.size
    return Curve(n_classes, float(y[0]), float(smooth.min()), float(smooth[-1]), steps)


def moving_mean(y: npt.NDArray[np.float64], width: int) -> npt.NDArray[np.float64]:
    """The mean of the last `width` values (of fewer at the start): (n,) -> (n,)"""
    total = np.concatenate([[0.0], np.cumsum(y)])
    stop = np.arange(1, y.size + 1)
    start = np.maximum(stop - width, 0)
    return np.asarray((total[stop] - total[start]) / (stop - start))


# -- entropy -----------------------------------------------------------------------------------------------------


def output_entropy(model: Any, batch: tuple[Any, ...]) -> float | None:
    """Mean entropy in nats of the distributions that a model predicts for the targets of a batch.

    ln V for a uniform guess; it falls as the model learns. None if the loss has no softmax. The model stays as it was.

    >>> import chainrule as cr, numpy as np
    >>> model = cr.models.NeuralNGram(cr.models.NeuralNGramConfig(block_size=1, vocab_size=4))
    >>> model.weight.data[...] = 0                                   # all logits equal: ln 4
    >>> round(cr.inspect.output_entropy(model, (np.array([[0, 1]]), np.array([[1, 2]]))), 4)
    1.3863
    """
    with evaluating(model), np.errstate(all="ignore"), capture(*calls(*OUTPUTS)) as seen:
        model.loss(*batch)
    return captured_entropy(seen)


def captured_entropy(seen: Capture) -> float | None:
    """The same of the first cross-entropy among captured calls."""
    entry = next((entry for entry in seen.values() if op_of(entry.name) in OUTPUTS), None)
    if entry is None:
        return None
    counted = np.flatnonzero(entry.saved[-3])  # the weights of the targets (N,)
    x = entry.saved[0]
    rows, W = x.reshape(-1, x.shape[-1]), None  # logits (N, V)
    if op_of(entry.name) == "linear_cross_entropy":
        W = entry.saved[1]  # forward was: logits = x Wᵀ
    V = x.shape[-1] if W is None else len(W)
    size = max(1, CHUNK // V)
    total = 0.0
    for start in range(0, len(counted), size):
        some = rows[counted[start : start + size]]
        total += float(_entropies(some if W is None else some @ W.T).sum(dtype=np.float64))
    return total / len(counted) if len(counted) else None


def _entropies(logits: Array) -> Array:
    """logits (n, V) -> the entropy of softmax of each row (n,): ln Σ e^z - Σ z e^z / Σ e^z"""
    with np.errstate(all="ignore"):  # of logits that are not finite
        z = logits - logits.max(axis=1, keepdims=True)
        e = np.exp(z)
        total = e.sum(axis=1)
        return np.asarray(np.log(total) - np.where(e > 0, z * e, 0).sum(axis=1) / total)
