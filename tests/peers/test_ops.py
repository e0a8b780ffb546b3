"""Every op against PyTorch, forward and gradient: on its own examples and at realistic sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr
from chainrule import native
from chainrule.autograd import Example, Op, backend
from tests.battery import checks as battery
from tests.peers.larger import LARGER
from tests.peers.torch_ops import PEERS

OPS = cr.ops.all_ops()
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}
Pairs = list[tuple[np.ndarray, np.ndarray]]  # (ours, PyTorch's)


def as_torch(value: Any, dtype: torch.dtype) -> Any:
    """Arrays as tensors, also inside an index tuple; floats in `dtype`."""
    if isinstance(value, tuple):
        return tuple(as_torch(part, dtype) for part in value)
    if not isinstance(value, np.ndarray | np.floating):
        return value
    tensor = torch.tensor(np.array(value, order="C"))
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def run_peer(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], seeds: list[np.ndarray], dtype: torch.dtype
) -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
    """What `battery.run` does, with PyTorch: (values, gradients by position)."""
    tensors = [as_torch(arg, dtype) for arg in args]
    leaves = {i: tensors[i].requires_grad_() for i, arg in enumerate(args) if battery.is_float(arg)}
    constants = {key: as_torch(value, dtype) for key, value in kwargs.items()}
    ys = battery.outputs(PEERS[name](*tensors, **constants))
    torch.autograd.backward(ys, [torch.tensor(v) for v in seeds])
    return [y.detach().numpy() for y in ys], {i: leaf.grad.numpy() for i, leaf in leaves.items()}


def both(op: Op, example: Example, dtype: str) -> tuple[Pairs, Pairs]:
    """Values and gradients, ours beside PyTorch's, for the same inputs and upstream gradients."""
    args = tuple(np.asarray(a, dtype=dtype) if battery.is_float(a) else a for a in example.args)
    values, grads, seeds = battery.run(op, args, example.kwargs)
    expected, expected_grads = run_peer(op.name, args, example.kwargs, seeds, getattr(torch, dtype))
    gradients = [(grads[i], want) for i, want in expected_grads.items()]
    return list(zip(values, expected, strict=True)), gradients


def distances(op: Op, example: Example, dtype: str) -> tuple[float, float]:
    """How far values and gradients are from PyTorch's."""
    values, gradients = both(op, example, dtype)
    return relative(values), relative(gradients)


def relative(pairs: Pairs) -> float:
    """The largest difference relative to the largest wanted value: small gradients have a small scale."""
    assert all(np.isfinite(want).all() for _, want in pairs), "PyTorch gives no number to compare with"
    scale = max(float(np.abs(want).max(initial=0)) for _, want in pairs) or 1.0
    return max(battery.distance(got.astype(float) / scale, want / scale) for got, want in pairs)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", OPS)
def test_op(name: str, dtype: str, record_property) -> None:
    op = OPS[name]
    forward = gradient = 0.0
    for chosen in ["reference", "native"] if op.native and native.available() else ["reference"]:
        for example in battery.examples(op) + LARGER[name](np.random.default_rng(7)):
            with backend(chosen):
                f, g = distances(op, example, dtype)
            shapes = [np.shape(arg) for arg in example.args]
            assert f <= TOLERANCE[dtype], f"{name} {shapes} {chosen}: values differ by {f:.2e}"
            assert g <= TOLERANCE[dtype], f"{name} {shapes} {chosen}: gradients differ by {g:.2e}"
            forward, gradient = max(forward, f), max(gradient, g)
    record_property("peer", (name, dtype, forward, gradient))


def test_no_op_escapes() -> None:
    """Every op has a peer and inputs of realistic size, and no entry is left behind by an op that is gone."""
    assert PEERS.keys() == OPS.keys()
    assert LARGER.keys() == OPS.keys()


@pytest.mark.parametrize("wrong", [lambda y: y * 1.0001, lambda y: y + 3e-5])
def test_a_wrong_op_is_caught(wrong: Any) -> None:
    softmax = OPS["softmax"]

    def forward(x: np.ndarray, **kwargs: Any):
        y, saved = softmax.forward(x, **kwargs)
        return wrong(y), saved

    def backward(dy: np.ndarray, saved: Any, needs: Any):
        return tuple(wrong(dx) for dx in softmax.backward(dy, saved, needs))

    example = battery.examples(softmax)[0]
    assert distances(Op("softmax", forward, softmax.backward, softmax.example), example, "float32")[0] > 1e-5
    assert distances(Op("softmax", softmax.forward, backward, softmax.example), example, "float32")[1] > 1e-5


EDGES = np.array([-1.0, 0.0, 1.0])
KINKS = {
    "relu": [Example((EDGES,)), Example((EDGES,), {"at_zero": 1.0})],
    "leaky_relu": [Example((EDGES,))],
    "prelu": [Example((EDGES, np.array(0.25)))],
    "elu": [Example((EDGES,), {"alpha": 2.0})],
    "softmax": [Example((EDGES,), {"clip": (-1.0, 1.0)})],
    "mae": [Example((EDGES, np.zeros(3)))],
    "huber": [Example((EDGES, np.zeros(3)))],
    "pow": [Example((np.array([0.0, 2.0]), np.array(2.0)))],
    # as torch.amax: equal maxima share the gradient; torch.max(dim=...) gives it all to one of them
    "max": [Example((np.array([[2.0, 5.0, 5.0], [1.0, 1.0, 1.0]]),), {"axis": 1})],
}


@pytest.mark.parametrize("name", KINKS)
def test_same_choice_where_there_is_no_derivative(name: str) -> None:
    for example in KINKS[name]:
        assert max(distances(OPS[name], example, "float64")) <= 1e-15


SATURATING = ["sigmoid", "tanh", "softplus", "log_sigmoid", "silu", "gelu", "gelu_tanh", "elu"]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", SATURATING)
def test_far_out(name: str, dtype: str) -> None:
    """Where exponentials overflow or vanish, one number at a time."""
    far = np.array([15.0, 20.0, 50.0, 90.0, 750.0, 1e4])
    for x in np.concatenate([-far, far]):
        values, gradients = both(OPS[name], Example((x,)), dtype)
        assert max(battery.distance(*pair) for pair in values + gradients) <= TOLERANCE[dtype], x
