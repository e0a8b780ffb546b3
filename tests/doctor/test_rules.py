"""Findings from hand-made measurements, just within each limit and just beyond it."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import chainrule as cr
from chainrule.doctor import initial_loss, rules
from chainrule.doctor.finding import Code, Finding
from chainrule.doctor.rules import of_curve
from chainrule.inspect import curve
from chainrule.inspect.activations import Distribution, LayerReport
from chainrule.inspect.gradients import ParameterReport


def spread(std: float) -> Distribution:
    return Distribution.of(np.array([-std, std]))


def layer(
    i: int = 0,
    *,
    op: str = "tanh",
    std: float = 1.0,
    grad: float | None = 1.0,
    flat: float | None = 0.0,
    dead: int = 0,
) -> LayerReport:
    back = None if grad is None else spread(grad)
    return LayerReport(f"h.{i}.{op}", op, 64, 100, spread(std), back, flat, tuple(range(dead)))


def of_layers(*layers: LayerReport, fresh: bool = True) -> list[Finding]:
    return list(rules.of_layers(layers, fresh=fresh))


@pytest.mark.parametrize(
    ("op", "flat", "word"),
    [
        ("tanh", 0.30, None),
        ("tanh", 0.31, "saturated"),
        ("relu", 0.31, None),
        ("relu", 0.90, None),
        ("relu", 0.91, "silent"),
        ("gru_cell", None, None),
    ],
)
def test_flat_layers(op: str, flat: float | None, word: str | None) -> None:
    found = of_layers(layer(op=op, flat=flat))
    codes = {None: [], "saturated": [Code.SATURATED], "silent": [Code.SILENT]}
    assert [f.code for f in found] == codes[word]
    assert all(word in f.measured and f.level == "problem" for f in found if word)


def test_the_worst_layer_is_named() -> None:
    (flat,) = of_layers(layer(0, flat=0.4), layer(1, flat=0.8), fresh=False)
    assert flat.measured.startswith("80% of h.1.tanh is saturated (2 layers over 30%)")
    (dead,) = of_layers(layer(0, dead=3), layer(1, dead=7), fresh=False)
    assert dead.measured == "7 of 100 units of h.1.tanh (2 layers with some)"


@pytest.mark.parametrize(("dead", "level"), [(10, "note"), (11, "problem")])
def test_dead_units(dead: int, level: str) -> None:
    assert [f.level for f in of_layers(layer(dead=dead))] == [level]
    assert not of_layers(layer(dead=0))


def test_layers_that_overflow() -> None:
    broken = LayerReport("h.1.relu", "relu", 2, 1, Distribution.of(np.array([1.0, math.inf])), None, None, ())
    (found,) = of_layers(layer(0), broken, fresh=False)
    assert found.measured == "h.1.relu is the first of 1 layer with values that are not finite"


# The factor per layer is the third root of what four layers do.
@pytest.mark.parametrize(("factor", "way"), [(0.89, "shrinks"), (0.91, None), (1.24, None), (1.26, "grows")])
def test_spreads_with_depth(factor: float, way: str | None) -> None:
    stack = [layer(i, std=factor**i) for i in range(4)]
    codes = {None: [], "shrinks": [Code.SPREAD_SHRINKS], "grows": [Code.SPREAD_GROWS]}
    assert [f.code for f in of_layers(*stack)] == codes[way]
    assert not of_layers(*stack, fresh=False)  # training may change spreads
    assert not of_layers(*stack[:2])  # two layers are no trend
    if way:
        (found,) = of_layers(*stack)
        assert f"{way} by {factor:.2f} per layer" in found.measured


@pytest.mark.parametrize(
    ("factor", "n", "way"),
    [
        (0.79, 12, "vanish"),  # 0.79^11 = 0.075
        (0.81, 13, None),  # less than a tenth in all, but slowly
        (0.5, 4, None),  # fast, but an eighth in all
        (0.5, 5, "vanish"),
        (1.26, 12, "explode"),
        (1.24, 13, None),
        (2.0, 4, None),
        (2.0, 5, "explode"),
        (0.1, 2, None),  # two layers are no trend
    ],
)
def test_gradients_with_depth(factor: float, n: int, way: str | None) -> None:
    """From the last layer back."""
    stack = [layer(i, grad=factor ** (n - 1 - i)) for i in range(n)]
    found = of_layers(*stack)
    codes = {None: [], "vanish": [Code.GRADIENTS_VANISH], "explode": [Code.GRADIENTS_EXPLODE]}
    assert [f.code for f in found] == codes[way]
    if way:
        assert found[0].measured == (
            f"at tanh they {way} by {factor:.2f} per layer: {factor ** (n - 1):.2g} times at the first layer"
        )
        assert ("clip" in found[0].advice) == (way == "explode")
    assert not of_layers(*stack, layer(n, grad=None))  # a layer nothing came back to


def parameter(
    name: str, *, weight: float = 1.0, grad: float = 1.0, update: float | None = 1e-3
) -> ParameterReport:
    return ParameterReport(name, (4, 4), weight, grad, update)


@pytest.mark.parametrize(
    ("ratio", "code", "level"),
    [
        (0.9e-5, Code.UPDATES_SMALL, "note"),
        (1.1e-5, Code.UPDATES_OK, "ok"),
        (0.09, Code.UPDATES_OK, "ok"),
        (0.11, Code.UPDATES_LARGE, "problem"),
    ],
)
def test_sizes_of_updates(ratio: float, code: Code, level: str) -> None:
    found = list(rules.of_parameters([parameter("W", weight=2.0, update=2.0 * ratio)]))
    assert [(f.code, f.level) for f in found] == [(code, level)]
    assert f"{ratio:.1g} of its length" in found[0].measured


def test_one_large_update_among_many_is_a_note() -> None:
    usual = [parameter(f"W{i}") for i in range(4)]
    (found,) = rules.of_parameters([*usual, parameter("head", update=0.5)])
    assert found.level == "note" and "Beyond 0.1 for head:" in found.meaning
    (found,) = rules.of_parameters([*usual, *(parameter(f"V{i}", update=0.5) for i in range(5))])
    assert found.level == "problem" and "V0, V1, V2 and 2 more" in found.meaning


def test_gradients_that_are_no_use() -> None:
    broken, silent, fine = parameter("a", grad=math.nan), parameter("b", grad=0.0), parameter("c")
    found = list(rules.of_parameters([broken, silent, fine]))[:2]
    assert [f.code for f in found] == [Code.GRADIENT_NOT_FINITE, Code.GRADIENT_ZERO]
    assert [f.measured for f in found] == ["a: the gradient is not finite", "b: the gradient is 0"]
    assert not list(rules.of_parameters([parameter("c", update=None)]))


# -- losses ---------------------------------------------------------------------------------------------------------


def test_the_spread_of_the_logits_explains_the_excess() -> None:
    """Logits N(0, s²) cost about s²/2 above ln V."""
    logits = 2 * np.random.default_rng(0).normal(size=(20_000, 50))
    loss = float(cr.ops.cross_entropy(logits, targets=np.zeros(20_000, int)))
    said = re.search(r"spread of (\S+)", initial_loss(loss, 50).meaning)
    assert said and float(said[1]) == pytest.approx(2.0, abs=0.15)


@pytest.mark.parametrize(
    ("losses", "code"),
    [
        (np.full(100, 3.3), Code.CURVE_FLAT),
        (np.r_[np.linspace(3.3, 1.5, 100), np.linspace(1.5, 3.2, 100)], Code.CURVE_DIVERGES),
        ([3.3, 3.0, math.nan, 2.0], Code.CURVE_NOT_FINITE),
        ([3.3], Code.CURVE_FLAT),
        ([3.1, 3.0, 2.9, 3.0, 3.2], Code.CURVE_RISES),
        (np.linspace(3.3, 0.981 * 3.3, 19), Code.CURVE_FLAT),
        (np.linspace(math.log(27) + 2.01, 2.0, 19), Code.CURVE_HOCKEY_STICK),
        (np.r_[np.linspace(3.3, 1.5, 10), 2.01 * np.ones(9)], Code.CURVE_DIVERGES),
    ],
)
def test_other_shapes(losses: np.ndarray, code: Code) -> None:
    found = of_curve(curve(losses, 27))
    assert found.code == code and found.level == "problem" and found.advice


@pytest.mark.parametrize(
    "losses",
    [
        np.linspace(3.3, 0.979 * 3.3, 19),  # 2.1% of the first loss
        np.linspace(math.log(27) + 1.99, 2.0, 19),
        np.r_[np.linspace(3.3, 1.5, 10), 1.99 * np.ones(9)],  # half a nat of noise
    ],
)
def test_curves_just_within_the_limits(losses: np.ndarray) -> None:
    found = of_curve(curve(losses, 27))
    assert found.code == Code.CURVE_OK and found.level == "ok"


@pytest.mark.parametrize(
    ("fraction", "level"), [(1.049, "ok"), (1.051, "problem"), (0.851, "ok"), (0.849, "problem")]
)
def test_limits_of_the_first_loss(fraction: float, level: str) -> None:
    assert initial_loss(fraction * math.log(27), 27).level == level
