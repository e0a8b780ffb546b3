"""Deferred values: an op that gets its value and its gradients from the same work waits for backward to do both.

loss = linear_cross_entropy(x, W, targets=ids)      checked, not yet computed
loss.backward()                                     value and gradients together
loss.item()                                         there; if read before backward, computed by itself
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from chainrule.autograd.tape import Record, changed, present, record
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.types import Array, Grads, Needs, Saved, Shape
from chainrule.errors import GraphError

if TYPE_CHECKING:
    from chainrule.autograd.op import Op

Both: TypeAlias = Callable[["Array | None", Saved, Needs], tuple[Any, Grads]]


class Together(NamedTuple):
    """How an op computes its value and its gradients together."""

    begin: Callable[..., Saved | None]
    """(*inputs, **constants) -> saved, after all checks; None if waiting for backward saves nothing"""
    reference: Both
    """(dy, saved, needs) -> value, gradients; without dy no gradient is needed"""
    native: Both


class _Waiting:
    """The op of a deferred call, on the tape."""

    recompute: Callable[[Saved], Sequence[Array]] | None = None

    def __init__(self, op: Op) -> None:
        self.op = op
        self.name = op.name
        self.value: Array | None = None

    def run_backward(self, dy: Any, saved: Saved, needs: Needs) -> Grads:
        return self.run(np.asarray(dy), saved, needs)

    def run(self, dy: Array | None, saved: Saved, needs: Needs) -> Grads:
        value, grads = self.op.run_together(dy, saved, needs)
        self.value = np.asarray(value)
        self.value.setflags(write=False)
        return grads


class Deferred(Tensor):
    """A result that is computed when it is first read, or by backward."""

    __slots__ = ("waiting",)
    waiting: _Waiting
    record: Record

    @property
    def array(self) -> Array:  # type: ignore[override]
        if self.waiting.value is None:
            if name := changed(self.record):
                raise GraphError(
                    f"{self.name}: {name} was changed in place before this value was read "
                    "(read it, or call backward(), before you change it)"
                )
            self.waiting.run(None, present(self.record.saved), (False,) * len(self.record.needs))
        assert self.waiting.value is not None
        return self.waiting.value

    @property
    def shape(self) -> Shape:
        return self.record.likeness[0][0]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.record.likeness[0][1]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def defer(op: Op, name: str, args: tuple[Any, ...], saved: Saved, needs: Needs, dtype: Any) -> Deferred:
    """A scalar that waits on the tape to be computed."""
    tensor = Deferred.__new__(Deferred)
    tensor.waiting = _Waiting(op)
    tensor.record = record(tensor.waiting, name, args, [np.empty((), dtype)], True, saved, needs, {})
    tensor.name, tensor.index, tensor.version, tensor.hooks = name, 0, 0, ()
    tensor.grad, tensor._requires_grad = None, True
    return tensor
