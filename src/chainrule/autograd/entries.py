"""A gradient check entry by entry: slower than `gradcheck`, but it shows which number is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chainrule.autograd.gradcheck import STEP, backward_of, differentiable, outputs_of, plain, slope
from chainrule.autograd.mode import backend
from chainrule.autograd.types import Array
from chainrule.errors import ShapeError


@dataclass(frozen=True)
class EntryCheck:
    """What a function computed, and its gradients by backward and by central differences.

    `grads` and `differences` have one array for each input, None for one without a gradient. `error` is the largest
    difference between the two, relative to the larger of 1 and the gradient's largest entry.
    """

    outputs: list[Array]
    grads: list[Array | None]
    differences: list[Array | None]

    @property
    def error(self) -> float:
        pairs = zip(self.grads, self.differences, strict=True)
        found = [
            float(np.max(np.abs(g - d)) / max(1.0, float(np.max(np.abs(g)))))
            for g, d in pairs
            if g is not None and d is not None and g.size
        ]
        return max(found, default=0.0)


def check_entries(fn: Callable[..., Any], *inputs: Any, seeds: Sequence[Any] | None = None) -> EntryCheck:
    """Compare every entry of every gradient of `fn` with a central difference, in float64 on the reference backend.

    The gradients are those of Σ seed · output, with one seed for each output; without seeds they are ones.

    >>> import chainrule as cr, numpy as np
    >>> check = check_entries(cr.ops.tanh, np.array([0.0, 1.0]), seeds=[np.array([1.0, 2.0])])
    >>> check.grads[0].round(4), check.error < 1e-9
    (array([1.    , 0.8399]), True)
    """
    args = [np.array(plain(a), dtype=np.float64) if differentiable(plain(a)) else a for a in inputs]
    positions = [i for i, a in enumerate(args) if differentiable(a)]
    with backend("reference"):
        outputs = outputs_of(fn, args)
        given = (
            [np.ones_like(y) for y in outputs]
            if seeds is None
            else [np.asarray(v, np.float64) for v in seeds]
        )
        if [v.shape for v in given] != [y.shape for y in outputs]:
            shapes = ", ".join(str(y.shape) for y in outputs)
            raise ShapeError(
                f"check_entries: seeds {', '.join(str(v.shape) for v in given)} (must be as the outputs: {shapes})"
            )
        grads = backward_of(fn, args, positions, given)
        numeric: dict[int, Array] = {}
        for i in positions:
            numeric[i] = np.empty_like(args[i])
            for index in np.ndindex(*args[i].shape):

                def along(h: float, i: int = i, index: tuple[int, ...] = index) -> float:
                    moved = args[i].copy()
                    moved[index] += h
                    found = outputs_of(fn, [moved if j == i else a for j, a in enumerate(args)])
                    return sum(float(np.sum(v * y)) for v, y in zip(given, found, strict=True))

                numeric[i][index] = slope(along, STEP)
    places = range(len(args))
    return EntryCheck(outputs, [grads.get(i) for i in places], [numeric.get(i) for i in places])
