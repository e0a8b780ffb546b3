"""The compiled step: the gradient of a microbatch as one call into C++, without Python between the kernels.

The first batch of a shape runs op by op, the second too, while its kernel calls are recorded. A later one, after the
weights have changed, shows that the recording is right: it is replayed, and the same gradient is computed op by op. If
all bits agree, batches are replays from then on, and are compared again from time to time. What cannot be recorded, or
does not agree, goes on op by op.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from chainrule import native, random
from chainrule.autograd.mode import mode
from chainrule.autograd.param import Parameters
from chainrule.autograd.recording import Recording
from chainrule.autograd.tape import Done
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.models.gradient import Weights, backward, op_by_op
from chainrule.models.microbatch import Batch, State, arrays_of, leaves, mapped
from chainrule.models.model import Model
from chainrule.models.replayable import FLOAT32, Replayable, printed
from chainrule.nn import Layer

TRAINING = attrgetter("training")

MOST = 16  # recordings of a model; a batch that is split needs two
MOST_BYTES = 1 << 30  # of the memory that they share, for another one to be made
MOST_SHAPES = 256  # that are remembered
IDLE = 64  # microbatches without use: then a recording gives way to another
FIRST_CHECK, LAST_CHECK = 256, 4096  # replays between two comparisons, twice as many each time
Call: TypeAlias = tuple[Batch, Weights, float]  # a microbatch, its weights and the factor
Found: TypeAlias = "tuple[float, State | None]"  # its loss and the new state


@dataclass
class _Shape:
    """What is known of batches of one shape."""

    seen: int = 0
    last: int = 0  # the number of the microbatch that had it last
    replayable: Replayable | None = None
    agreed: frozenset[str] = frozenset()  # what differed from the recording when a replay gave the right bits
    left: int = 0  # replays until the next comparison
    interval: int = FIRST_CHECK // 2
    overwritten: frozenset[int] = frozenset()  # parameters whose leftover gradients a replay overwrites
    broken: str = ""

    @property
    def trusted(self) -> bool:
        """A replay was right on other weights than those of the recording."""
        return "weights" in self.agreed

    def differs(self, block: Parameters) -> frozenset[str]:
        """What differs now from the recording."""
        assert self.replayable is not None
        weights = self.trusted or printed(block) != self.replayable.values
        step = random.place()[1] != self.replayable.step
        return frozenset(name for name, is_so in (("weights", weights), ("step", step)) if is_so)

    def agree(self, differs: frozenset[str]) -> None:
        """A replay was right. The next ones are trusted, more of them each time."""
        self.agreed |= differs
        self.interval = min(2 * self.interval, LAST_CHECK)
        self.left = self.interval

    def give_up(self, reason: str) -> None:
        """Go on op by op."""
        self.broken, self.replayable, self.agreed = reason, None, frozenset()


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

    The loss must be a function of the parameters and the batch, and of the step through dropout only. Other random
    numbers than Chainrule's, and whatever else Python decides anew in each step, are frozen until the next comparison
    finds them. What a model is made of, such as its rate of dropout, must not change meanwhile: compile it again after
    that.
    """

    model: Model
    shapes: dict[Any, _Shape] = field(default_factory=dict, repr=False)  # that of the last batch comes last
    block: Parameters | None = field(default=None, repr=False)
    buffers: list[_Buffer] = field(default_factory=list, repr=False)  # such as running statistics
    layers: list[Layer] = field(default_factory=list, repr=False)
    modes: Any = field(default=None, repr=False)
    count: int = field(default=0, repr=False)  # of microbatches

    def backward(self, batch: Batch, *, accumulate: int | None = None, factor: float = 1.0) -> Found:
        """Add the gradient of `factor` times the loss, as `models.gradient.backward` does"""
        return backward(self.model, batch, accumulate=accumulate, factor=factor, gradient=self.gradient)

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

    def gradient(
        self, model: Model, part: Batch, weights: Weights, factor: float, done: Done | None
    ) -> Found:
        if done is not None or not self._serves():
            return op_by_op(model, part, weights, factor, done)
        shape, call = self._shape(part, weights), (part, weights, factor)
        if shape.replayable is not None:
            return self._replay(shape, shape.replayable, call)
        if shape.seen == 1 or shape.broken or not self._affordable():
            return op_by_op(model, *call)
        return self._record(shape, call)

    def _record(self, shape: _Shape, call: Call) -> Found:
        """The gradient op by op, while its kernel calls are recorded."""
        native.kernels().give_back()  # what the step before has freed: the recording has memory of its own
        block, drawn = self._block(), random.position()
        before, beside = self._before(), next(iter(self._recordings()), None)
        try:
            made = Replayable(self.model, block, *call, buffers=_arrays(self.buffers), beside=beside)
        except Exception as error:
            # Either the batch is at fault, then it is raised again, or something takes no `Input`.
            before.restore()
            with random.replay(drawn):
                results = op_by_op(self.model, *call)
            shape.give_up(f"{type(error).__name__}: {error}")
            return results
        shape.replayable, shape.overwritten = made, before.leftovers - block.leftovers
        results = made.results(call[1])
        if made.recording.broken:
            shape.give_up(made.recording.broken)
        return results

    def _replay(self, shape: _Shape, made: Replayable, call: Call) -> Found:
        """The gradient by a replay, or as long as it is not trusted, and from time to time, in both ways."""
        differs = shape.differs(self._block())
        trusted = shape.trusted and differs <= shape.agreed
        if trusted and shape.left > 0:
            shape.left -= 1
            return self._replayed(shape, made, call)
        if trusted or not differs <= shape.agreed:
            return self._compared(shape, made, call, differs)
        return self._beside(made, call)  # on the weights of the recording a comparison shows nothing

    def _replayed(self, shape: _Shape, made: Replayable, call: Call) -> Found:
        made.fill(*call)
        before = [array.copy() for array in _arrays(self.buffers)]
        try:
            made.recording.replay()
            self._block().leftovers -= shape.overwritten
        except ValueError as error:  # an id out of range: said as it is op by op
            _restore(self.buffers, before)
            results = op_by_op(self.model, *call)
            if made.recording.touched:
                raise  # what the replay has added to the gradient cannot be taken back
            shape.give_up(f"{type(error).__name__}: {error}")
            return results
        return made.results(call[1])

    def _compared(self, shape: _Shape, made: Replayable, call: Call, differs: frozenset[str]) -> Found:
        """The gradient op by op, and whether a replay gives the same bits."""
        block = self._block()
        before, replayed = self._before(), b""
        made.fill(*call)
        try:
            made.recording.replay()
            replayed = self._digest(made.results(call[1]))
        except ValueError:  # an id out of range: raised again op by op
            pass
        before.restore()
        results = self._beside(made, call)
        # Op by op must overwrite as much: elsewhere the block still holds what the replay wrote.
        overwritten = before.leftovers - block.leftovers
        if overwritten != shape.overwritten or replayed != self._digest(results):
            shape.give_up("a replay gave other bits")
        else:
            shape.agree(differs)
        return results

    def _beside(self, made: Replayable, call: Call) -> Found:
        """The gradient op by op in the memory of a recording, which is free between replays."""
        with made.recording.memory():
            loss, state = op_by_op(self.model, *call)
            return loss, mapped(state, np.copy)

    def _affordable(self) -> bool:
        """Another recording may be made, perhaps in place of what has not been used for long."""
        made = [shape for shape in self.shapes.values() if shape.replayable is not None]
        idle = [shape for shape in made if self.count - shape.last > IDLE]
        full = any(recording.bytes >= MOST_BYTES for recording in self._recordings())
        leaving = idle[:1] if len(made) == MOST else []
        if full:  # their memory is freed with the last of them
            leaving = idle if len(idle) == len(made) else []
        for shape in leaving:
            shape.give_up("")
        return bool(leaving) or not (full or len(made) == MOST)

    def _recordings(self) -> list[Recording]:
        """All that can be replayed; they share one memory, since no two of them are at the same time."""
        return [shape.replayable.recording for shape in self.shapes.values() if shape.replayable is not None]

    def _serves(self) -> bool:
        """False if somebody looks into the step or changes it."""
        looked_into = mode.captures or mode.interventions or mode.trace or mode.recording
        if looked_into or not mode.grad or mode.backend != "native" or not native.available():
            return False
        block = self._block()
        return block.dtype == FLOAT32 and block.gathers()

    def _block(self) -> Parameters:
        """The parameters; what was recorded for another block is dropped."""
        if self.block is None or self.block.moved() or any(each.moved for each in self.buffers):
            self.block, self.shapes = self.model.parameters(), {}
            self.layers = [layer for _, layer in self.model.named_layers()]
            self.buffers = [
                _Buffer(layer, name, getattr(layer, name)) for layer in self.layers for name in layer.buffers
            ]
        return self.block

    def _before(self) -> _Before:
        return _Before(self._block(), self.buffers)

    def _digest(self, results: Found) -> bytes:
        """The bits of the gradient, of the buffers, of the loss and of the state after it."""
        found = hashlib.blake2b(self._block().grad.view(np.uint8).data)
        for array in (*_arrays(self.buffers), np.float64(results[0]), *arrays_of(results[1])):
            found.update(np.ascontiguousarray(array).tobytes())
        return found.digest()

    def _shape(self, part: Batch, weights: Weights) -> _Shape:
        """What is known of microbatches like this one; nothing if the model learns in another way than before."""
        block, training = self._block(), list(map(TRAINING, self.layers))
        modes = (
            block.learning(), training, mode.precision, self.model.recompute, random.current_seed(), native.isa()
        )  # fmt: skip
        if modes != self.modes:
            self.modes, self.shapes = modes, {}
        arrays = [None if x is None else (x.shape, x.dtype.str) for x in leaves(part)]
        key = (*arrays, *map(bool, weights), frozenset(block.leftovers))
        shape = self.shapes[key] = self.shapes.pop(key, _Shape())
        if len(self.shapes) > MOST_SHAPES:
            del self.shapes[next(key for key, each in self.shapes.items() if each.replayable is None)]
        self.count += 1
        shape.seen, shape.last = shape.seen + 1, self.count
        return shape


def compile(model: Model) -> Compiled:
    """A model whose gradients need no Python between kernels: `compile(model).backward(batch)`."""
    if not isinstance(model, Model):
        raise ConfigError(f"compile: {type(model).__name__} (must be a model, such as cr.models.GPT(config))")
    return Compiled(model)


class _Before:
    """What a step changes, to be restored: the gradient block, with zeros and leftovers, and buffers."""

    def __init__(self, block: Parameters, buffers: list[_Buffer]) -> None:
        self.block, self.leftovers = block, frozenset(block.leftovers)
        self.values = {key: grad.copy() for key, grad in self._counting() if grad.any()}
        self.buffers, self.copies = buffers, [array.copy() for array in _arrays(buffers)]

    def _counting(self) -> Iterator[tuple[int, Array]]:
        return ((key, grad) for key, grad in self.block.grad_of.items() if key not in self.leftovers)

    def restore(self) -> None:
        for key, grad in self._counting():
            grad[...] = self.values.get(key, 0)
        self.block.leftovers.update(self.leftovers)
        _restore(self.buffers, self.copies)


class _Buffer(NamedTuple):
    """An array of a layer that does not learn, and may change in a step."""

    layer: Layer
    name: str
    array: Array

    @property
    def moved(self) -> bool:
        """Another array stands in its place."""
        return getattr(self.layer, self.name) is not self.array


def _arrays(buffers: list[_Buffer]) -> list[Array]:
    return [buffer.array for buffer in buffers]


def _restore(buffers: list[_Buffer], copies: list[Array]) -> None:
    for buffer, copy in zip(buffers, copies, strict=True):
        buffer.array[...] = copy
