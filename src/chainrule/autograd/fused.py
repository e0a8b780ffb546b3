"""Fused gradients: a loss that computes its gradients during forward, for a gradient `dy` known in advance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from chainrule.autograd.mode import mode
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.types import Array, Grads, Needs, Saved
from chainrule.errors import GraphError


@dataclass
class FusedRecord:
    """The record of an op that computed its gradients in forward; `saved` holds those not yet in the flat block."""

    name: str
    dy: float
    placed: tuple[Tensor, ...]
    """Parameters whose gradients are already in the flat block."""
    used: bool = False
    recompute: Callable[[Saved], Sequence[Array]] | None = None

    def run_backward(self, dy: Any, saved: Saved, needs: Needs) -> Grads:
        if self.used:
            raise GraphError(
                f"backward: {self.name} computed its gradients in forward, for one backward() "
                "(compute the loss again)"
            )
        if float(dy) != self.dy:
            raise GraphError(
                f"backward: {self.name} computed its gradients in forward for dy = {self.dy}, "
                f"and backward passes {float(dy)} "
                "(set `fused_gradient = False` in a model whose loss is a multiple of its cross-entropy)"
            )
        if hooked := [tensor.name for tensor in self.placed if tensor.hooks]:
            raise GraphError(
                f"backward: a hook on {hooked[0]} came after {self.name} had added to its gradient "
                "(register hooks before the loss is computed)"
            )
        self.used = True
        return saved


@dataclass
class FusedGradient:
    """A gradient `dy` known in advance, and the ops that used it."""

    dy: float
    records: list[FusedRecord] = field(default_factory=list)

    def check(self) -> None:
        """After the backward pass: every fused gradient must have been used."""
        for op in self.records:
            if not op.used:
                raise GraphError(
                    f"{op.name}: computed its gradients in forward, and backward did not reach it (compute a loss "
                    "without backward under no_grad(), or set `fused_gradient = False` in the model)"
                )


@contextmanager
def fused_gradient(dy: float) -> Iterator[FusedGradient]:
    """Promise that a loss computed inside gets the gradient `dy` in one `backward()`, with no zeroing in between.

    An op with `Op(fused=)` then computes its gradients together with its value, so that nothing is computed twice. The
    gradients of parameters are added before `backward()` is called.
    """
    before, mode.fused = mode.fused, FusedGradient(dy)
    try:
        yield mode.fused
    finally:
        mode.fused = before
