"""Two gradient checkers, one verdict: ours by random projection, PyTorch's entry by entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd.gradcheck import GradcheckError

import chainrule as cr
from chainrule.autograd import Op

Backward = Callable[[Any, Any, Any], tuple[Any, Any]]

X, W = np.random.default_rng(0).normal(size=(2, 4, 3))


# Backward passes of y = x³ w; plain arithmetic, so the same function serves both frameworks.
def right(dy: Any, x: Any, w: Any) -> tuple[Any, Any]:
    return dy * 3 * x**2 * w, dy * x**3


def scaled(dy: Any, x: Any, w: Any) -> tuple[Any, Any]:
    return dy * 3.01 * x**2 * w, dy * x**3


def wrong_sign(dy: Any, x: Any, w: Any) -> tuple[Any, Any]:
    return dy * 3 * x**2 * w, -dy * x**3


def forgets_a_factor(dy: Any, x: Any, w: Any) -> tuple[Any, Any]:
    return dy * 3 * x**2, dy * x**3


def wrong_row(dy: Any, x: Any, w: Any) -> tuple[Any, Any]:
    return (dy * 3 * x**2 * w)[[1, 0, 2, 3]], dy * x**3


def ignores_upstream(dy: Any, x: Any, w: Any) -> tuple[Any, Any]:
    return 3 * x**2 * w, dy * x**3


def ours(backward: Backward) -> bool:
    def forward(x: Any, w: Any) -> Any:
        return x**3 * w, (x, w)

    op = Op("cube", forward, lambda dy, saved, needs: backward(dy, *saved), lambda rng: ())
    try:
        return cr.gradcheck(op, X, W) <= 1e-6
    except cr.errors.GradientError:
        return False


def theirs(backward: Backward) -> bool:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x, w)
            return x**3 * w

        @staticmethod
        def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return backward(dy, *ctx.saved_tensors)

    inputs = [torch.tensor(a, requires_grad=True) for a in (X, W)]
    try:
        return torch.autograd.gradcheck(Cube.apply, inputs)
    except GradcheckError:
        return False


WRONG = [scaled, wrong_sign, forgets_a_factor, wrong_row, ignores_upstream]


@pytest.mark.parametrize("backward", [right, *WRONG])
def test_same_verdict(backward: Backward) -> None:
    assert ours(backward) == theirs(backward) == (backward is right)


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "softmax of a product": (lambda x, w: cr.ops.softmax(x @ w.T), lambda x, w: torch.softmax(x @ w.T, -1)),
    "layer norm, then a bend": (
        lambda x, w: cr.ops.gelu(cr.ops.layernorm(x, w[0], w[1])),
        lambda x, w: torch.nn.functional.gelu(torch.nn.functional.layer_norm(x, (3,), w[0], w[1])),
    ),
    "two outputs": (
        lambda x, w: (x * w, (x / (w * w + 1.0)).sum()),
        lambda x, w: (x * w, (x / (w * w + 1.0)).sum()),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_both_accept_what_is_right(name: str) -> None:
    f, g = FUNCTIONS[name]
    assert cr.gradcheck(f, X, W) <= 1e-6
    assert torch.autograd.gradcheck(g, [torch.tensor(a, requires_grad=True) for a in (X, W)])
