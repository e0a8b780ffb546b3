"""The gradient of a batch, at once or in microbatches.

    loss = Σ_k mean_k,   mean_k = Σ_p n_kp / n_k · mean_kp        part k of the loss is a mean over n_k targets,
                                                                  of which n_kp lie in microbatch p

Microbatches are weighted by the targets in them, so splitting a batch does not change its gradient, however unevenly
its targets fall (but for the rounding of sums, and for a batch norm, which sees fewer rows at a time).
"""

from __future__ import annotations

from chainrule import autograd, random
from chainrule.autograd.tape import Done
from chainrule.models.microbatch import Batch, State, join, microbatches
from chainrule.models.model import Model


def backward(
    model: Model,
    batch: Batch,
    *,
    accumulate: int = 1,
    factor: float = 1.0,
    share: tuple[int, int] = (0, 1),
    done: Done | None = None,
) -> tuple[float, State | None]:
    """Add the gradient of `factor` times the loss, in `accumulate` microbatches; returns the loss and the new state

    With a `share` (i, n) only every n-th microbatch from the i-th on is computed, of `accumulate` for each of n
    processes: the sum of what they find is the whole. `done` is told of each parameter whose gradient is complete, in
    the last microbatch.
    """
    first, every = share
    parts = microbatches(batch, accumulate * every)
    counts = [model.counts(part.inputs, part.targets) for part in parts]
    totals = [max(1, sum(of_part)) for of_part in zip(*counts, strict=True)]
    loss, states = 0.0, []
    mine = list(enumerate(zip(parts, counts, strict=True)))[first::every]
    for place, (part, counted) in mine:
        with random.part(place):
            losses, state = model.losses_and_state(part)
        states.append(state)
        weighted = [(each, n / total) for each, n, total in zip(losses, counted, totals, strict=True) if n]
        seeds = []
        for each, weight in weighted:
            number = each.dtype.type  # rounds the factor as the gradient of weight · loss would be
            seeds.append((each, number(factor) * number(weight)))
        autograd.backward(seeds, done=done if place == mine[-1][0] else None)
        # Read after backward, which computes a deferred loss together with its gradient.
        loss += sum(each.item() * weight for each, weight in weighted)
        del losses, weighted  # before the next microbatch comes
    return loss, None if not states or states[0] is None else join(states)
