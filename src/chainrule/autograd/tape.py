"""The tape: one record per call of an op, replayed once in reverse order of recording.

A record is held by the tensors it produced and by the later records that used them, by nobody else. So the part of the
tape that no tensor needs any more is freed at once, by reference counts alone. Replaying is a loop over the records in
order, not a recursion: a chain of a million nodes is no problem.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from chainrule.autograd.types import Array, Grads, Needs, Saved, Shape
from chainrule.errors import GraphError

if TYPE_CHECKING:
    from chainrule.autograd.tensor import Tensor

Hook: TypeAlias = Callable[[Array], Array | None]
Likeness: TypeAlias = "tuple[Shape, np.dtype[Any]]"

_clock = itertools.count()


def now() -> int:
    """The present place on the tape; later records come after it."""
    return next(_clock)


USED_UP = (
    "was already used by an earlier backward() and its saved values are freed "
    "(call backward once, or keep them with backward(retain=True))"
)


class Operation(Protocol):
    """What the tape asks of an op."""

    name: str

    def run_backward(self, dy: Array | tuple[Array, ...], saved: Saved, needs: Needs) -> Grads: ...


class Leaf(NamedTuple):
    """An input nobody computed (a parameter): its gradient goes into `tensor.grad`."""

    tensor: Tensor
    state: tuple[int, bytes] | None  # version and fingerprint when its values were saved, else None


class Output(NamedTuple):
    """An input that is an output of an earlier record."""

    record: Record
    which: int


Source: TypeAlias = Leaf | Output | None  # None: nobody wants this gradient


@dataclass(slots=True, eq=False)
class Record:
    """One call of an op."""

    op: Operation
    name: str
    inputs: tuple[Source, ...]
    saved: Saved
    needs: Needs
    likeness: list[Likeness]  # shape and dtype of each output
    single: bool  # one bare output rather than a tuple
    place: int  # its time of recording
    hooks: dict[int, list[Hook]] | None = None  # by output
    spent: bool = False


def record(
    op: Operation,
    name: str,
    args: tuple[Any, ...],
    outputs: list[Array],
    single: bool,
    saved: Saved,
    needs: Needs,
) -> Record:
    """Append one call to the tape."""
    kept = (*saved, *outputs)  # an output may be a view of its input, which a later op saves
    inputs = tuple([_source(arg, kept) if need else None for arg, need in zip(args, needs, strict=True)])
    return Record(op, name, inputs, saved, needs, [(y.shape, y.dtype) for y in outputs], single, now())


def _source(tensor: Tensor, kept: tuple[Any, ...]) -> Source:
    if tensor.record is not None:
        return Output(tensor.record, tensor.index)
    array = tensor.array
    for value in kept:
        base = value.base if isinstance(value, np.ndarray) else None
        if value is array or (base is not None and (base is array or base is array.base)):
            return Leaf(tensor, (tensor.version, fingerprint(array)))
    return Leaf(tensor, None)


def replay(roots: list[tuple[Output, Array]], *, retain: bool = False, since: int = 0) -> None:
    """Walk the tape in reverse from `roots` and their gradients, adding into the gradients of the leaves.

    `since` is the oldest place that may be reached: a recomputation must not run into the graph around it.
    """
    pending = _Pending()
    for root, seed in roots:
        pending.add(root, seed)
    for step in _tape(root.record for root, _ in roots):
        _check(step, since)
        dy = tuple([_output_gradient(step, i, pending) for i in range(len(step.likeness))])
        grads = step.op.run_backward(dy[0] if step.single else dy, step.saved, step.needs)
        _distribute(step, grads, pending)
        if not retain:
            step.saved, step.inputs, step.hooks, step.spent = (), (), None, True
    for leaf, grad in pending.hooked.values():
        leaf.accumulate(run_hooks(leaf.hooks, grad))


def _tape(roots: Iterable[Record]) -> list[Record]:
    """Every record the roots depend on, newest first."""
    found = {id(r): r for r in roots}
    stack = list(found.values())
    while stack:
        for source in stack.pop().inputs:
            if isinstance(source, Output) and id(source.record) not in found:
                found[id(source.record)] = source.record
                stack.append(source.record)
    return sorted(found.values(), key=lambda r: -r.place)


def _check(step: Record, since: int) -> None:
    if step.spent:
        raise GraphError(f"backward: {step.name} {USED_UP}")
    if step.place < since:
        raise GraphError(
            f"backward: {step.name} was computed outside checkpoint() (pass its result as an argument)"
        )
    for position, source in enumerate(step.inputs):
        if isinstance(source, Leaf) and source.state is not None:
            leaf = source.tensor
            if source.state != (leaf.version, fingerprint(leaf.array)):
                raise GraphError(
                    f"backward: {leaf.name or f'input {position}'} of shape {leaf.shape} was changed in place after "
                    f"{step.name} saved it (change values after backward(), or work on a copy)"
                )


def _output_gradient(step: Record, index: int, pending: _Pending) -> Array:
    dy = pending.take(Output(step, index))
    if dy is None:
        return np.zeros(*step.likeness[index])
    return run_hooks(step.hooks.get(index, ()), dy) if step.hooks else dy


def _distribute(step: Record, grads: Grads, pending: _Pending) -> None:
    name = step.op.name
    if len(grads) != len(step.needs):
        raise GraphError(f"{name}: backward returned {len(grads)} gradients for {len(step.needs)} inputs")
    for position, (source, grad) in enumerate(zip(step.inputs, grads, strict=True)):
        if source is None:
            continue
        if isinstance(source, Output):
            shape, dtype = source.record.likeness[source.which]
        else:
            shape, dtype = source.tensor.shape, source.tensor.dtype
        if grad is None or grad.shape != shape:
            got = "no gradient" if grad is None else f"shape {grad.shape}"
            raise GraphError(f"{name}: backward returned {got} for input {position} of shape {shape}")
        if grad.dtype != dtype:
            grad = grad.astype(dtype)
        if isinstance(source, Output):
            pending.add(source, grad)
        else:
            pending.add_leaf(source.tensor, grad)


class _Pending:
    """Gradients on their way: known in part, waiting for the other uses of the same value."""

    def __init__(self) -> None:
        self.grads: dict[tuple[int, int], Array] = {}
        # An op may hand one array to two inputs: only what our own addition made is added into.
        self.own: set[tuple[int, int]] = set()
        self.hooked: dict[int, tuple[Tensor, Array]] = {}  # hooks on a leaf see its total, once

    def add(self, output: Output, grad: Array) -> None:
        key = output.record.place, output.which
        if key not in self.grads:
            self.grads[key] = grad
        elif key in self.own:
            self.grads[key] += grad
        else:
            self.grads[key] = self.grads[key] + grad
            self.own.add(key)

    def take(self, output: Output) -> Array | None:
        return self.grads.pop((output.record.place, output.which), None)

    def add_leaf(self, leaf: Tensor, grad: Array) -> None:
        if leaf.hooks:
            _, before = self.hooked.get(id(leaf), (leaf, None))
            self.hooked[id(leaf)] = (leaf, grad if before is None else before + grad)
        else:
            leaf.accumulate(grad)


def run_hooks(hooks: Iterable[Hook], grad: Array) -> Array:
    """Show `grad` to each hook; a hook that returns an array replaces it."""
    for hook in hooks:
        replacement = hook(grad)
        grad = grad if replacement is None else replacement
    return grad


def fingerprint(array: Array) -> bytes:
    """A few bytes that change when the array does: all of a small array, 64 samples of a large one."""
    flat = array.reshape(-1)
    return flat[:: max(1, flat.size // 64)].tobytes() if flat.size > 256 else flat.tobytes()
