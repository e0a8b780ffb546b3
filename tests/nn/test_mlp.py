"""What a linear layer and a perceptron with hidden layers can do, on the worked examples and small problems."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn, ops
from chainrule.autograd.types import Array
from chainrule.optim import SGD, Adam, Optimizer
from tests.vectors import vector

XOR = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
LABELS = np.array([0, 1, 1, 0])


@pytest.mark.requirement("R-214")
def test_a_neuron_is_a_half_plane() -> None:
    v = vector("004-5.1-halfplane")
    neuron = nn.Linear(2, 1).to(np.float64)
    w, b = np.array([v.inputs["w"]], float), np.array([v.inputs["b"]], float)
    neuron.load({"weight": w, "bias": b})
    v.check(neuron(np.array(v.inputs["points"], float)).numpy()[:, 0] > 0)
    along = np.array([1.0, -2.0])  # from (0, 3) to (1, 1), both on the line
    on_the_line = np.array([[0.0, 3.0], [1.0, 1.0]])
    np.testing.assert_allclose(neuron(on_the_line).numpy(), 0, atol=1e-15)
    assert w[0] @ along == 0


def fit(layer: nn.Layer, loss: Callable[[nn.Layer], cr.Tensor], optimizer: Optimizer, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        loss(layer).backward()
        optimizer.step()


@pytest.mark.requirement("R-211")
def test_linear_and_logistic_regression_with_the_same_loop() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)).astype(np.float32)
    planted = np.array([[2.0, -1.0, 0.5]], np.float32)
    y = x @ planted.T + 3
    linear = nn.Linear(3, 1)
    fit(linear, lambda layer: ops.mse(layer(x), y), SGD(linear.parameters(), 0.1), 200)
    assert np.abs(linear.weight.data - planted).max() < 1e-3 and abs(linear.bias.data[0] - 3) < 1e-3

    labels = np.arange(400) % 2
    points = (rng.normal(size=(400, 2)) + 3 * labels[:, None]).astype(np.float32)
    logistic = nn.Linear(2, 2)
    fit(
        logistic,
        lambda layer: ops.cross_entropy(layer(points), targets=labels),
        SGD(logistic.parameters(), 0.1),
        500,
    )
    assert (logistic(points).numpy().argmax(axis=1) == labels).mean() > 0.95


@pytest.mark.requirement("R-212")
def test_hidden_layers_make_xor_separable() -> None:
    assert best_line(XOR) == 0.75
    cr.seed(1)
    net = nn.MLP([2, 8, 2], "tanh")
    fit(net, lambda n: ops.cross_entropy(n(XOR), targets=LABELS), Adam(net.parameters(), 0.05), 300)
    assert (net(XOR).numpy().argmax(axis=1) == LABELS).all()
    with cr.capture() as seen:
        net(XOR)
    assert probe(seen["tanh"].value) == 1.0


def probe(features: Array) -> float:
    """The share of labels a logistic regression on these features gets right."""
    cr.seed(0)
    layer = nn.Linear(features.shape[1], 2)
    fit(layer, lambda n: ops.cross_entropy(n(features), targets=LABELS), Adam(layer.parameters(), 0.05), 500)
    return float((layer(features).numpy().argmax(axis=1) == LABELS).mean())


def best_line(points: Array) -> float:
    """The best share of labels any line gets right, over a fine grid of directions and offsets."""
    angles = np.linspace(0, 2 * np.pi, 361)
    heights = points @ np.stack([np.cos(angles), np.sin(angles)])  # (points, angles)
    above = heights[:, :, None] > np.linspace(-2, 2, 161)  # (points, angles, offsets)
    return float((above == (LABELS == 1)[:, None, None]).mean(axis=0).max())
