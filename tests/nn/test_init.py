"""Initialisation: the gains, the spreads, and the experiments that show why they matter."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn, ops
from chainrule.autograd.types import Array, Shape
from chainrule.errors import ConfigError
from chainrule.nn import init
from chainrule.optim import SGD, Adam
from tests.vectors import vector


class Edge:
    """Stands in for a generator; returns the edge of what it was asked for: the bound, or one deviation."""

    def uniform(self, low: float, high: float, size: Shape) -> Array:
        assert low == -high
        return np.full(size, high)

    def normal(self, mean: float, std: float, size: Shape) -> Array:
        assert mean == 0
        return np.full(size, std)


EDGE: Any = Edge()


# -- gains -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-143")
def test_gains_vector() -> None:
    v = vector("der-gains")
    v.check({name: init.gain(name.removesuffix("_0.01")) for name in v.inputs["activations"]})


@pytest.mark.requirement("R-143")
def test_gain_of_any_function() -> None:
    assert init.gain(lambda z: 3 * z) == pytest.approx(1 / 3, rel=1e-12)
    assert init.gain(np.sign) == pytest.approx(1.0, rel=1e-9, abs=1e-4)
    slope = 0.25  # PReLU starts as a leaky ReLU of slope 1/4
    assert init.gain("prelu") == pytest.approx(math.sqrt(2 / (1 + slope**2)), rel=1e-9)
    kinked = init.gain(lambda z: np.maximum(z - 0.5, 0))  # E[(Z-a)₊²] = (1+a²) Φ(-a) - a φ(a)
    tail, density = 0.5 * math.erfc(0.5 / math.sqrt(2)), math.exp(-0.125) / math.sqrt(2 * math.pi)
    assert kinked == pytest.approx(1 / math.sqrt(1.25 * tail - 0.5 * density), rel=1e-9)


@pytest.mark.requirement("R-144")
def test_moments_of_tanh() -> None:
    second = init.expectation(lambda z: np.tanh(z) ** 2)
    vector("002-E-tanh2").check(second)
    vector("002-var-tanh-note").check(second - init.expectation(np.tanh) ** 2)
    vector("002-E-tanh").check(init.expectation(np.tanh))
    vector("002-gain-tanh-corollary").check(init.gain("tanh"))
    v = vector("002-gain-tanh-proof")
    v.check(1 / math.sqrt(v.inputs["second_moment"]))
    v = vector("002-std-note")
    v.check(math.sqrt(v.inputs["x"]))


@pytest.mark.requirement("R-144")
def test_laplace_form_of_the_second_moment() -> None:
    """E[tanh²] = 1 - L[tanh √u](½) / √(2π), with the factor of E-002-26."""
    v = vector("002-E-tanh2-laplace")
    x = np.linspace(0, 14, 140_001)
    laplace = np.trapezoid(2 * x * np.exp(-x * x / 2) * np.tanh(x), x)  # u = x²
    assert laplace == pytest.approx(v.inputs["laplace_value"], rel=1e-8)
    v.check(1 - v.inputs["laplace_value"] / math.sqrt(2 * math.pi))


@pytest.mark.requirement("R-144")
def test_library_constants() -> None:
    assert init.torch_gain("tanh") == 5 / 3
    assert init.torch_gain("relu") == pytest.approx(init.gain("relu"))
    with pytest.raises(ConfigError, match="torch_gain: 'gelu'"):
        init.torch_gain("gelu")


# -- spreads -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-146", "R-147")
def test_xavier_and_he_vector() -> None:
    v = vector("der-xavier")
    shape = (v.inputs["fan_out"], v.inputs["fan_in"])
    v.check(
        {
            "xavier_bound": init.xavier_uniform(shape, EDGE)[0, 0],
            "xavier_std": init.xavier_normal(shape, EDGE)[0, 0],
            "he_std": init.kaiming_normal(shape, EDGE)[0, 0],
        }
    )


@pytest.mark.requirement("R-139", "R-146", "R-147")
@pytest.mark.parametrize(
    ("draw", "std"),
    [
        (init.normal, 1.0),
        (partial(init.normal, std=0.02), 0.02),
        (partial(init.uniform, bound=0.3), 0.3 / math.sqrt(3)),
        (init.xavier_uniform, 0.1),
        (partial(init.xavier_normal, gain=2.0), 0.2),
        (init.kaiming_normal, math.sqrt(2 / 100)),
        (partial(init.kaiming_uniform, activation="tanh"), 1.592537 / 10),
        (partial(init.kaiming_normal, activation="linear"), 0.1),
    ],
)
def test_seeded_draws_have_mean_0_and_the_right_spread(draw: Any, std: float) -> None:
    values = [draw((100, 100), cr.random.generator("init", seed=seed)) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(values[0], values[1])
    assert (values[0] != values[2]).any()
    assert abs(values[0].mean()) < 0.02 * std
    assert values[0].std() == pytest.approx(std, rel=0.02)


def test_shapes_without_fans_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"init: shape \(3,\) has no fan-in"):
        init.xavier_uniform((3,), EDGE)


@pytest.mark.requirement("R-148")
def test_biases_start_at_0_and_gains_at_1() -> None:
    for layer in (nn.TransformerBlock(8, 2, bias=True), nn.BatchNorm(3), nn.GroupNorm(1, 3), nn.GRU(2, 3)):
        for name, param in layer.named_parameters():
            if name.endswith("bias"):
                assert (param.data == 0).all(), name
            elif param.ndim == 1:
                assert (param.data == 1).all(), name
            else:
                assert param.data.std() > 0, name


def test_a_fresh_lstm_remembers() -> None:
    bias = nn.LSTM(2, 3).bias.data
    np.testing.assert_array_equal(bias, [0] * 3 + [1] * 3 + [0] * 6)  # i, f, g, o


# -- why ---------------------------------------------------------------------------------------------------


def test_variances_of_independent_products_add() -> None:
    """Seed 004 §3.13: Var(Σ wᵢ xᵢ) = n σ_w² E[x²], for inputs that depend on each other too."""
    rng = np.random.default_rng(0)
    n, std_w = 50, 0.3
    inputs = np.maximum(rng.normal(size=n), 0)  # second moment, not variance, counts
    outputs = rng.normal(0, std_w, size=(50_000, n)) @ inputs
    assert outputs.var() == pytest.approx(n * std_w**2 * (inputs**2).mean(), rel=0.02)
    shared = rng.normal(0, std_w, size=50_000)[:, None] * np.ones(n)  # one weight for all: no independence
    assert (shared @ inputs).var() > 5 * outputs.var()


def spreads(net: nn.MLP, x: Array) -> list[float]:
    """Standard deviations after each activation."""
    with cr.capture("tanh*", "*.linear") as seen, cr.no_grad():
        net(x)
    return [float(seen[name].value.std()) for name in seen if name.startswith("tanh")]


@pytest.mark.requirement("R-145")
def test_the_gain_keeps_the_spread_through_tanh_layers() -> None:
    x = np.random.default_rng(1).normal(size=(500, 256)).astype(np.float32)
    sizes = [256] * 8
    cr.seed(2)
    kept = spreads(nn.MLP(sizes, "tanh"), x)
    shrunk = spreads(nn.MLP(sizes, "tanh", init=partial(init.kaiming_normal, activation="linear")), x)
    assert 0.9 <= kept[5] / kept[1] <= 1.1
    assert shrunk[5] / shrunk[1] < 0.7


@pytest.mark.requirement("R-149")
@pytest.mark.parametrize(("factor", "low", "high"), [(1.0, 0.5, 2.0), (2.0, 10.0, math.inf), (0.5, 0.0, 0.1)])
def test_ten_linear_layers_explode_or_vanish(factor: float, low: float, high: float) -> None:
    x = np.random.default_rng(3).normal(size=(200, 64)).astype(np.float32)
    cr.seed(4)
    hidden = x
    for _ in range(10):
        hidden = nn.Linear(64, 64, init=partial(init.normal, std=factor / 8))(hidden).numpy()
    assert low < hidden.std() / x.std() < high


@pytest.mark.requirement("R-140")
def test_a_small_last_layer_starts_at_ln_v() -> None:
    V = 27
    rng = np.random.default_rng(5)
    x, targets = rng.normal(size=(256, 30)).astype(np.float32), rng.integers(0, V, 256)
    cr.seed(6)
    losses = {}
    for std in (0.01, 1.0):
        net = nn.MLP([30, 200, V], "tanh", output_init=partial(init.normal, std=std))
        losses[std] = ops.cross_entropy(net(x), targets=targets).item()
    v = vector("002-initial-loss-27")
    v.check(math.log(V))
    assert abs(losses[0.01] - math.log(V)) < 0.05
    assert losses[1.0] > 2 * math.log(V)


def toy(n_in: int = 3, V: int = 4) -> tuple[Array, Array]:
    rng = np.random.default_rng(7)
    return rng.normal(size=(6, n_in)).astype(np.float32), rng.integers(0, V, 6)


def train(net: nn.MLP, steps: int) -> None:
    x, targets = toy()
    optimizer = SGD(net.parameters(), 0.5)
    for _ in range(steps):
        optimizer.zero_grad()
        ops.cross_entropy(net(x), targets=targets).backward()
        optimizer.step()


@pytest.mark.requirement("R-141")
def test_equal_rows_stay_equal() -> None:
    cr.seed(8)
    net = nn.MLP([3, 5, 4], "tanh")
    hidden, output = net.layers[0].weight.data, net.layers[1].weight.data
    hidden[1], output[:, 1] = hidden[0], output[:, 0]
    train(net, 100)
    np.testing.assert_allclose(hidden[1], hidden[0], rtol=1e-5)
    assert np.abs(hidden[2] - hidden[0]).max() > 0.1


@pytest.mark.requirement("R-142")
def test_all_zero_weights_never_move() -> None:
    net = nn.MLP([3, 5, 4], "tanh", init=init.zeros)
    train(net, 20)
    assert not net.layers[0].weight.data.any()
    assert not net.layers[1].weight.data.any()
    assert net.layers[1].bias.data.any()


@pytest.mark.requirement("R-142")
def test_a_zero_last_layer_is_harmless() -> None:
    cr.seed(9)
    net = nn.MLP([3, 5, 4], "tanh", output_init=init.zeros)
    x, targets = toy()
    params = net.parameters()
    ops.cross_entropy(net(x), targets=targets).backward()
    assert not params["layers.0.weight"].grad.any()
    assert params["layers.1.weight"].grad.any()
    train(net, 20)
    assert ops.cross_entropy(net(x), targets=targets).item() < math.log(4) - 0.5


@pytest.mark.requirement("R-150")
def test_embeddings_and_positions_are_trained_jointly() -> None:
    class Tokens(nn.Layer):
        def __init__(self) -> None:
            self.wte = nn.Embedding(7, 8)
            self.wpe = nn.LearnedPositions(5, 8)
            self.head = nn.Linear(8, 7)

        def forward(self, ids: Array) -> cr.Tensor:
            return self.head(self.wpe(self.wte(ids)))

    cr.seed(10)
    model = Tokens()
    params = model.parameters()
    before = params.state()
    assert before["wte.weight"].std() > 0 and before["wpe.weight"].std() > 0
    ids = np.array([[0, 1, 2, 3, 4], [5, 6, 0, 1, 2]])
    ops.cross_entropy(model(ids), targets=ids).backward()
    optimizer = Adam(params, 0.01)
    optimizer.step()
    for name in ("wte.weight", "wpe.weight"):
        assert params[name].grad.any(axis=1).all()
        assert (params[name].data != before[name]).any()


@pytest.mark.requirement("R-153")
def test_a_fresh_residual_block_is_near_the_identity() -> None:
    cr.seed(11)
    block = nn.TransformerBlock(64, 4, init=partial(init.normal, std=0.02))
    x = np.random.default_rng(12).normal(size=(2, 10, 64)).astype(np.float32)
    change = block(x).numpy() - x
    assert 0 < np.linalg.norm(change) / np.linalg.norm(x) < 0.5
