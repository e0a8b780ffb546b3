"""The tape: one record per call of an op, replayed once in reverse order of recording.

Only the tensors that a record produced, and the later records that used them, hold the record. So reference counts free
the part of the tape that no tensor needs. Replaying is a loop over the records, not a recursion: a chain of a million
nodes works.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from chainrule import native
from chainrule.autograd.mode import mode
from chainrule.autograd.recording import contiguous, fail, zeros
from chainrule.autograd.types import Array, Grads, Into, Needs, Saved, Shape
from chainrule.errors import GraphError

if TYPE_CHECKING:
    from chainrule.autograd.tensor import Tensor

Hook: TypeAlias = Callable[[Array], Array | None]
Done: TypeAlias = "Callable[[Tensor], None]"  # told of a leaf whose gradient is complete
Likeness: TypeAlias = "tuple[Shape, np.dtype[Any]]"

_clock = itertools.count()

LARGE = 1 << 21  # bytes: a smaller array is not worth recomputing


def now() -> int:
    """The current place on the tape; later records have higher places."""
    return next(_clock)


USED_UP = (
    "was already used by an earlier backward() and its saved values are freed "
    "(call backward once, or keep them with backward(retain=True))"
)


class Operation(Protocol):
    """The interface of an op that the tape uses."""

    name: str
    recompute: Callable[[Saved], Sequence[Array]] | None  # if not None, there is a run_forward too

    @property
    def nested(self) -> bool: ...  # its backward replays a tape of its own, which may reach any leaf

    def run_backward(self, dy: Array | tuple[Array, ...], saved: Saved, needs: Needs) -> Grads: ...


class Output(NamedTuple):
    """An input that an earlier record computed."""

    record: Record
    which: int


# Where the gradient of an input goes: to the record that computed it, into the `grad` of a leaf, or nowhere.
Source: TypeAlias = "Output | Tensor | None"


class Watched(NamedTuple):
    """An input whose values were saved, with a fingerprint that shows a later change."""

    position: int
    value: Tensor | Array
    version: int
    print: bytes


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
    place: int  # its place on the tape
    watched: tuple[Watched, ...] = ()
    constants: dict[str, Any] | None = None  # kept if the op can be recomputed
    hooks: dict[int, list[Hook]] | None = None  # by output
    spent: bool = False


@dataclass(slots=True, eq=False)
class Recompute:
    """Stands in `saved` for a large output of a cheap op, which backward recomputes."""

    record: Record

    def value(self) -> Array:
        op: Any = self.record.op
        _check(self.record)
        y, _ = op.run_forward(op.recompute(present(self.record.saved)), self.record.constants)
        return np.asarray(y)


def present(saved: Saved) -> Saved:
    """`saved` with recomputed values filled in."""
    return tuple([s.value() if isinstance(s, Recompute) else s for s in saved])


def record(
    op: Operation,
    name: str,
    args: tuple[Any, ...],
    outputs: list[Array],
    single: bool,
    saved: Saved,
    needs: Needs,
    constants: dict[str, Any],
) -> Record:
    """Append one call to the tape."""
    watched = watch(args, (*saved, *outputs))
    inputs: list[Source] = []
    for arg, need in zip(args, needs, strict=True):
        inputs.append(_source(arg) if need else None)
        entry = arg.record if need else None  # do not keep a large array that a cheap op can recompute
        if entry is not None and entry.op.recompute is not None and arg.array.nbytes >= LARGE:
            saved = tuple([Recompute(entry) if s is arg.array else s for s in saved])
    likeness = [(y.shape, y.dtype) for y in outputs]
    kept = constants if op.recompute is not None else None
    return Record(op, name, tuple(inputs), saved, needs, likeness, single, now(), watched, kept)


def _source(tensor: Tensor) -> Source:
    return tensor if tensor.record is None else Output(tensor.record, tensor.index)


def watch(args: tuple[Any, ...], kept: tuple[Any, ...]) -> tuple[Watched, ...]:
    """The inputs that a user could change although `kept` holds them, or views of them, for backward.

    Computed tensors are read-only and need no check.
    """
    found = []
    for position, arg in enumerate(args):
        array = getattr(arg, "array", arg)
        if not isinstance(array, np.ndarray) or not array.flags.writeable:
            continue
        for value in kept:
            base = value.base if isinstance(value, np.ndarray) else None
            if value is array or (base is not None and (base is array or base is array.base)):
                found.append(Watched(position, arg, getattr(arg, "version", 0), fingerprint(arg)))
                break
    return tuple(found)


def replay(
    roots: list[tuple[Source, Array]], *, retain: bool = False, since: int = 0, done: Done | None = None
) -> None:
    """Walk the tape in reverse from `roots` and their gradients, adding to the gradients of the leaves.

    `since` is the oldest place it may reach: a recomputation must not run into the graph around it. `done` is told of
    each leaf once nothing will be added to its gradient any more; not of one that only a recomputation reaches, nor of
    one with hooks.
    """
    pending = _Pending()
    for root, seed in roots:
        pending.add(root, seed)
    tape = _tape(root.record for root, _ in roots if isinstance(root, Output))
    complete = _last_uses(tape) if done is not None else {}
    for number, step in enumerate(tape):
        _check(step, since)
        dy: Any = pending.take(step, 0)
        if not step.single:
            dy = (dy, *[pending.take(step, i) for i in range(1, len(step.likeness))])
        wanted = _wanted(step)
        grads = step.op.run_backward(dy, present(step.saved), wanted)
        _distribute(step, grads, wanted, pending)
        if not retain:
            step.saved, step.inputs, step.watched, step.hooks, step.spent = (), (), (), None, True
        if done is not None:
            for leaf in complete.get(number, ()):
                done(leaf)
    for leaf, grad in pending.hooked.values():
        leaf.accumulate(run_hooks(leaf.hooks, grad))


def _tape(roots: Iterable[Record]) -> list[Record]:
    """All records that the roots depend on, newest first."""
    found = {r.place: r for r in roots}
    stack = list(found.values())
    while stack:
        for source in stack.pop().inputs:
            if isinstance(source, Output) and source.record.place not in found:
                found[source.record.place] = source.record
                stack.append(source.record)
    return [found[place] for place in sorted(found, reverse=True)]


def _last_uses(tape: list[Record]) -> dict[int, list[Tensor]]:
    """The leaves by the number of the record that is the last to add to their gradient."""
    last: dict[int, tuple[int, Tensor]] = {}
    unknown = 0  # up to the last recomputation any leaf may be reached
    for number, step in enumerate(tape):
        unknown = number if step.op.nested else unknown
        for source in step.inputs:
            if source is not None and not isinstance(source, Output) and not source.hooks:
                last[id(source)] = number, source
    complete: dict[int, list[Tensor]] = {}
    for number, leaf in last.values():
        complete.setdefault(max(number, unknown), []).append(leaf)
    return complete


def _check(step: Record, since: int = 0) -> None:
    if step.spent:
        raise GraphError(f"backward: {step.name} {USED_UP}")
    if step.place < since:
        raise GraphError(
            f"backward: {step.name} was computed outside checkpoint() (pass its result as an argument)"
        )
    if step.watched and (name := changed(step)):
        raise GraphError(
            f"backward: {name} was changed in place after {step.name} saved it "
            "(change values after backward(), or work on a copy)"
        )


def changed(step: Record) -> str:
    """The name and shape of an input that was changed after the call; empty if none was."""
    for position, value, version, before in step.watched:
        if (version, before) != (getattr(value, "version", 0), fingerprint(value)):
            return f"{getattr(value, 'name', '') or f'input {position}'} of shape {value.shape}"
    return ""


def _wanted(step: Record) -> Needs:
    """The gradients that backward must return, with the place in the flat block for parameters."""
    wanted = list(step.needs)
    for position, source in enumerate(step.inputs):
        if source is not None and not isinstance(source, Output):
            wanted[position] = source.into() or True
    return tuple(wanted)


def _distribute(step: Record, grads: Grads, wanted: Needs, pending: _Pending) -> None:
    name = step.op.name
    if not isinstance(grads, tuple):
        raise GraphError(
            f"{name}: backward returned {type(grads).__name__} (must be a tuple, one gradient per input)"
        )
    if len(grads) != len(step.needs):
        raise GraphError(f"{name}: backward returned {len(grads)} gradients for {len(step.needs)} inputs")
    for position, source in enumerate(step.inputs):
        grad, want = grads[position], wanted[position]
        if source is None or (isinstance(want, Into) and grad is want.place):
            continue
        if isinstance(source, Output):
            shape, dtype = source.record.likeness[source.which]
        else:
            shape, dtype = source.shape, source.dtype
        if grad is None or grad.shape != shape:
            got = "no gradient" if grad is None else f"shape {grad.shape}"
            raise GraphError(f"{name}: backward returned {got} for input {position} of shape {shape}")
        # NumPy turns arrays without axes into numbers; kernels take arrays.
        pending.add(source, np.asarray(grad, dtype))


class _Pending:
    """Partial gradients, until all uses of a value have added theirs."""

    def __init__(self) -> None:
        self.grads: dict[tuple[int, int], Array] = {}
        # An op may return one array for two inputs: only add in place into our own sums.
        self.own: set[tuple[int, int]] = set()
        self.hooked: dict[int, tuple[Tensor, Array]] = {}  # hooks on a leaf see its total gradient, once

    def add(self, source: Source, grad: Array) -> None:
        if isinstance(source, Output):
            key = source.record.place, source.which
            if key not in self.grads:
                self.grads[key] = grad
            else:
                total = self.grads[key]
                self.grads[key] = add(total, grad, out=total if key in self.own else None)
                self.own.add(key)
        elif source is None:
            return
        elif source.hooks:
            _, before = self.hooked.get(id(source), (source, None))
            self.hooked[id(source)] = (source, grad if before is None else before + grad)
        else:
            source.accumulate(grad)

    def take(self, step: Record, index: int) -> Array:
        """The gradient of output `index`, as its hooks change it; zeros if nothing was added."""
        dy = self.grads.pop((step.place, index), None)
        if dy is None:
            return zeros(*step.likeness[index])
        return run_hooks(step.hooks.get(index, ()), dy) if step.hooks else dy


def add(a: Array, b: Array, out: Array | None) -> Array:
    """a + b, into `out` if given; large arrays on all threads."""
    if mode.recording is not None:
        a, b = contiguous(a), contiguous(b)
    if (
        (a.nbytes >= LARGE or mode.recording is not None)
        and mode.backend == "native"
        and native.available()
        and a.dtype == b.dtype == np.float32
        and a.flags.c_contiguous
        and b.flags.c_contiguous
        and (out is None or out.flags.c_contiguous)
    ):
        out = native.empty_like(a) if out is None else out
        native.kernels().add(out, a, b)
        return out
    fail("a sum of gradients by NumPy")
    return np.add(a, b, out=out)


def run_hooks(hooks: Iterable[Hook], grad: Array) -> Array:
    """Call each hook with `grad`; an array it returns replaces the gradient."""
    for hook in hooks:
        fail("a hook")
        replacement = hook(grad)
        if replacement is not None:
            if np.shape(replacement) != grad.shape:
                raise GraphError(
                    f"hook: returned shape {np.shape(replacement)} for a gradient of shape {grad.shape}"
                )
            grad = np.asarray(replacement, dtype=grad.dtype)
    return grad


def source_of(tensor: Tensor) -> Source:
    """Where the gradient of `tensor` goes: to its record, to itself if it is a leaf, or nowhere."""
    return _source(tensor) if tensor.requires_grad else None


def gradient(tensor: Tensor) -> Array:
    """The gradient of a leaf after a replay: zeros if none came back."""
    return zeros(tensor.shape, tensor.dtype) if tensor.grad is None else tensor.grad


def fingerprint(value: Tensor | Array) -> bytes:
    """A few bytes that change with the values: a hash of all of them up to a megabyte, of 64 samples beyond.

    Parameters of a flat block need none: every assignment and optimizer step increases the version.
    """
    if getattr(value, "block", None) is not None:
        return b""
    array: Any = getattr(value, "array", value)
    flat = array.reshape(-1)
    if flat.nbytes > 1 << 20:
        flat = flat[:: flat.size // 64]
    return zlib.crc32(flat.tobytes()).to_bytes(4, "little")
