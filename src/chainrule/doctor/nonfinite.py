"""Where the first number that is not finite comes from: the op, its layer, the row of the batch and the token.

The batch is recomputed while every call of an op is checked. In forward it is the first op that gives NaN or
infinity although its inputs are finite (weights aside: they are checked first); in backward the first gradient that is
not finite. Nothing is kept and nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from chainrule import random
from chainrule.autograd import Param, Tensor, no_grad
from chainrule.autograd.capture import Capture, shown_to
from chainrule.autograd.types import Array
from chainrule.inspect.probe import untouched
from chainrule.models import IGNORE, Model
from chainrule.models.gradient import Weights, batch_count, op_by_op, weighted
from chainrule.models.microbatch import Batch, named, row_count, take

Several = tuple[Any, ...]


@dataclass(frozen=True)
class Entry:
    """The first entry of an array that is not finite."""

    name: str
    """Of the op that made the array, with its layer (`h.3.mlp.gelu`), or of the parameter."""
    value: float
    index: tuple[int, ...]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, name: str, array: Array) -> Entry:
        index = np.unravel_index(int(np.argmin(np.isfinite(array))), array.shape)
        return cls(name, float(array[index]), tuple(map(int, index)), array.shape)

    @property
    def place(self) -> str:
        """Name and index: `wte.weight[3, 5]`"""
        return f"{self.name}{list(self.index)}"


@dataclass(frozen=True)
class Origin:
    """Where it began."""

    phase: Literal["forward", "backward", "gradient"]
    """In the output of an op, in the gradient that comes back to an op, or in that of a parameter."""
    entry: Entry
    weight: Entry | None = None
    """A parameter that was not finite before."""
    row: int | None = None
    position: int | None = None
    ids: tuple[int, ...] = ()
    """The tokens of that row."""


class Found(Exception):
    """Ends the search."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin


class Checked(Capture):
    """Checks every call and every gradient that comes back, and keeps none."""

    def __init__(self) -> None:
        super().__init__(())

    def add(self, name: str, args: Several, values: Several, saved: Several, tensors: Several) -> None:
        for value in values:
            # A mask of -inf or a broken weight is not the fault of this op.
            if not finite(value) and all(isinstance(arg, Param) or finite(arg) for arg in args):
                raise Found(Origin("forward", Entry.of(name, value)))

        def look(grad: Array) -> None:
            if not finite(grad):
                raise Found(Origin("backward", Entry.of(name, grad)))

        for tensor in tensors:
            if tensor.requires_grad:
                tensor.register_hook(look)


def finite(value: Any) -> bool:
    """Whether every number in an argument of an op is finite; an argument without numbers is."""
    array = np.asarray(value.array if isinstance(value, Tensor) else value)
    if array.dtype.kind != "f" or not array.size:
        return True
    return bool(np.isfinite(array.min()) and np.isfinite(array.max()))  # needs no memory, as counting would


def search(model: Model, batch: Batch, *, accumulate: int | None = None) -> Origin | None:
    """The origin of what is not finite in a batch, or None if all of it is; the model is left as it was.

    Call it with the random step and the precision of the step that failed.
    """
    weight, before = broken(model), 0
    with untouched(model), np.errstate(all="ignore"):
        model.train()
        model.parameters().zero_grad()
        found = weighted(model, batch, batch_count(model, batch.inputs, accumulate))
        for place, (part, weights) in enumerate(found):
            with random.part(place):  # dropout draws what it drew in the step
                origin = _in_microbatch(model, part, weights)
            if origin:
                row = None if origin.row is None else origin.row + before
                return replace(origin, weight=weight, row=row)
            before += row_count(part.inputs)
    return None


def broken(model: Model) -> Entry | None:
    """The first parameter that is not finite."""
    weights = model.named_parameters()
    return next((Entry.of(name, p.array) for name, p in weights if not finite(p)), None)


def _in_microbatch(model: Model, batch: Batch, weights: Weights) -> Origin | None:
    try:
        with shown_to(Checked()):
            op_by_op(model, model.prepared(batch), weights, 1.0)
    except Found as found:
        return _located(found.origin, model, batch)
    for name, param in model.named_parameters():
        if param.grad is not None and not finite(param.grad):
            return Origin("gradient", Entry.of(name, param.grad))
    return None


def _located(origin: Origin, model: Model, batch: Batch) -> Origin:
    """The origin with row, position and tokens: from the shape of the array, else by bisecting the batch."""
    texts = _texts(batch.inputs)
    if "decoder" in origin.entry.name:
        texts.reverse()  # of equal shapes the decoder's is the last
    for ids in texts:
        place = _place(origin.entry, *ids.shape)
        if place:
            return replace(origin, row=place[0], position=place[1], ids=tuple(ids[place[0]].tolist()))
    if origin.phase != "forward":
        return origin
    row = _narrow(lambda part: _fails(model, _rows(batch, part)), row_count(batch.inputs))
    if row is None or not texts:
        return replace(origin, row=row)
    ids, position = texts[-1][row], None
    if batch.targets.ndim == 2:
        alone = _rows(batch, slice(row, row + 1))
        position = _narrow(lambda part: _fails(model, _only(alone, part)), batch.targets.shape[1])
    return replace(origin, row=row, position=position, ids=tuple(ids.tolist()))


def _texts(inputs: Any) -> list[Array]:
    """The arrays of tokens (B, T) among the inputs."""
    arrays = named(inputs).items()
    return [a for name, a in arrays if a.ndim == 2 and a.dtype.kind in "iu" and name != "segments"]


def _place(entry: Entry, B: int, T: int) -> tuple[int, int] | None:
    """Row and position of an entry of an array (B, T, ...), (B, H, T, ...) or (B·T, ...)."""
    shape, index = entry.shape, entry.index
    if shape[:2] == (B, T):
        return index[0], index[1]
    if len(shape) == 4 and (shape[0], shape[2]) == (B, T):
        return index[0], index[2]
    if shape[:1] == (B * T,) and len(shape) > 1:
        return divmod(index[0], T)
    return None


def _narrow(fails: Callable[[slice], bool], size: int) -> int | None:
    """The first place that fails by itself, found by halving; None if only several together do."""
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) // 2
        if fails(slice(low, middle)):
            high = middle
        elif fails(slice(middle, high)):
            low = middle
        else:
            return None
    return low


def _rows(batch: Batch, part: slice) -> Batch:
    state = None if batch.state is None else take(batch.state, part)
    return Batch(take(batch.inputs, part), batch.targets[part], state)


def _only(batch: Batch, part: slice) -> Batch:
    """The same row with these targets alone."""
    targets = np.full_like(batch.targets, IGNORE)
    targets[:, part] = batch.targets[:, part]
    return batch._replace(targets=targets)


def _fails(model: Model, batch: Batch) -> bool:
    try:
        with no_grad(), shown_to(Checked()):
            losses, _ = model.losses_and_state(model.prepared(batch))
    except Found:
        return True
    counts = model.counts(batch.inputs, batch.targets)  # a mean over no targets may be NaN
    return not all(finite(loss) for loss, n in zip(losses, counts, strict=True) if n)
