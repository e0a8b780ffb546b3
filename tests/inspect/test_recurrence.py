"""Gradients through time, measured: Jacobians, their products, what vanishes, what explodes, what passes."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule import nn
from chainrule.errors import ShapeError
from chainrule.inspect import spectrum
from chainrule.inspect.recurrence import cell_path, gradient_norms, products, step_jacobians
from tests.vectors import vector

CELLS = [nn.RNN, nn.GRU, nn.LSTM]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.requirement("R-236")
def test_the_product_of_the_steps_is_that_of_the_seed() -> None:
    inputs = vector("004-6.3-rnn-h3").inputs
    layer = nn.RNN(1, 2).to(np.float64)
    layer.weight_h.data[...] = inputs["Wh"]
    layer.weight_x.data[...] = np.array(inputs["Wx"])[:, None]
    x = np.array(inputs["x"], float)[:, None]
    jacobians = step_jacobians(layer, x)
    states = layer(x[None])[0].numpy()[0]
    for J, h in zip(jacobians, states, strict=True):
        np.testing.assert_allclose(J, np.diag(1 - h**2) @ inputs["Wh"], rtol=1e-12)
    v = vector("der-rnn-bptt")
    v.check({"dh3_dh1": products(jacobians)[1]}, keys=["dh3_dh1"])
    assert not np.allclose(
        products(jacobians)[1], jacobians[1] @ jacobians[2]
    )  # the other order is another matrix


@pytest.mark.parametrize("cell", CELLS)
def test_the_product_is_the_gradient_of_back_propagation(cell: type) -> None:
    layer, x, gradient = cell(3, 4), normal(6, 3), normal(4, seed=1)
    S = 8 if cell is nn.LSTM else 4
    chain = products(step_jacobians(layer, x))
    assert chain.shape == (7, S, S) and (chain[-1] == np.eye(S)).all()
    seed = np.concatenate([gradient, np.zeros(S - 4)])
    expected = [np.linalg.norm(seed @ P) for P in chain]
    np.testing.assert_allclose(gradient_norms(layer, x, gradient), expected, rtol=1e-10)


def test_measuring_leaves_the_layer_alone() -> None:
    layer = nn.GRU(3, 4)
    block = layer.parameters()
    before = layer.state()
    step_jacobians(layer, normal(3, 3))
    gradient_norms(layer, normal(3, 3))
    assert layer.parameters() is block and not block.grad.any()
    assert all(p.requires_grad and p.dtype == np.float32 for p in block.values())
    assert all(np.array_equal(value, before[name]) for name, value in layer.state().items())
    with pytest.raises(ShapeError, match=r"recurrence: x has shape \(0, 3\)"):
        step_jacobians(layer, np.zeros((0, 3)))


@pytest.mark.requirement("R-237", "R-238")
def test_at_rest_the_eigenvalues_decide() -> None:
    """Without input tanh has slope 1 at the state 0, and the product is a power of W_h."""
    v = vector("004-6.4.2-powers-49")
    layer = nn.RNN(1, 2).to(np.float64)
    layer.weight_h.data[...] = np.diag(v.inputs["base"])
    assert spectrum(layer.weight_h.array).radius == pytest.approx(1.1)
    v.check(np.diag(products(step_jacobians(layer, np.zeros((49, 1))))[0]))


@pytest.mark.requirement("R-242")
def test_the_cell_of_an_lstm_is_a_highway() -> None:
    layer = nn.LSTM(2, 3).to(np.float64)
    x = normal(100, 2)
    f, direct = forget_gates(layer, x), cell_path(step_jacobians(layer, x))
    np.testing.assert_allclose(direct[-2], np.diag(f[-1]), rtol=1e-12)  # one step: diag(f), and nothing else
    np.testing.assert_allclose(direct[0], np.diag(f.prod(axis=0)), rtol=1e-10)
    total = products(step_jacobians(layer, x))[-2][3:, 3:]
    np.testing.assert_allclose(total, direct[-2], rtol=1e-12)  # the gates see the cell a step later
    assert np.abs(products(step_jacobians(layer, x))[-3][3:, 3:] - direct[-3]).max() > 1e-3

    layer.bias.data[...] = np.repeat([-1000.0, 1000.0, 0.0, 0.0], 3)  # i = 0, f = 1: the cell is copied
    jacobians = step_jacobians(layer, x)
    assert (cell_path(jacobians)[0] == np.eye(3)).all()
    assert (products(jacobians)[0][3:, 3:] == np.eye(3)).all()


def forget_gates(layer: nn.LSTM, x: np.ndarray) -> np.ndarray:
    """f of every step (T, H), by the formula."""
    states = np.concatenate([np.zeros((1, 3)), layer(x[None])[0].numpy()[0, :-1]])
    gates = x @ layer.weight_x.array.T + states @ layer.weight_h.array.T + layer.bias.array
    return 1 / (1 + np.exp(-gates[:, 3:6]))
