"""The recorded gradient of a microbatch."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from chainrule import random
from chainrule.autograd import backward
from chainrule.autograd.param import Parameters
from chainrule.autograd.recording import Input, Recording
from chainrule.autograd.tape import fingerprint
from chainrule.autograd.types import Array
from chainrule.models.gradient import Weights, seeds, value
from chainrule.models.microbatch import Batch, State, arrays_of, mapped
from chainrule.models.model import Model

FLOAT32 = np.dtype(np.float32)


class Replayable:
    """The gradient of a microbatch as kernel calls, with the arrays they read and the results they leave."""

    def __init__(
        self,
        model: Model,
        block: Parameters,
        part: Batch,
        weights: Weights,
        factor: float,
        *,
        buffers: Iterable[Array] = (),
        beside: Recording | None = None,
    ) -> None:
        """Compute the gradient op by op while it is recorded, in the memory of another recording if there is one.

        Kernels may read and change the model's `buffers`.
        """
        self.recording = Recording(beside)
        self.values, self.step = printed(block), random.place()[1]
        self.part: Batch = mapped(part, _own)
        self.seeds = np.empty(sum(map(bool, weights)), np.float32)
        self.recording.know(block.data, block.grad, self.seeds, *buffers, *arrays_of(self.part))
        self.recording.guard(block.grad)
        self.fill(part, weights, factor)
        with self.recording.recorded():
            losses, self.state = model.losses_and_state(mapped(self.part, Input))
            counted = [each for each, weight in zip(losses, weights, strict=True) if weight]
            for each in counted:
                if each.dtype != FLOAT32:
                    self.recording.fail(f"a loss is {each.dtype}")
            backward([(each, self.seeds[i : i + 1].reshape(())) for i, each in enumerate(counted)])
            self.losses = [each.array for each in counted]
            for result in (*self.losses, *arrays_of(self.state)):
                if not self.recording.knows(result):
                    self.recording.fail("a result that no kernel made")

    def fill(self, part: Batch, weights: Weights, factor: float) -> None:
        """Write the inputs of a microbatch into the arrays that the kernels read."""
        for own, given in zip(arrays_of(self.part), arrays_of(part), strict=True):
            own[...] = given
        self.seeds[...] = seeds(weights, factor, [FLOAT32] * len(self.seeds))

    def results(self, weights: Weights) -> tuple[float, State | None]:
        """The loss and the state after the last run; copies, since the next one writes there."""
        return value(self.losses, weights), mapped(self.state, np.copy)


def printed(block: Parameters) -> bytes:
    """A few bytes that change with the values of what learns, which comes first in the block."""
    return fingerprint(block.data[: block.grad.size])


def _own(x: Array) -> Array:
    """An array for the values of x: ids as the integers that kernels take."""
    return np.empty(x.shape, np.int64 if x.dtype.kind in "iu" else x.dtype)
