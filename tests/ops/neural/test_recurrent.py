"""Recurrent cells: the worked examples of the seeds, through time, and how gradients fare over many steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ConfigError, ShapeError
from chainrule.ops import gru_cell, gru_sequence, lstm_cell, lstm_sequence, rnn_cell, rnn_sequence
from tests.vectors import vector


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def unroll(xs: Any, h: Any, W_x: Any, W_h: Any, b: Any = None) -> list[Any]:
    """The states of a plain RNN over xs (T, ..., X)."""
    states = []
    for x in xs:
        h = rnn_cell(x, h, W_x, W_h, b)
        states.append(h)
    return states


def jacobian(h: np.ndarray, xs: np.ndarray, *weights: np.ndarray) -> np.ndarray:
    """dh_T / dh_0 from the tape, one output at a time."""
    rows = []
    for seed in np.eye(len(h)):
        start = cr.Tensor(h, requires_grad=True)
        unroll(xs, start, *weights)[-1].backward(seed)
        rows.append(start.grad)
    return np.array(rows)


# -- plain ---------------------------------------------------------------------------------------------------


def section_6_3(id: str) -> tuple[np.ndarray, list[np.ndarray]]:
    """xs (T, 1), and h0, W_x, W_h, b of the worked example."""
    inputs = {name: np.array(value, dtype=float) for name, value in vector(id).inputs.items()}
    return inputs["x"][:, None], [inputs["h0"], inputs["Wx"][:, None], inputs["Wh"], inputs["b"]]


@pytest.mark.requirement("R-233")
def test_rnn_forward() -> None:
    xs, arrays = section_6_3("004-6.3-rnn-h1")
    states = unroll(xs, *arrays)
    z = np.arctanh(states)
    vector("004-6.3-rnn-h1").check({"z": z[0], "h": states[0]})
    vector("004-6.3-rnn-z2").check(z[1])
    vector("004-6.3-rnn-h2").check(states[1])
    vector("004-6.3-rnn-z3").check(z[2])
    vector("004-6.3-rnn-h3").check(states[2])


@pytest.mark.requirement("R-235", "R-236", "R-360")
def test_rnn_through_time() -> None:
    v = vector("der-rnn-bptt")
    xs, arrays = section_6_3(v.id)
    h0, W_x, W_h, b = tensors = [cr.Tensor(a, requires_grad=True) for a in arrays]
    states = unroll(xs, *tensors)
    states[2].backward(v.inputs["grad_h3"])
    assert W_x.grad is not None

    product = np.eye(2)
    for h in states[1:]:  # step Jacobians in order, the last on the left
        product = np.diag(1 - h.numpy() ** 2) @ W_h.numpy() @ product
    np.testing.assert_allclose(jacobian(states[0].numpy(), xs[1:], *arrays[1:]), product, rtol=1e-12)
    v.check({"dWh": W_h.grad, "dWx": W_x.grad[:, 0], "db": b.grad, "dh0": h0.grad, "dh3_dh1": product})


@pytest.mark.requirement("R-235")
def test_rnn_loss_at_every_step() -> None:
    """A weight's gradient is the sum over the steps that used it, each with the total derivative there."""
    xs, h0, W_x, W_h = normal(4, 2, 3), normal(2, 5), normal(5, 3, seed=1), normal(5, 5, seed=2)
    seeds = normal(4, 2, 5, seed=3)
    assert cr.gradcheck(lambda *args: tuple(unroll(xs, *args)), h0, W_x, W_h) < 1e-6

    weight = cr.Tensor(W_h, requires_grad=True)
    states = unroll(xs, h0, W_x, weight)
    cr.ops.sum(sum(h * g for h, g in zip(states, seeds, strict=True))).backward()
    total, arriving = np.zeros_like(W_h), np.zeros((2, 5))
    for t in reversed(range(4)):
        previous = states[t - 1].numpy() if t else h0
        dz = (seeds[t] + arriving) * (1 - states[t].numpy() ** 2)
        total += dz.T @ previous
        arriving = dz @ W_h
    assert weight.grad is not None
    np.testing.assert_allclose(weight.grad, total, rtol=1e-12)


@pytest.mark.requirement("R-234")
def test_any_length_with_the_same_parameters() -> None:
    W_x, W_h = cr.Tensor(normal(5, 3)), cr.Tensor(normal(5, 5, seed=1))
    for T in (1, 5, 50):
        with cr.capture("rnn_cell") as calls:
            states = unroll(normal(T, 3), np.zeros(5), W_x, W_h)
        assert len(calls) == len(states) == T  # one call per step: the cost is linear in T
        assert states[-1].shape == (5,)


# -- many steps ----------------------------------------------------------------------------------------------


def at_rest(W_h: np.ndarray, steps: int) -> np.ndarray:
    """dh_T / dh_0 at h = 0 without input, where tanh has slope 1: exactly the power of W_h."""
    H = len(W_h)
    return jacobian(np.zeros(H), np.zeros((steps, 1)), np.zeros((H, 1)), W_h)


@pytest.mark.requirement("R-238")
@pytest.mark.parametrize("id", ["004-6.4.2-powers-49", "004-6.4.2-powers-100"])
def test_gradient_is_a_power_of_the_eigenvalues(id: str) -> None:
    v = vector(id)
    J = at_rest(np.diag(v.inputs["base"]), v.inputs["n"])
    v.check(np.diag(J))
    assert J[0, 1] == J[1, 0] == 0


@pytest.mark.requirement("R-237")
def test_eigenvalues_decide() -> None:
    turn = np.array([[np.cos(1.0), -np.sin(1.0)], [np.sin(1.0), np.cos(1.0)]])  # |λ| = 1, diagonalizable
    norms = {size: np.linalg.norm(at_rest(size * turn, 200)) for size in (0.9, 1.0, 1.1)}
    assert norms[0.9] < 1e-8 and norms[1.1] > 1e8
    assert norms[1.0] == pytest.approx(np.sqrt(2), rel=1e-12)
    shear = np.array([[1.0, 1.0], [0.0, 1.0]])  # λ = 1 twice, not diagonalizable: it grows (E-004-15)
    assert at_rest(shear, 50)[0, 1] == 50


@pytest.mark.requirement("R-239")
@pytest.mark.parametrize("s, low, high", [(1.0, 0.0, 1e-4), (3.0, 100.0, np.inf)])
def test_gradients_of_random_networks(s: float, low: float, high: float) -> None:
    """tanh' <= 1: gradients vanish at the scale that keeps a linear network level; thrice that explodes."""
    ratios = []
    for seed in range(9):
        rng = np.random.default_rng(seed)
        xs, W_h = rng.normal(0, 0.5, size=(50, 32)), rng.normal(0, s / np.sqrt(32), size=(32, 32))
        start = cr.Tensor(np.zeros(32), requires_grad=True)
        gradient = rng.normal(size=32)
        unroll(xs, start, np.eye(32), W_h)[-1].backward(gradient)
        assert start.grad is not None
        ratios.append(np.linalg.norm(start.grad) / np.linalg.norm(gradient))
    assert low < np.median(ratios) < high


# -- LSTM ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-241", "R-360")
def test_lstm_step() -> None:
    v = vector("der-lstm-step")
    h, c, x = (np.array(v.inputs[name]) for name in "hcx")
    gates = ("i", "f", "c", "o")  # our order; the seed's candidate is called c
    W = np.concatenate([v.inputs["W"][gate] for gate in gates])  # (4H, H + X)
    b = np.concatenate([v.inputs["b"][gate] for gate in gates])
    (h_new, c_new), saved = lstm_cell.forward(x, h, c, W[:, 2:], W[:, :2], b)
    i, f, g, o = saved[5:9]
    v.check({"f": f, "i": i, "o": o, "c_tilde": g, "c": c_new, "h": h_new})


@pytest.mark.requirement("R-243", "R-360")
def test_lstm_through_time() -> None:
    xs = normal(5, 2, 3)

    def run(h: Any, c: Any, W_x: Any, W_h: Any, b: Any) -> Any:
        for x in xs:
            h, c = lstm_cell(x, h, c, W_x, W_h, b)
        return h, c

    arrays = [normal(*shape, seed=i) for i, shape in enumerate([(2, 4), (2, 4), (16, 3), (16, 4), (16,)])]
    assert cr.gradcheck(run, *arrays) < 1e-6


@pytest.mark.requirement("R-242")
def test_cell_state_highway() -> None:
    """f = 1 and i = 0 copy the cell and its gradient over 100 steps without losing a bit."""
    b = np.repeat([-1000.0, 1000.0, 0.0, 0.0], 3)  # i, f, g, o
    W_x, W_h = normal(12, 2), normal(12, 3, seed=1)
    for seed in np.eye(3):
        c0 = cr.Tensor(normal(3, seed=2), requires_grad=True)
        h, c = np.zeros(3), c0
        for x in normal(100, 2, seed=3):
            h, c = lstm_cell(x, h, c, W_x, W_h, b)
        c.backward(seed)
        np.testing.assert_array_equal(c.numpy(), c0.numpy())
        np.testing.assert_array_equal(c0.grad, seed)


def test_cell_jacobian_has_more_than_the_highway() -> None:
    """E-004-14: the gates see the cell through h, so the total derivative of a step is not diag(f) alone."""
    W_x, W_h, o = normal(8, 1), normal(8, 2, seed=1), np.array([0.5, 0.7])
    rows, f = [], None
    for seed in np.eye(2):
        c = cr.Tensor(normal(2, seed=2), requires_grad=True)
        _, c_new = lstm_cell(np.ones(1), o * c.tanh(), c, W_x, W_h)
        c_new.backward(seed)
        rows.append(c.grad)
        f = lstm_cell.forward(np.ones(1), o * np.tanh(c.numpy()), c.numpy(), W_x, W_h)[1][6]
    assert f is not None and abs(np.array(rows) - np.diag(f)).max() > 1e-2


# -- GRU -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-244", "R-360")
def test_gru_step() -> None:
    v = vector("der-gru-step")
    h, x = np.array(v.inputs["h"]), np.array(v.inputs["x"])
    W = np.concatenate([v.inputs[gate] for gate in ("Wr", "Wz", "Wn")])  # (3H, H + X)
    y, saved = gru_cell.forward(x, h, W[:, 2:], W[:, :2])
    r, z, n = saved[4:7]
    v.check({"z": z, "r": r, "n": n, "h": y})


@pytest.mark.requirement("R-244", "R-360")
@pytest.mark.parametrize("reset_after", [False, True])
def test_gru_through_time(reset_after: bool) -> None:
    xs = normal(5, 2, 3)

    def run(h: Any, *weights: Any) -> Any:
        for x in xs:
            h = gru_cell(x, h, *weights, reset_after=reset_after)
        return h

    shapes = [(2, 4), (12, 3), (12, 4), (12,)] + [(12,)] * reset_after
    assert cr.gradcheck(run, *(normal(*shape, seed=i) for i, shape in enumerate(shapes))) < 1e-6


def test_gru_variants_meet() -> None:
    """With r = 1 the place of the reset is all one; then only the sign of the update gate differs."""
    x, h, W_x, W_h = normal(2, 3), normal(2, 4), normal(12, 3, seed=1), normal(12, 4, seed=2)
    b = np.repeat([1000.0, 0.3, -0.2], 4)
    sign = np.repeat([1.0, -1.0, 1.0], 4)
    torch_cell = gru_cell(x, h, W_x * sign[:, None], W_h * sign[:, None], b * sign, reset_after=True)
    np.testing.assert_allclose(gru_cell(x, h, W_x, W_h, b), torch_cell, rtol=1e-12)


def test_gru_refuses_a_second_bias_it_would_ignore() -> None:
    x, h, W_x, W_h = normal(2, 3), normal(2, 4), normal(12, 3), normal(12, 4)
    with pytest.raises(ConfigError, match="gru_cell: b_h is given, reset_after is False"):
        gru_cell(x, h, W_x, W_h, None, np.zeros(12))


# -- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shapes, message",
    [
        (((2, 3), (3, 4), (4, 3), (4, 4)), "rnn_cell: x has shape (2, 3), h (3, 4)"),
        (((2, 3), (2, 4), (4, 5), (4, 4)), "rnn_cell: W_x has shape (4, 5), x size 3, h size 4 (must"),
        (((2, 3), (2, 4), (4, 3), (8, 4)), "rnn_cell: W_h has shape (8, 4), x size 3, h size 4 (must"),
        (((2, 3), (2, 4), (4, 3), (4, 4), (1,)), "rnn_cell: bias has shape (1,), x size 3, h size 4 (must"),
    ],
)
def test_shape_errors(shapes: tuple[tuple[int, ...], ...], message: str) -> None:
    with pytest.raises(ShapeError) as error:
        rnn_cell(*(np.zeros(shape) for shape in shapes))
    assert str(error.value).startswith(message)


def test_lstm_refuses_a_cell_of_another_shape() -> None:
    with pytest.raises(ShapeError, match=r"lstm_cell: c has shape \(2, 5\), h has \(2, 4\)"):
        lstm_cell(np.zeros((2, 3)), np.zeros((2, 4)), np.zeros((2, 5)), np.zeros((16, 3)), np.zeros((16, 4)))


# -- whole sequences -----------------------------------------------------------------------------------------


@pytest.mark.requirement("R-233", "R-235", "R-236")
def test_rnn_sequence_vectors() -> None:
    v = vector("der-rnn-bptt")
    xs, arrays = section_6_3(v.id)
    h0, W_x, W_h, b = tensors = [cr.Tensor(a, requires_grad=True) for a in (arrays[0][None], *arrays[1:])]
    states, last = rnn_sequence(xs[None], *tensors)
    vector("004-6.3-rnn-h2").check(states.numpy()[0, 1])
    vector("004-6.3-rnn-h3").check(last.numpy()[0])
    last.backward([v.inputs["grad_h3"]])
    assert h0.grad is not None and W_x.grad is not None
    grads = {"dWh": W_h.grad, "dWx": W_x.grad[:, 0], "db": b.grad, "dh0": h0.grad[0]}
    v.check(grads, keys=list(grads))


def test_the_last_state_is_also_the_last_output() -> None:
    x, h, c = normal(2, 3, 4), normal(2, 5), normal(2, 5, seed=1)
    states, h_last, c_last = lstm_sequence(x, h, c, normal(20, 4), normal(20, 5))
    np.testing.assert_array_equal(states[:, -1], h_last)
    assert c_last.shape == (2, 5)


def test_sequences_refuse_what_does_not_fit() -> None:
    x, h, W_x, W_h = np.zeros((2, 3, 4)), np.zeros((2, 5)), np.zeros((15, 4)), np.zeros((15, 5))
    for wrong in (x[0], x[:, :0]):
        with pytest.raises(
            ShapeError, match=r"gru_sequence: x has shape .* \(must be \(B, T, X\) with T at least"
        ):
            gru_sequence(wrong, h, W_x, W_h)
    with pytest.raises(ShapeError, match=r"gru_sequence: x has shape \(2, 4\), h \(1, 5\)"):
        gru_sequence(x, h[:1], W_x, W_h)
    with pytest.raises(ConfigError, match="gru_sequence: b_h is given, reset_after is False"):
        gru_sequence(x, h, W_x, W_h, None, np.zeros(15))
    with pytest.raises(ShapeError, match=r"lstm_sequence: c has shape \(2, 4\), h has \(2, 5\)"):
        lstm_sequence(x, h, h[:, :4], np.zeros((20, 4)), np.zeros((20, 5)))
