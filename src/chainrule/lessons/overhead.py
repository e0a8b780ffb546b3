"""What a tuned model costs when it is used: adapters are layers of their own, a merged LoRA is nothing."""

from __future__ import annotations

import copy
import time
from typing import Any, NamedTuple

from chainrule.autograd import no_grad
from chainrule.autograd.types import Array
from chainrule.models.tuning import BottleneckAdapter, LoRA, merged


class Overhead(NamedTuple):
    """Time of a forward pass, as a multiple of that of the base."""

    adapter: float
    unmerged: float
    merged: float


def overhead(model: Any, ids: Array, *, bottleneck: int = 16, rank: int = 8, repeats: int = 7) -> Overhead:
    """Forward passes of a language model with adapters, with LoRA and with LoRA merged, in turn with the base's.

    Of each the fastest of `repeats` counts: whatever else the machine does only makes them slower.
    """
    narrow = BottleneckAdapter(bottleneck=bottleneck).apply(copy.deepcopy(model))
    pairs = LoRA(rank=rank).apply(copy.deepcopy(model))
    models = [model, narrow, pairs, merged(pairs)]
    best = [float("inf")] * len(models)
    with no_grad():
        for _ in range(repeats):
            for place, each in enumerate(models):
                began = time.perf_counter()
                each.eval()(ids)
                best[place] = min(best[place], time.perf_counter() - began)
    base, *others = best
    return Overhead(*(seconds / base for seconds in others))
