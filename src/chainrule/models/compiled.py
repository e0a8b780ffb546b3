"""The compiled step: the gradient of a microbatch as one call into C++, without Python between the kernels.

The first batch of a shape runs op by op, the second too, while its kernel calls are recorded, and the third shows that
the recording is right: it is replayed, and the same gradient is computed op by op. If all bits agree, later batches are
replays. What cannot be recorded, or does not agree, goes on op by op.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from chainrule import native, random
from chainrule.autograd import backward as backward_from
from chainrule.autograd.mode import mode
from chainrule.autograd.param import Parameters
from chainrule.autograd.recording import Input, Recording
from chainrule.autograd.tape import Done
from chainrule.autograd.types import Array
from chainrule.models.gradient import Weights, backward, op_by_op, seeds, value
from chainrule.models.microbatch import Batch, State
from chainrule.models.model import Model

MOST = 8  # recordings of a model
MOST_BYTES = 1 << 30  # of memory of their own, for another one to be made
FLOAT32 = np.dtype(np.float32)


@dataclass
class _Shape:
    """What is known of batches of one shape."""

    seen: int = 0
    recorded: _Recorded | None = None
    trusted: bool = False
    broken: str = ""


class _Recorded:
    """The gradient of a microbatch, recorded: the arrays it reads and the results it leaves."""

    def __init__(self, model: Model, block: Parameters, part: Batch, weights: Weights, factor: float) -> None:
        """Compute the gradient op by op while it is recorded."""
        self.recording = Recording()
        self.part: Batch = _mapped(part, _own)
        self.seeds = np.empty(sum(map(bool, weights)), np.float32)
        self.recording.know(block.data, block.grad, self.seeds, *_arrays(self.part))
        self.fill(part, weights, factor)
        with self.recording.recorded():
            losses, self.state = model.losses_and_state(_mapped(self.part, Input))
            counted = [each for each, weight in zip(losses, weights, strict=True) if weight]
            for each in counted:
                if each.dtype != FLOAT32:
                    self.recording.fail(f"a loss is {each.dtype}")
            backward_from([(each, self.seeds[i : i + 1].reshape(())) for i, each in enumerate(counted)])
            self.losses = [each.data for each in counted]
            for result in (*self.losses, *_arrays(self.state)):
                if not self.recording.knows(result):
                    self.recording.fail("a result that no kernel made")

    def fill(self, part: Batch, weights: Weights, factor: float) -> None:
        """Write the inputs of a microbatch into the arrays that the kernels read."""
        for own, given in zip(_arrays(self.part), _arrays(part), strict=True):
            own[...] = given
        self.seeds[...] = seeds(weights, factor, [FLOAT32] * len(self.seeds))

    def results(self, weights: Weights) -> tuple[float, State | None]:
        """The loss and the state after the last run; copies, since the next one writes there."""
        return value(self.losses, weights), _mapped(self.state, np.copy)


@dataclass
class Compiled:
    """A model whose gradients are computed by replays of recorded kernel calls, to the bits of the op-by-op step.

    >>> import chainrule as cr, numpy as np
    >>> from chainrule.models.microbatch import Batch
    >>> model = cr.models.make("gpt", n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> compiled, ids = cr.compile(model), np.arange(18).reshape(2, 9) % 10
    >>> for _ in range(4):
    ...     model.parameters().zero_grad()
    ...     loss, _ = compiled.backward(Batch(ids[:, :-1], ids[:, 1:]))
    >>> round(loss, 1), compiled.broken
    (2.3, [])

    The loss must be a function of the parameters, the batch and the step. What a model is made of, such as its rate of
    dropout, must not change meanwhile: compile it again after that.
    """

    model: Model
    shapes: dict[Any, _Shape] = field(default_factory=dict, repr=False)
    block: Parameters | None = field(default=None, repr=False)
    buffers: list[str] = field(default_factory=list, repr=False)

    def backward(
        self, batch: Batch, *, accumulate: int = 1, factor: float = 1.0
    ) -> tuple[float, State | None]:
        """Add the gradient of `factor` times the loss, as `models.gradient.backward` does"""
        return backward(self.model, batch, accumulate=accumulate, factor=factor, gradient=self._gradient)

    @property
    def broken(self) -> list[str]:
        """Why shapes are computed op by op; those that are too rare are not among them."""
        return [shape.broken for shape in self.shapes.values() if shape.broken]

    @property
    def replayed(self) -> int:
        """How many shapes are replayed."""
        return sum(shape.trusted for shape in self.shapes.values())

    def forget(self) -> None:
        """Free the memory of all recordings; shapes that come again are recorded again."""
        self.shapes.clear()

    def _gradient(
        self, model: Model, part: Batch, weights: Weights, factor: float, done: Done | None
    ) -> tuple[float, State | None]:
        if done is not None or not self._serves():
            return op_by_op(model, part, weights, factor, done)
        shape = self.shapes.setdefault(self._key(part, weights), _Shape())
        shape.seen += 1
        if shape.recorded is not None:
            return self._repeated(shape, shape.recorded, part, weights, factor)
        if shape.seen == 1 or shape.broken or not self._affordable():
            return op_by_op(model, part, weights, factor)
        return self._recorded(shape, part, weights, factor)

    def _recorded(
        self, shape: _Shape, part: Batch, weights: Weights, factor: float
    ) -> tuple[float, State | None]:
        """The gradient op by op, while its kernel calls are recorded."""
        native.kernels().give_back()  # what the step before has freed: the recording has memory of its own
        block = self._block()
        before = _copy(block.grad)
        try:
            recorded = _Recorded(self.model, block, part, weights, factor)
        except (
            Exception
        ) as error:  # of the batch, then it is raised again, or of something that takes no `Input`
            _restore(block.grad, before)
            results = op_by_op(self.model, part, weights, factor)
            shape.broken = f"{type(error).__name__}: {error}"
            return results
        shape.recorded, results = recorded, recorded.results(weights)
        self._settle(shape, recorded.recording.broken)
        return results

    def _repeated(
        self, shape: _Shape, recorded: _Recorded, part: Batch, weights: Weights, factor: float
    ) -> tuple[float, State | None]:
        """The gradient by a replay; or, until that is known to be right, by both ways."""
        block = self._block()
        before = None if shape.trusted else _copy(block.grad)
        recorded.fill(part, weights, factor)
        try:
            recorded.recording.replay()
        except ValueError:  # an id out of range: said as it is op by op
            op_by_op(self.model, part, weights, factor)
            raise
        results = recorded.results(weights)
        if shape.trusted:
            return results
        replayed = _digest(block.grad, results)
        _restore(block.grad, before)
        with recorded.recording.memory():
            results = op_by_op(self.model, part, weights, factor)
            results = results[0], _mapped(results[1], np.copy)
        shape.trusted = replayed == _digest(block.grad, results)
        self._settle(shape, "" if shape.trusted else "a replay gave other bits")
        return results

    def _settle(self, shape: _Shape, broken: str) -> None:
        if broken:
            shape.broken, shape.recorded = broken, None

    def _affordable(self) -> bool:
        made = [shape.recorded for shape in self.shapes.values() if shape.recorded is not None]
        return len(made) < MOST and sum(each.recording.bytes for each in made) < MOST_BYTES

    def _serves(self) -> bool:
        """False if somebody looks into the step, changes it, or keeps something beside gradients."""
        looked_into = mode.captures or mode.interventions or mode.trace or mode.recording
        if looked_into or not mode.grad or mode.backend != "native" or not native.available():
            return False
        return self._block().dtype == FLOAT32 and not self.buffers

    def _block(self) -> Parameters:
        """The parameters; what was recorded for another block is dropped."""
        if self.block is None or self.block.moved():
            self.block, self.shapes = self.model.parameters(), {}
            self.buffers = [name for name, _ in self.model.named_buffers()]
        return self.block

    def _key(self, part: Batch, weights: Weights) -> Any:
        """What a recording depends on, apart from values that it reads anew."""
        arrays = [None if x is None else (x.shape, x.dtype.str) for x in _leaves(part)]
        learned = [(p.requires_grad, p.grad is None, bool(p.hooks)) for p in self._block().unique]
        modes = mode.precision, self.model.training, self.model.recompute, random.current_seed()
        return (*arrays, *map(bool, weights), *learned, *modes, native.isa())


def compile(model: Model) -> Compiled:
    """A model whose gradients need no Python between kernels: `compile(model).backward(batch)`."""
    return Compiled(model)


def _copy(grad: Array) -> Array | None:
    """What microbatches before have added; None for zeros."""
    return grad.copy() if grad.any() else None


def _restore(grad: Array, before: Array | None) -> None:
    grad[...] = 0 if before is None else before


def _own(x: Array) -> Array:
    """An array for the values of x: ids as the integers that kernels take."""
    return np.empty(x.shape, np.int64 if x.dtype.kind in "iu" else x.dtype)


def _mapped(tree: Any, function: Any) -> Any:
    """The same nested tuples with `function` of each array."""
    if isinstance(tree, np.ndarray):
        return function(tree)
    if not isinstance(tree, tuple | list):
        return tree
    items = [_mapped(item, function) for item in tree]
    return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)


def _leaves(tree: Any) -> list[Any]:
    """Whatever nested tuples hold, in order."""
    return [leaf for item in tree for leaf in _leaves(item)] if isinstance(tree, tuple | list) else [tree]


def _arrays(tree: Any) -> list[Array]:
    return [leaf for leaf in _leaves(tree) if isinstance(leaf, np.ndarray)]


def _digest(grad: Array, results: tuple[float, State | None]) -> bytes:
    """The bits of a gradient, of its loss and of the state after it."""
    found = hashlib.blake2b(grad.view(np.uint8).data)
    for array in (np.float64(results[0]), *_arrays(results[1])):
        found.update(np.ascontiguousarray(array).tobytes())
    return found.digest()
