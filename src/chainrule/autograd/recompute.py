"""Activation checkpointing: drop what a part of the model saved, and recompute it in backward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainrule import random
from chainrule.autograd.mode import enable_grad, mode, no_grad, switched
from chainrule.autograd.tape import gradient, now, record, replay, source_of
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.types import Array, Grads, Needs, Saved


class _Recomputed:
    """The record of one checkpointed call: it saves only the inputs, and its backward runs the function once more."""

    name = "checkpoint"
    recompute: Callable[[Saved], Sequence[Array]] | None = None
    nested = True

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.fn = fn
        self.args = args
        self.draws = random.position()  # the second run must draw the same dropout masks
        self.scope = mode.scope

    def run_backward(self, dy: Any, saved: Saved, needs: Needs) -> Grads:
        inputs = [
            _leaf(array, bool(need)) if isinstance(arg, Tensor) else arg
            for arg, array, need in zip(self.args, saved, needs, strict=True)
        ]
        start = now()
        with switched(mode, "scope", self.scope), enable_grad(), random.replay(self.draws):
            outputs = self.fn(*inputs)
        several = isinstance(outputs, tuple)
        pairs = zip(outputs if several else (outputs,), dy if several else (dy,), strict=True)
        replay([(source_of(y), grad) for y, grad in pairs], since=start)
        return tuple(gradient(tensor) if need else None for tensor, need in zip(inputs, needs, strict=True))


def _leaf(array: Any, need: bool) -> Tensor:
    tensor = Tensor.wrap(array)
    tensor.requires_grad = need
    return tensor


def checkpoint(fn: Callable[..., Any], *args: Any) -> Any:
    """`fn(*args)`, saving only `args`: less memory, for a second forward pass in backward.

    Every tensor that `fn` differentiates through must be in `args` or be a parameter.

    >>> import chainrule as cr
    >>> x = cr.Tensor([1.0, 2.0], requires_grad=True)
    >>> cr.checkpoint(lambda t: (t * t).sum(), x).backward()
    >>> x.grad
    array([2., 4.], dtype=float32)
    """
    if mode.interventions:  # which count the calls of one pass: nothing is called twice
        return fn(*args)
    call = _Recomputed(fn, args)
    with no_grad():
        outputs = fn(*args)
    if not mode.grad:
        return outputs
    single = not isinstance(outputs, tuple)
    values = [y.array for y in ((outputs,) if single else outputs)]
    arrays = tuple(a.array if isinstance(a, Tensor) else None for a in args)
    needs = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
    name = f"{mode.scope}.checkpoint" if mode.scope else "checkpoint"
    entry = record(call, name, args, values, single, arrays, needs, {})
    results = tuple(Tensor.recorded(y, entry, i) for i, y in enumerate(values))
    return results[0] if single else results
