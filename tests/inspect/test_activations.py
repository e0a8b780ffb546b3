"""Saturation, dead units, histograms, and what depth does to spreads."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn
from chainrule.doctor import Code, diagnose
from chainrule.errors import ConfigError, ShapeError
from chainrule.inspect import Histogram, dead_units, gradient_map, saturated_fraction, saturation_point
from chainrule.inspect.activations import RECTIFYING, SQUASHING
from chainrule.lessons.initialization import deep_tanh
from tests.vectors import vector


def squares(model: nn.Layer, x: np.ndarray) -> cr.Tensor:
    return (model(x) ** 2).mean()


@pytest.mark.requirement("R-219")
def test_the_saturation_point_and_the_fraction_beyond_it() -> None:
    v = vector("002-atanh-0.99")
    v.check(saturation_point(**v.inputs))
    v = vector("002-saturated-gradient")
    v.check(gradient_map(**v.inputs))
    assert np.tanh(saturation_point(0.9)) == pytest.approx(0.9)
    with pytest.raises(ConfigError, match="M is 1"):
        saturation_point(1)
    x = np.random.default_rng(0).normal(size=(500, 40)).astype(np.float32)
    cr.seed(0)
    model = nn.MLP([40, 30, 30, 5], "tanh")
    model.layers[0].weight.array *= 3
    first, second = diagnose(model, (x,), loss=squares).layers
    assert first.flat == pytest.approx(saturated_fraction(np.tanh(model.layers[0](x).numpy())), abs=1e-4)
    assert first.flat > 0.3 > second.flat


@pytest.mark.requirement("R-220")
def test_the_gradient_map_is_sparse_when_saturated() -> None:
    x = np.random.default_rng(0).normal(size=(200, 100))
    assert (gradient_map(10 * x) < 0.02).mean() > 0.5
    assert (gradient_map(0.5 * x) < 0.02).mean() < 0.01
    assert gradient_map(x).shape == x.shape


@pytest.mark.requirement("R-221")
@pytest.mark.parametrize(
    ("activation", "bias"), [("tanh", 20.0), ("relu", -20.0), ("gelu", -20.0), ("sigmoid", 20.0)]
)
def test_the_planted_dead_unit_is_the_only_one(activation: str, bias: float) -> None:
    x = np.random.default_rng(1).normal(size=(64, 20)).astype(np.float32)
    cr.seed(0)
    model = nn.MLP([20, 16, 4], activation)
    model.layers[0].bias.array[5] = bias
    report = diagnose(model, (x,), loss=squares)
    (layer,) = report.layers
    assert layer.dead == (5,) and (layer.examples, layer.units) == (64, 16)
    (finding,) = [f for f in report.findings if f.code is Code.DEAD_UNITS]
    assert finding.level == "note" and "1 of 16 units" in finding.measured


@pytest.mark.requirement("R-221")
def test_the_list_of_dead_units_shrinks_when_the_sample_grows() -> None:
    slopes = gradient_map(4 * np.random.default_rng(0).normal(size=(200, 100)))
    lists = [set(dead_units(slopes[:n])) for n in (1, 2, 5, 20, 200)]
    assert all(later <= earlier for earlier, later in pairwise(lists))
    assert len(lists[0]) > len(lists[1]) > len(lists[2]) and not lists[-1]
    with pytest.raises(ShapeError, match="at least one example"):
        dead_units(np.zeros((0, 3)))


@pytest.mark.requirement("R-222")
@pytest.mark.parametrize("gain", [True, False])
def test_histograms_of_activations_and_gradients(gain: bool) -> None:
    report = deep_tanh(gain=gain)
    assert [layer.op for layer in report.layers] == ["tanh"] * 6
    for layer in report.layers:
        assert layer.grad is not None
        for seen in (layer.value, layer.grad):
            assert seen.histogram.counts.sum() == layer.examples * layer.units == 200 * 256
            assert seen.finite and abs(seen.mean) < 0.1 and seen.std > 0
            density, width = seen.histogram.density, np.diff(seen.histogram.edges)
            assert (density * width).sum() == pytest.approx(1)
        assert 0 <= layer.flat < 0.02


def test_every_position_of_every_text_is_an_example() -> None:
    cr.seed(0)
    model, x = nn.MLP([4, 9, 2], "tanh"), np.ones((3, 5, 4), np.float32)
    (layer,) = diagnose(model, (x,), loss=squares).layers
    assert (layer.examples, layer.units) == (15, 9)


@pytest.mark.requirement("R-223")
def test_the_spread_stays_with_the_gain_and_shrinks_without() -> None:
    found = {}
    for gain in (True, False):
        report = deep_tanh(depth=6, width=256, gain=gain)
        spreads = [layer.value.std for layer in report.layers]
        found[gain] = spreads[-1] / spreads[0]
        assert [f.code for f in report.findings] == ([] if gain else [Code.SPREAD_SHRINKS])
    assert found[True] >= 0.8 and found[False] <= 0.55


@pytest.mark.parametrize("op", [*SQUASHING, *RECTIFYING])
def test_the_slope_of_every_activation(op: str) -> None:
    """Against a difference quotient, on the layer's own captured call."""
    from chainrule.inspect.activations import slope

    x = np.linspace(-3, 3, 24).reshape(4, 6)
    h = 1e-6
    if op.startswith("rnn"):
        x, still, eye = x[:, None] if op == "rnn_sequence" else x, np.zeros((4, 6)), np.eye(6)

        def f(x: np.ndarray) -> np.ndarray:
            y = getattr(cr.ops, op)(x, still, eye, 0 * eye)
            return y[0] if isinstance(y, tuple) else y
    elif op == "swiglu":

        def f(x: np.ndarray) -> np.ndarray:
            return cr.ops.swiglu(x, np.ones_like(x))
    else:
        f = getattr(cr.ops, op)
    with cr.capture() as seen:
        f(x)
    expected = (f(x + h) - f(x - h)) / (2 * h)
    assert np.allclose(slope(seen[op]), expected, atol=1e-6)


@pytest.mark.parametrize(
    "values",
    [
        [1.0, np.nextafter(np.float32(1), np.float32(0))],
        [0.0],
        [-3e38, 3e38],
        [1e-45, 0.0],
        [np.nan, 1.0],
        [np.inf],
    ],
    ids=str,
)
def test_a_histogram_of_anything(values: list[float]) -> None:
    array = np.array(values * 50, np.float32)
    found = Histogram.of(array)
    assert found.counts.sum() == np.isfinite(array).sum()
    assert np.isfinite(found.edges).all() and (np.diff(found.edges) > 0).all()
