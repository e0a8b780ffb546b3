"""Activation functions: the worked examples, extreme inputs, and what non-linearity buys a network."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule import ops
from chainrule.autograd import Tensor, gradcheck
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, ShapeError
from tests.vectors import vector

ACTIVATIONS: dict[str, Callable[..., Any]] = {
    op.name: op
    for op in (
        *(ops.sigmoid, ops.tanh, ops.relu, ops.leaky_relu, ops.elu, ops.softplus, ops.log_sigmoid),
        *(ops.silu, ops.gelu, ops.gelu_tanh, ops.softmax),
    )
}
numbers = st.floats(-700, 700)


def slope(op: Callable[..., Any], x: Any, **options: Any) -> tuple[Array, Array]:
    """f(x) and f'(x) of each element, in float64."""
    leaf = Tensor(x, requires_grad=True, dtype=np.float64)
    y = op(leaf, **options)
    y.backward(np.ones(y.shape))
    return y.data, leaf.grad


# -- the functions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "id",
    [
        pytest.param("der-sigmoid", marks=pytest.mark.requirement("R-078")),
        pytest.param("der-tanh", marks=pytest.mark.requirement("R-079")),
        pytest.param("der-relu", marks=pytest.mark.requirement("R-080", "R-349")),
        pytest.param("der-leaky-relu", marks=pytest.mark.requirement("R-082")),
        pytest.param("der-gelu", marks=pytest.mark.requirement("R-084", "R-350")),
    ],
)
def test_values_and_derivatives(id: str) -> None:
    v = vector(id)
    options = {name: value for name, value in v.inputs.items() if name != "x"}
    y, dy = slope(getattr(ops, v.op), v.inputs["x"], **options)
    v.check({"y": y, "dy": dy})


@pytest.mark.requirement("R-078")
def test_sigmoid_far_out() -> None:
    v = vector("004-5.1-sigmoid0")
    v.check(ops.sigmoid(np.array(float(v.inputs["x"]))))
    for dtype in (np.float32, np.float64):
        with np.errstate(all="raise", under="ignore"):
            y = ops.sigmoid(np.array([-1000, -700, -30, 30, 1000], dtype=dtype))
        assert y.dtype == dtype
        assert y[0] == 0 and y[-1] == 1 and (np.diff(y) >= 0).all()
        assert y[2] == pytest.approx(math.exp(-30), rel=1e-6), "small values keep their digits"


@pytest.mark.requirement("R-079")
@pytest.mark.parametrize("id", ["002-tanh(3)", "002-tanh(-3)", "002-tanh(5)", "002-tanh(-5)"])
def test_tanh_saturates(id: str) -> None:
    v = vector(id)
    v.check(ops.tanh(np.array(float(v.inputs["x"]))))


@pytest.mark.requirement("R-078", "R-079")
@given(numbers)
def test_ranges_and_symmetries(x: float) -> None:
    at, mirrored = np.array(x), np.array(-x)
    assert 0 <= ops.sigmoid(at) <= 1 and -1 <= ops.tanh(at) <= 1
    assert ops.sigmoid(at) + ops.sigmoid(mirrored) == pytest.approx(1, abs=1e-15)
    assert ops.tanh(mirrored) == -ops.tanh(at)
    assert ops.tanh(at) == pytest.approx(2 * ops.sigmoid(np.array(2 * x)) - 1, abs=1e-15)
    assert ops.softplus(at) - ops.softplus(mirrored) == pytest.approx(x, rel=1e-14)
    assert ops.log_sigmoid(at) == -ops.softplus(mirrored)
    assert ops.gelu(at) - ops.gelu(mirrored) == pytest.approx(x, rel=1e-14)
    assert ops.silu(at) - ops.silu(mirrored) == pytest.approx(x, rel=1e-14)


@pytest.mark.requirement("R-080")
def test_relu_and_its_convention_at_zero() -> None:
    v = vector("004-9.8.2-relu")
    x = np.array(v.inputs["x"], dtype=np.float64)
    y, dx = slope(ops.relu, x)
    v.check(y)
    np.testing.assert_array_equal(dx, [1, 0, 0, 0, 1])
    np.testing.assert_array_equal(slope(ops.relu, x, at_zero=1)[1], [1, 0, 1, 0, 1])
    with pytest.raises(ConfigError, match=r"relu: at_zero is 0.5 \(must be 0 or 1\)"):
        ops.relu(x, at_zero=0.5)


@pytest.mark.requirement("R-081", "R-349")
def test_relu_backward_is_the_diagonal_jacobian() -> None:
    rng = np.random.default_rng(0)
    x, g = rng.normal(size=9), rng.normal(size=9)
    leaf = Tensor(x, requires_grad=True)
    ops.relu(leaf).backward(g)
    J = np.diag((x > 0).astype(float))
    np.testing.assert_array_equal(leaf.grad, J.T @ g)
    assert np.count_nonzero(J) <= 9 < J.size


@pytest.mark.requirement("R-083", "R-361")
def test_prelu_gradients() -> None:
    v = vector("der-prelu")
    x = np.array(v.inputs["x"])
    leaf, alpha = (
        Tensor(x, requires_grad=True),
        Tensor(np.full(x.shape, v.inputs["alpha"]), requires_grad=True),
    )
    y = ops.prelu(leaf, alpha)
    y.backward(np.ones(x.shape))
    v.check({"y": y, "dx": leaf.grad, "dalpha": alpha.grad})
    shared = Tensor(np.array(v.inputs["alpha"]), requires_grad=True)
    ops.prelu(x, shared).backward(np.ones(x.shape))
    assert shared.grad == sum(v.recomputed["dalpha"]), "one alpha for all elements gets the sum (E-003-02)"
    per_channel = Tensor(np.zeros(2), requires_grad=True)
    ops.prelu(np.array([[-1.0, -2.0], [-3.0, 4.0]]), per_channel).backward(np.ones((2, 2)))
    np.testing.assert_array_equal(per_channel.grad, [-4.0, -2.0])


@pytest.mark.requirement("R-083")
def test_prelu_learns_its_slope() -> None:
    x = np.linspace(-2, 2, 41)
    target = np.where(x > 0, x, 0.7 * x)
    alpha = Tensor(0.25, requires_grad=True, dtype=np.float64)
    for _ in range(50):
        alpha.zero_grad()
        ((ops.prelu(x, alpha) - target) ** 2).mean().backward()
        alpha.data -= 0.5 * alpha.grad
    assert alpha.item() == pytest.approx(0.7, abs=1e-6)


def test_wrong_arguments() -> None:
    with pytest.raises(
        ShapeError, match=r"prelu: alpha is \(2, 3\), x is \(3,\) \(alpha must broadcast to x\)"
    ):
        ops.prelu(np.ones(3), np.ones((2, 3)))
    with pytest.raises(ShapeError, match=r"prelu: alpha is \(4,\), x is \(3,\)"):
        ops.prelu(np.ones(3), np.ones(4))
    with pytest.raises(
        ShapeError, match=r"swiglu: gate has shape \(2, 3\), up has shape \(3,\) \(must be equal\)"
    ):
        ops.swiglu(np.ones((2, 3)), np.ones(3))
    with pytest.raises(ConfigError, match=r"elu: alpha is -1 \(must be at least 0\)"):
        ops.elu(np.ones(3), alpha=-1)


def test_swiglu_is_a_gate() -> None:
    gate, up = np.array([-40.0, 0.0, 40.0]), np.array([3.0, 3.0, 3.0])
    np.testing.assert_allclose(ops.swiglu(gate, up), [0, 0, 120], atol=1e-12)


# -- the error function and GELU --------------------------------------------------------------------------


def test_erf_against_the_c_library() -> None:
    x = np.concatenate([np.linspace(-7, 7, 40_001), [0.0, -0.0, 1e-300, 27.0, 1e300, -1e300]])
    with np.errstate(over="ignore", under="ignore"):
        got = ops.erf(x)
    assert np.abs(got - [math.erf(v) for v in x]).max() < 1e-15
    np.testing.assert_array_equal(ops.erf(np.array([0.0, np.inf, -np.inf])), [0, 1, -1])
    assert np.isnan(ops.erf(np.nan))
    single = np.linspace(-7, 7, 40_001, dtype=np.float32)
    assert ops.erf(single).dtype == np.float32
    assert np.abs(ops.erf(single) - [math.erf(v) for v in single]).max() < 3e-7
    assert ops.erf([[0.5, 1.0]]).shape == (1, 2) and ops.erf(1.0) == pytest.approx(math.erf(1.0), abs=1e-15)


@pytest.mark.requirement("R-084")
def test_gelu_over_a_grid() -> None:
    x = np.linspace(-12, 12, 100_003)  # more than one block
    cdf = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in x])
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    y, dx = slope(ops.gelu, x)
    np.testing.assert_allclose(y, x * cdf, rtol=1e-13, atol=0)  # relative, far into the left tail as well
    np.testing.assert_allclose(dx, cdf + x * density, rtol=0, atol=2e-15)
    single = ops.gelu(x.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, x * cdf, rtol=3e-7, atol=3e-7)


def test_gelu_tanh_is_near_the_exact_form_but_not_the_same() -> None:
    x = np.linspace(-6, 6, 2001)
    gap = np.abs(ops.gelu_tanh(x) - ops.gelu(x)).max()
    assert 4e-4 < gap < 5e-4


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extreme_inputs(name: str, dtype: Any) -> None:
    x = np.array([-1e4, -1000, -88.8, -1e-30, 0, 1e-30, 88.8, 1000, 1e4], dtype=dtype)
    leaf = Tensor(x, requires_grad=True)
    with np.errstate(all="raise", under="ignore"):
        y = ACTIVATIONS[name](leaf)
        y.backward(np.ones_like(x))
    assert y.dtype == leaf.grad.dtype == dtype
    assert np.isfinite(y.data).all() and np.isfinite(leaf.grad).all()


@pytest.mark.requirement("R-093")
def test_relu_does_not_saturate_but_sigmoid_and_tanh_do() -> None:
    (relu, tanh, sigmoid) = (slope(op, [20.0])[1].item() for op in (ops.relu, ops.tanh, ops.sigmoid))
    assert relu == 1 and tanh < 1e-16 and sigmoid < 1e-8


# -- what they do in a network ----------------------------------------------------------------------------


@pytest.mark.requirement("R-090")
def test_a_stack_of_linear_layers_is_one_linear_layer() -> None:
    rng = np.random.default_rng(0)
    sizes = [4, 7, 3, 5, 6, 2]
    layers = [(rng.normal(size=(m, n)), rng.normal(size=m)) for n, m in itertools.pairwise(sizes)]
    W, b = np.eye(4), np.zeros(4)
    for A, c in layers:
        W, b = A @ W, A @ b + c
    x = rng.normal(size=(50, 4))

    def network(activation: Callable[[Any], Any]) -> Array:
        h = x
        for i, (A, c) in enumerate(layers):
            h = ops.linear(h if i == 0 else activation(h), A, c)
        return h

    np.testing.assert_allclose(network(lambda h: h), ops.linear(x, W, b), rtol=1e-10, atol=1e-10)
    scale = np.abs(W).sum()
    affine = network(lambda h: 2 * h + 1)
    fit = np.linalg.lstsq(np.c_[x, np.ones(50)], affine, rcond=None)[0]
    np.testing.assert_allclose(np.c_[x, np.ones(50)] @ fit, affine, atol=1e-10 * scale)
    bent = network(ops.relu)
    fit = np.linalg.lstsq(np.c_[x, np.ones(50)], bent, rcond=None)[0]
    assert np.abs(np.c_[x, np.ones(50)] @ fit - bent).max() > 0.1 * np.abs(bent).max()


@pytest.mark.requirement("R-091")
def test_relu_is_not_linear() -> None:
    v = vector("004-9.8.3-relu-nonlinear")
    minus, plus, zero = ops.relu(np.array(v.inputs["x"], dtype=np.float64))
    v.check({"g(-1)": minus, "g(1)": plus, "sum": minus + plus, "g(0)": zero})
    assert minus + plus != zero, "a linear g would have g(-1) + g(1) = g(0)"


@pytest.mark.requirement("R-091")
@given(units=st.integers(1, 12), seed=st.integers(0, 99))
def test_relu_network_has_at_most_one_piece_more_than_units(units: int, seed: int) -> None:
    """One input: the slope changes only where a unit switches on or off."""
    rng = np.random.default_rng(seed)
    W, b, out = rng.normal(size=(units, 1)), rng.normal(size=units), rng.normal(size=(1, units))

    def network(x: Any) -> Any:
        return ops.linear(ops.relu(ops.linear(x, W, b)), out)

    kinks = np.sort(-b / W[:, 0])
    edges = np.concatenate([[kinks[0] - 1], kinks, [kinks[-1] + 1]])
    inside = (edges[:-1, None] + np.diff(edges)[:, None] * np.array([0.25, 0.5, 0.75])).reshape(-1, 1)
    slopes = slope(network, inside)[1].reshape(-1, 3)
    scale = np.abs(out[0] * W[:, 0]).sum()
    np.testing.assert_allclose(slopes, slopes[:, [1, 1, 1]], atol=1e-12 * scale)  # straight between kinks
    bends = np.abs(np.diff(slopes[:, 1])) > 1e-12 * scale
    assert 1 + np.count_nonzero(bends) == len(slopes) == units + 1


@pytest.mark.requirement("R-092")
def test_xor_with_relu_units() -> None:
    v = vector("004-9.8.5-xor")
    x = np.array(v.inputs["inputs"], dtype=np.float64)
    W, b = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), -np.array(v.inputs["thresholds"])
    hidden = ops.relu(ops.linear(x, W, b))
    v.check(ops.matmul(hidden, np.array(v.inputs["out"], dtype=np.float64)))
    xor = [0, 1, 1, 0]
    np.testing.assert_array_equal(ops.matmul(hidden, np.array([2.0, 2.0, -4.0])), xor)  # E-004-22
    total = x.sum(axis=1)
    np.testing.assert_array_equal(total - 2 * ops.relu(total - 1), xor)


@pytest.mark.requirement("R-092")
def test_xor_has_no_linear_solution() -> None:
    x = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    xor = np.array([False, True, True, False])
    grid = np.linspace(-2, 2, 17)
    W = np.array(list(itertools.product(grid, grid)))  # (K, 2)
    score = ops.linear(x, W)[:, :, None] + grid  # (4, K, biases)
    # Every affine f has f(00) + f(11) = f(01) + f(10), so it cannot be positive on just one of the pairs.
    np.testing.assert_allclose(score[0] + score[3], score[1] + score[2], atol=1e-12)
    accuracy = ((score > 0) == xor[:, None, None]).mean(axis=0)
    assert accuracy.max() == 0.75


@pytest.mark.requirement("R-094")
def test_more_units_fit_a_function_better() -> None:
    x = np.linspace(-np.pi, np.pi, 64).reshape(-1, 1)
    target = np.sin(2 * x)

    def error(units: int) -> float:
        rng = np.random.default_rng(0)
        W1, b1 = 2 * rng.normal(size=(units, 1)), rng.uniform(-4, 4, size=units)
        W2, b2 = rng.normal(size=(1, units)) / units**0.5, np.zeros(1)
        params = [Tensor(p, requires_grad=True) for p in (W1, b1, W2, b2)]
        speeds = [np.zeros(p.shape) for p in params]
        for _ in range(500):
            W1, b1, W2, b2 = params
            loss = ((ops.linear(ops.tanh(ops.linear(x, W1, b1)), W2, b2) - target) ** 2).mean()
            loss.backward()
            for p, v in zip(params, speeds, strict=True):
                v *= 0.95
                v -= 0.01 * p.grad
                p.data += v
                p.zero_grad()
        return loss.item()

    two, eight, many = error(2), error(8), error(32)
    assert two > 5 * eight > 25 * many


def hidden_layers(x: Array, layers: list[Array]) -> Array:
    """Matrices with the bias in the last column; ReLU between them."""
    for i, W in enumerate(layers):
        x = ops.linear(x if i == 0 else ops.relu(x), np.ascontiguousarray(W[:, :-1]), W[:, -1])
    return x


@pytest.mark.requirement("R-095")
def test_parity_with_one_layer_of_n_units_and_with_a_tree() -> None:
    n = 8
    bits = np.array(list(itertools.product([0.0, 1.0], repeat=n)))
    parity = bits.sum(axis=1) % 2

    # E-004-05: relu(s) + 2 Σ (-1)^k relu(s - k), s the number of ones: n units in one hidden layer.
    hidden = np.column_stack([np.ones((n, n)), -np.arange(n)])
    signs = np.array([[1.0] + [2.0 * (-1) ** k for k in range(1, n)] + [0.0]])
    np.testing.assert_array_equal(hidden_layers(bits, [hidden, signs])[:, 0], parity)

    # A tree of XORs, a ⊕ b = relu(a + b) - 2 relu(a + b - 1): each level halves the number of bits.
    layers, read = [], np.eye(n)  # `read` turns the outputs of the previous units into bits
    while len(read) > 1:
        pairs = read[0::2] + read[1::2]  # a + b in terms of those outputs
        units = np.repeat(pairs, 2, axis=0)
        layers.append(np.column_stack([units, np.tile([0.0, -1.0], len(pairs))]))
        read = np.kron(np.eye(len(pairs)), [1.0, -2.0])
    layers.append(np.column_stack([read, [0.0]]))
    np.testing.assert_array_equal(hidden_layers(bits, layers)[:, 0], parity)
    assert len(layers) - 1 == math.log2(n) and sum(len(W) for W in layers[:-1]) == 2 * (n - 1)


@pytest.mark.requirement("R-096")
@pytest.mark.parametrize("name", [*ACTIVATIONS, "prelu", "swiglu"])
def test_any_activation_in_an_mlp_passes_the_gradient_check(name: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(6, 3))
    sizes = (5, 3), (5,), (4, 5), (4,), (1, 4)
    params = [rng.normal(size=s) for s in sizes] + [rng.normal(size=(m, 1)) for m in (5, 4)]

    def activate(h: Any, extra: Any) -> Any:
        if name == "prelu":
            return ops.prelu(h, extra.reshape(-1))
        if name == "swiglu":
            return ops.swiglu(h, h * extra.reshape(-1))
        return ACTIVATIONS[name](h) * extra.reshape(-1)

    def loss(W1: Any, b1: Any, W2: Any, b2: Any, W3: Any, e1: Any, e2: Any) -> Any:
        h = activate(ops.linear(x, W1, b1), e1)
        h = activate(ops.linear(h, W2, b2), e2)
        return (ops.linear(h, W3) ** 2).mean()

    gradcheck(loss, *params)
