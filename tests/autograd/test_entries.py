"""The gradient check entry by entry: right gradients pass, and a wrong one is found where it is."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule import ops
from chainrule.autograd import Op, check_entries
from chainrule.errors import ShapeError


def test_every_entry_of_every_input() -> None:
    rng = np.random.default_rng(0)
    x, W, b = rng.normal(size=(2, 3)), rng.normal(size=(4, 3)), rng.normal(size=4)
    dy = rng.normal(size=(2, 4))
    check = check_entries(ops.linear, x, W, b, seeds=[dy])
    assert np.allclose(check.outputs[0], x @ W.T + b)
    for grad, difference, exact in zip(
        check.grads, check.differences, (dy @ W, dy.T @ x, dy.sum(0)), strict=True
    ):
        assert np.allclose(grad, exact) and np.allclose(difference, exact)
    assert check.error < 1e-9


def test_inputs_that_are_not_floats_have_no_gradient() -> None:
    check = check_entries(ops.where, np.array([True, False]), np.ones(2), np.zeros(2))
    assert check.grads[0] is None and check.differences[0] is None


def test_a_wrong_entry_is_found() -> None:
    def backward(dy, saved, needs):
        dx = 2 * dy * saved[0]
        dx[1] += 0.5
        return (dx,)

    wrong = Op("wrong", lambda x: (x * x, (x,)), backward, lambda rng: iter(()))
    check = check_entries(wrong, np.array([1.0, 2.0, 3.0]))
    assert np.abs(check.grads[0] - check.differences[0]).argmax() == 1
    assert check.error > 0.05


def test_seeds_must_fit() -> None:
    with pytest.raises(ShapeError, match=r"seeds \(3,\) \(must be as the outputs: \(2,\)"):
        check_entries(ops.exp, np.ones(2), seeds=[np.ones(3)])
