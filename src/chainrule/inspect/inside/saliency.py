"""Which tokens a logit depends on: its gradient with respect to their embeddings.

    gradient × input        Σ_c x_tc ∂logit/∂x_tc                                   of one backward pass
    integrated gradients    Σ_c (x - x₀)_tc ∫₀¹ ∂logit/∂x_tc at x₀ + α (x - x₀) dα  their sum is logit(x) - logit(x₀)

(Simonyan et al. 2014; Sundararajan et al. 2017)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.autograd import Tensor, enable_grad, intervene
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, ShapeError
from chainrule.inspect.inside.attribution import check_place
from chainrule.inspect.inside.sites import Sites, one_text
from chainrule.inspect.inside.view import View
from chainrule.inspect.probe import evaluating, frozen
from chainrule.nn import Layer
from chainrule.trace.graph import Given

ROWS = 8  # of a batch of interpolated texts


@dataclass(frozen=True)
class Saliency:
    """How a logit, or another number that a model gives, depends on each token that was read."""

    logit: float
    """That number."""
    gradient: Array
    """Of it, with respect to the embeddings (T, C)."""
    scores: Array
    """One number for each token (T,), with its sign."""

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, for JSON."""
        return {"logit": self.logit, "scores": self.scores.tolist(), "gradient": self.gradient.tolist()}


def input_gradient(
    model: Layer, ids: Any, token: int, *, minus: int | None = None, position: int = -1, of: str | None = None
) -> Saliency:
    """Gradient × input of the logit of a token at a position, or of its difference to that of another.

    Of an encoder-decoder, `of="source"` asks for the tokens of the source.

    >>> import chainrule as cr
    >>> cr.seed(0)
    >>> model = cr.models.make("gpt", n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> found = cr.inspect.input_gradient(model, [1, 2, 3], token=4)
    >>> found.gradient.shape, found.scores.shape
    ((3, 16), (3,))
    """
    seen, call = _embedding(model, ids, of)
    x = one_text(seen.value(call))
    return _times_input(x, *_gradients(seen, call, x[None], _logit(seen, token, minus, position)))


def output_gradient(model: Layer, ids: Any, weights: npt.ArrayLike) -> Saliency:
    """Gradient × input of Σ weights · output, for any model that reads tokens: `weights` have the shape of its output
    for one text, such as (classes,) with a 1 at a label.

    >>> import chainrule as cr
    >>> cr.seed(0)
    >>> model = cr.models.make("bert-classifier", n_layer=1, n_head=2, n_embd=16, vocab_size=10, classes=3)
    >>> cr.inspect.output_gradient(model, [1, 2, 3, 4], [0, 1, 0]).scores.shape
    (4,)
    """
    seen, call = _embedding(model, ids, None)
    x, output = one_text(seen.value(call)), seen.output
    weights = np.asarray(weights, output.dtype)
    if weights.shape != output.shape:
        raise ShapeError(f"output_gradient: weights {weights.shape} (must be {output.shape}, as the output)")
    return _times_input(
        x, *_gradients(seen, call, x[None], lambda found: (found * weights).reshape(1, -1).sum(1))
    )


def _times_input(x: Array, values: Array, grads: Array) -> Saliency:
    return Saliency(float(values[0]), grads[0], (x * grads[0]).sum(-1))


def integrated_gradients(
    model: Layer,
    ids: Any,
    token: int,
    *,
    minus: int | None = None,
    position: int = -1,
    of: str | None = None,
    baseline: npt.ArrayLike | None = None,
    steps: int = 32,
) -> Saliency:
    """Gradients along the way from a baseline (C,), zeros unless given, to the embeddings.

    The scores sum to the difference of the logit, the better the more steps.

    >>> import chainrule as cr
    >>> cr.seed(0)
    >>> model = cr.models.make("gpt", n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> cr.inspect.integrated_gradients(model, [1, 2, 3], token=4, steps=8).scores.shape
    (3,)
    """
    if steps < 1:
        raise ConfigError(f"integrated_gradients: steps is {steps} (must be at least 1)")
    seen, call = _embedding(model, ids, of)
    x = one_text(seen.value(call))
    start = np.zeros_like(x) if baseline is None else np.asarray(baseline, x.dtype)
    if start.shape not in (x.shape, x.shape[1:]):
        raise ShapeError(f"integrated_gradients: baseline {start.shape} (must be {x.shape[1:]} or {x.shape})")
    total = np.zeros(x.shape, np.float64)
    for first in range(0, steps, ROWS):
        alphas = (np.arange(first, min(first + ROWS, steps)) + 0.5) / steps  # midpoints
        rows = start + alphas.astype(x.dtype)[:, None, None] * (x - start)
        _, grads = _gradients(seen, call, rows, _logit(seen, token, minus, position))
        total += grads.sum(0, dtype=np.float64)
    mean = total / steps
    logits = seen.logits[check_place(seen.logits, token, minus, position)[2]]
    logit = float(logits[token] - (0 if minus is None else logits[minus]))
    return Saliency(logit, mean.astype(x.dtype), ((x - start) * mean).sum(-1))


def _embedding(model: Layer, ids: Any, of: str | None) -> tuple[View, str]:
    """A view, and the call that looks up the tokens of an input."""
    seen = View(model, ids)
    wanted = of or ("target" if seen.sites.source_spine else None)
    found = token_embeddings(seen.sites)
    if wanted is not None and wanted in found:
        return seen, found[wanted]
    if wanted is not None or not found:
        known = ", ".join(found) or "none"
        raise ConfigError(f"inspect: no embedding of {wanted or 'tokens'} (of what is looked up: {known})")
    return seen, next(iter(found.values()))


def token_embeddings(sites: Sites) -> dict[str, str]:
    """The call that looks up each input of ids."""
    pairs = zip(sites.graph.nodes, sites.names, strict=True)
    looked_up = [(n.constants["ids"], name) for n, name in pairs if n.op.name == "embedding"]
    return {ids.name: name for ids, name in reversed(looked_up) if isinstance(ids, Given)}


def _logit(seen: View, token: int, minus: int | None, position: int) -> Callable[[Any], Any]:
    """Of logits (B, T, V) that of a token at a position (B,), or its difference to that of another."""
    token, minus, position = check_place(seen.logits, token, minus, position)

    def chosen(logits: Any) -> Any:
        found = logits[:, position, token]
        return found if minus is None else found - logits[:, position, minus]

    return chosen


def _gradients(seen: View, call: str, rows: Array, chosen: Callable[[Any], Any]) -> tuple[Array, Array]:
    """Embeddings (B, T, C) instead of those of the text -> `chosen(output)` of each (B,), its gradients (B, T, C)"""
    leaf = Tensor(rows, requires_grad=True)
    given = [None if x is None else np.repeat(x, len(rows), axis=0) for x in seen.given]
    with evaluating(seen.model), enable_grad(), frozen(seen.model), intervene({call: leaf}):
        values = chosen(seen.model(*given))
        values.backward(np.ones(len(rows)))
    assert leaf.grad is not None
    return values.numpy(), leaf.grad
