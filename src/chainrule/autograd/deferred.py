"""Deferred values: an op that gets its value and its gradients from the same work waits for backward to do both.

loss = linear_cross_entropy(x, W, targets=ids)      checked, not yet computed
loss.backward()                                     value and gradients together
loss.item()                                         there; if read before backward, computed by itself
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from chainrule.autograd.mode import backend, mode, precision
from chainrule.autograd.tape import Record, changed, present, record
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.types import Array, Grads, Needs, Saved, Shape
from chainrule.errors import GraphError

if TYPE_CHECKING:
    from chainrule.autograd.op import Op

Compute: TypeAlias = Callable[["Array | None", Saved, Needs], tuple[Any, Grads]]


class ValueAndGrad(NamedTuple):
    """How an op computes its value and its gradients in one pass."""

    prepare: Callable[..., Saved | None]
    """(*inputs, **constants) -> saved, after all checks; None if waiting for backward saves nothing"""
    reference: Compute
    """(dy, saved, needs) -> value, gradients; without dy the value alone"""
    native: Compute


class _DeferredCall:
    """The op of a deferred call, on the tape; it runs with the backend and precision that were set at the call."""

    recompute: Callable[[Saved], Sequence[Array]] | None = None
    nested = False

    def __init__(self, op: Op) -> None:
        self.op = op
        self.name = op.name
        self.backend, self.precision = mode.backend, mode.precision
        self.value: Array | None = None

    def run_backward(self, dy: Any, saved: Saved, needs: Needs) -> Grads:
        return self.compute(np.asarray(dy), saved, needs)

    def compute(self, dy: Array | None, saved: Saved, needs: Needs) -> Grads:
        with backend(self.backend), precision(self.precision):
            value, grads = self.op.run_value_and_grad(dy, saved, needs)
        self.value = np.asarray(value)
        self.value.setflags(write=False)
        return grads


class Deferred(Tensor):
    """A result that is computed when it is first read, or by backward."""

    __slots__ = ("call",)
    call: _DeferredCall
    record: Record

    @property
    def array(self) -> Array:  # type: ignore[override]
        call, entry = self.call, self.record
        if call.value is None:
            if name := changed(entry):
                raise GraphError(
                    f"{self.name}: {name} was changed in place before this value was read "
                    "(read it, or call backward(), before you change it)"
                )
            call.compute(None, present(entry.saved), (False,) * len(entry.needs))
        return call.value  # type: ignore[return-value]

    @property
    def shape(self) -> Shape:
        return self.record.likeness[0][0]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.record.likeness[0][1]


def defer(op: Op, name: str, args: tuple[Any, ...], saved: Saved, needs: Needs, dtype: Any) -> Deferred:
    """A scalar that waits on the tape to be computed."""
    tensor = Deferred.__new__(Deferred)
    tensor._begin(name)
    tensor.call = _DeferredCall(op)
    tensor.record = record(tensor.call, name, args, [np.empty((), dtype)], True, saved, needs, {})
    tensor._requires_grad = True
    return tensor
