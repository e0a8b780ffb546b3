"""The gradient of a batch, at once or in microbatches.

    loss = Σ_k mean_k,   mean_k = Σ_p n_kp / n_k · mean_kp        part k of the loss is a mean over n_k targets,
                                                                  of which n_kp lie in microbatch p

Microbatches are weighted by the targets in them, so splitting a batch does not change its gradient, however unevenly
its targets fall (but for the rounding of sums, and for a batch norm, which sees fewer rows at a time).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np

from chainrule.autograd import Tensor, fused_gradient
from chainrule.autograd.fused_gradient import KnownGradient
from chainrule.models.microbatch import Batch, State, join, microbatches
from chainrule.models.model import Model


def backward(
    model: Model, batch: Batch, *, accumulate: int = 1, factor: float = 1.0
) -> tuple[float, State | None]:
    """Add the gradient of `factor` times the loss, in `accumulate` microbatches; returns the loss and the new state"""
    parts = microbatches(batch, accumulate)
    counts = [model.counts(part.inputs, part.targets) for part in parts]
    totals = [max(1, sum(of_part)) for of_part in zip(*counts, strict=True)]
    loss, states = 0.0, []
    for part, counted in zip(parts, counts, strict=True):
        weights = [n / total for n, total in zip(counted, totals, strict=True)]
        with _known_gradient(model, factor, weights) as known:
            losses, state = model.losses_and_state(part)
        loss += sum(each.item() * weight for each, weight in zip(losses, weights, strict=True) if weight)
        states.append(state)
        if any(weights):
            _weighted(losses, weights).backward(np.asarray(factor, np.float32))
        if known:
            known.check()
        del losses  # before the next microbatch comes
    return loss, None if states[0] is None else join(states)


def _known_gradient(
    model: Model, factor: float, weights: list[float]
) -> AbstractContextManager[KnownGradient] | AbstractContextManager[None]:
    """What the loss will get in backward, if that is known."""
    if not model.fused_loss or len(weights) != 1 or not weights[0]:
        return nullcontext()
    if weights[0] == 1:
        return fused_gradient(factor)
    number = model.parameters().dtype.type  # what the product will be rounded to
    return fused_gradient(float(number(factor) * number(weights[0])))


def _weighted(losses: tuple[Tensor, ...], weights: list[float]) -> Tensor:
    """Σ weight · loss; a batch that is not split is left as it is, to the last bit."""
    terms = [
        loss if weight == 1 else loss * weight for loss, weight in zip(losses, weights, strict=True) if weight
    ]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
