"""Fused gradients: computed during forward, with the value of a loss whose gradient in backward is known."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from chainrule.autograd.mode import switched
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.types import Array, Grads, Needs, Saved
from chainrule.errors import GraphError


@dataclass
class FusedGradient:
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
                f"backward: {self.name} computed its gradients in forward, for one backward() (compute the loss again)"
            )
        if float(dy) != self.dy:
            raise GraphError(
                f"backward: {self.name} computed its gradients in forward for a gradient of {self.dy}, "
                f"and gets {float(dy)} "
                "(set `fused_loss = False` in a model whose loss is a multiple of its cross-entropy)"
            )
        if hooked := [tensor.name for tensor in self.placed if tensor.hooks]:
            raise GraphError(
                f"backward: a hook on {hooked[0]} came after {self.name} had added to its gradient "
                "(register hooks before the loss is computed)"
            )
        self.used = True
        return saved


@dataclass
class KnownGradient:
    """The gradient that a loss will get in backward, and the ops that computed theirs for it."""

    dy: float
    fused: list[FusedGradient] = field(default_factory=list)

    def check(self) -> None:
        """After the backward pass: every fused gradient must have been used."""
        for op in self.fused:
            if not op.used:
                raise GraphError(
                    f"{op.name}: computed its gradients in forward, and backward did not reach it (compute a loss "
                    "that is only looked at under no_grad(), or set `fused_loss = False` in the model)"
                )


class _Known(threading.local):
    gradient: KnownGradient | None = None


known = _Known()


def fused_gradient(dy: float) -> AbstractContextManager[KnownGradient]:
    """Promise that a loss computed inside gets the gradient `dy` in one `backward()`, with no zeroing in between.

    An op with `Op(fused=)` then computes its gradients together with its value, so that nothing is computed twice. The
    gradients of parameters are added before `backward()` is called.
    """
    return switched(known, "gradient", KnownGradient(dy))
