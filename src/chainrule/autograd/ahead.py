"""Gradients made ahead: with the value of a loss, where it is known what it will get in the backward pass."""

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
class Made:
    """On the tape instead of an op whose gradients were made with its value: those not in their place are `saved`."""

    name: str
    dy: float
    placed: tuple[Tensor, ...]
    """Parameters whose gradients are in the flat block already."""
    used: bool = False
    again: Callable[[Saved], Sequence[Array]] | None = None

    def run_backward(self, dy: Any, saved: Saved, needs: Needs) -> Grads:
        if self.used:
            raise GraphError(
                f"backward: {self.name} made its gradients ahead, for one backward() (compute the loss again)"
            )
        if float(dy) != self.dy:
            raise GraphError(
                f"backward: {self.name} made its gradients for a gradient of {self.dy}, and gets {float(dy)} "
                "(set `foreseeable = False` in a model whose loss is a multiple of its cross-entropy)"
            )
        if hooked := [tensor.name for tensor in self.placed if tensor.hooks]:
            raise GraphError(
                f"backward: a hook on {hooked[0]} came after {self.name} had added to its gradient "
                "(register hooks before the loss is computed)"
            )
        self.used = True
        return saved


@dataclass
class Foreseen:
    """A gradient that is known beforehand, and the ops that made theirs for it."""

    dy: float
    made: list[Made] = field(default_factory=list)

    def check(self) -> None:
        """After the backward pass: all that was made was wanted."""
        for op in self.made:
            if not op.used:
                raise GraphError(
                    f"{op.name}: made its gradients ahead, and backward did not reach it (compute a loss that is only "
                    "looked at under no_grad(), or set `foreseeable = False` in the model)"
                )


@contextmanager
def foreseen(dy: float) -> Iterator[Foreseen]:
    """A loss computed inside will get the gradient `dy`, by one `backward()`, and gradients are not zeroed before that.

    So an op that says how (`Op(ahead=)`) makes its gradients together with its value, and what would be computed twice
    is computed once. The gradients of parameters are added before `backward()` is called.
    """
    before, mode.foreseen = mode.foreseen, Foreseen(dy)
    try:
        yield mode.foreseen
    finally:
        mode.foreseen = before
