"""The gradient of a batch, at once or in microbatches.

    loss = Σ_k mean_k,   mean_k = Σ_p n_kp / n_k · mean_kp        part k of the loss is a mean over n_k targets,
                                                                  of which n_kp lie in microbatch p

Microbatches are weighted by the targets in them, so splitting a batch does not change its gradient, however unevenly
its targets fall (but for the rounding of sums, and for a batch norm, which sees fewer rows at a time). A transformer
splits a large batch by itself: that takes less memory and, as its activations stay nearer to the cores, no more time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from chainrule import autograd, random
from chainrule.autograd.tape import Done
from chainrule.autograd.types import Array
from chainrule.models.microbatch import Batch, State, arrays_of, join, microbatches
from chainrule.models.model import Model

Weights: TypeAlias = tuple[float, ...]
"""The part of the batch's targets that is in a microbatch, for each part of the loss."""
Gradient: TypeAlias = "Callable[[Model, Batch, Weights, float, Done | None], tuple[float, State | None]]"
"""(model, prepared microbatch, weights, factor, done) -> its weighted loss and the new state; gradients are added up"""


def backward(
    model: Model,
    batch: Batch,
    *,
    accumulate: int | None = None,
    factor: float = 1.0,
    share: tuple[int, int] = (0, 1),
    done: Done | None = None,
    gradient: Gradient | None = None,
) -> tuple[float, State | None]:
    """Add the gradient of `factor` times the loss, in `accumulate` microbatches; returns the loss and the new state

    By default there are as many as `microbatch_count` says. With a `share` (i, n) only every n-th microbatch from the
    i-th on is computed, of `accumulate` for each of n processes: the sum of what they find is the whole. `done` is told
    of each parameter whose gradient is complete, in the last microbatch. `gradient` is another way than op by op to
    that of a microbatch.
    """
    first, every = share
    found = weighted(model, batch, batch_count(model, batch.inputs, accumulate, every))
    loss, states = 0.0, []
    mine = list(enumerate(found))[first::every]
    for place, (part, weights) in mine:
        with random.part(place):
            last = done if place == mine[-1][0] else None
            found_loss, state = (gradient or op_by_op)(model, model.prepared(part), weights, factor, last)
        loss += found_loss
        states.append(state)
    return loss, None if not states or states[0] is None else join(states)


def weighted(model: Model, batch: Batch, count: int) -> list[tuple[Batch, Weights]]:
    """So many microbatches of a batch, each with its weights."""
    found = [batch] if count == 1 else microbatches(batch, count)
    counts = [model.counts(each.inputs, each.targets) for each in found]
    totals = [max(1, sum(of_all)) for of_all in zip(*counts, strict=True)]
    weights = (tuple(n / total for n, total in zip(each, totals, strict=True)) for each in counts)
    return list(zip(found, weights, strict=True))


def batch_count(model: Model, inputs: Any, accumulate: int | None = None, ranks: int = 1) -> int:
    """How many microbatches a batch with these inputs is for so many ranks: `accumulate` for each, if that is given."""
    if accumulate is not None:
        return accumulate * ranks
    rows, tokens = next((ids.shape for ids in arrays_of([inputs]) if ids.ndim == 2), (1, 1))
    return microbatch_count(model.microbatch_tokens, rows, tokens, ranks)


def microbatch_count(most: int | None, rows: int, tokens: int, ranks: int = 1) -> int:
    """How many microbatches of about `most` tokens a batch is, for so many ranks: the fewest.

    There may be up to twice as many if they are then of one size.

    >>> [microbatch_count(2048, rows, 256) for rows in (8, 9, 16, 1000)]
    [1, 3, 2, 125]
    >>> [microbatch_count(most, 18, 256) for most in (1024, 2048, None)]
    [6, 3, 1]
    """
    if most is None:
        return ranks
    fewest = max(1, -(-rows * tokens // (most * ranks)))
    each = next((n for n in range(fewest, 2 * fewest) if rows % (n * ranks) == 0), fewest)
    return ranks * max(1, min(each, -(-rows // ranks)))


def op_by_op(
    model: Model, part: Batch, weights: Weights, factor: float, done: Done | None = None
) -> tuple[float, State | None]:
    """The gradient of one prepared microbatch: the forward pass is recorded on the tape, which is then replayed."""
    losses, state = model.losses_and_state(part)
    weighted = [(each, weight) for each, weight in zip(losses, weights, strict=True) if weight]
    del losses
    kinds = [each.dtype for each, _ in weighted]
    autograd.backward(
        [(each, seed) for (each, _), seed in zip(weighted, seeds(weights, factor, kinds), strict=True)],
        done=done,
    )
    # Read after backward, which computes a deferred loss together with its gradient.
    return value([each.numpy() for each, _ in weighted], weights), state


def seeds(weights: Weights, factor: float, kinds: Sequence[np.dtype]) -> list[np.floating]:
    """The gradient of each part of the loss that counts: rounded as that of factor · weight · loss would be."""
    return [
        kind.type(factor) * kind.type(weight)
        for kind, weight in zip(kinds, filter(None, weights), strict=True)
    ]


def value(losses: Sequence[Array], weights: Weights) -> float:
    """The weighted sum of the parts of the loss that count."""
    return sum(each.item() * weight for each, weight in zip(losses, filter(None, weights), strict=True))
