"""Gradients by depth, and the updates an optimiser would make."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn, optim
from chainrule.doctor import diagnose
from chainrule.errors import ConfigError
from chainrule.inspect import gradients_by_depth, random_stack, trial_step
from tests.inspect.test_activations import squares
from tests.vectors import vector


@pytest.mark.requirement("R-224")
@pytest.mark.parametrize("name", ["vanish", "explode"])
def test_gradients_by_depth_are_powers(name: str) -> None:
    v = vector(f"004-9.9.1-{name}")
    found = []
    for depth in v.inputs["n"]:
        norms = gradients_by_depth([v.inputs["base"] * np.eye(3)] * depth, np.ones(3))
        assert norms.shape == (depth + 1,) and norms[-1] == 1
        assert np.allclose(norms[:-1] / norms[1:], v.inputs["base"])
        found.append(norms[0])
    v.check(found)
    with pytest.raises(ConfigError, match="no weights"):
        gradients_by_depth([], np.ones(3))


@pytest.mark.requirement("R-224")
def test_gradient_norms_per_layer_of_a_model() -> None:
    x = np.random.default_rng(0).normal(size=(32, 16)).astype(np.float32)
    cr.seed(0)
    model = nn.MLP([16] * 12, "tanh")
    for layer in model.layers:
        layer.weight.array *= 0.4
    report = diagnose(model, (x,), loss=squares)
    assert [p.name for p in report.parameters] == list(dict(model.named_parameters()))
    params = dict(model.named_parameters())
    for found in report.parameters:
        params[found.name].zero_grad()
    squares(model, x).backward()
    for found in report.parameters:
        assert found.grad_norm == pytest.approx(np.linalg.norm(params[found.name].grad), rel=1e-5)
    spreads = [layer.grad.std for layer in report.layers if layer.grad]
    assert spreads[0] < 0.05 * spreads[-1]
    assert any("vanish" in f.measured for f in report.problems)


@pytest.mark.requirement("R-225")
def test_residual_connections_keep_the_gradient() -> None:
    weights, x = random_stack(50, 64, 0.5), np.random.default_rng(0).normal(size=64)
    assert gradients_by_depth(weights, x, activation="tanh")[0] < 1e-6
    assert gradients_by_depth(weights, x, activation="tanh", residual=True)[0] > 0.1


@pytest.mark.parametrize("kind", [optim.SGD, optim.Momentum, optim.AdamW, optim.RMSprop])
def test_a_trial_step_tells_the_next_update_and_undoes_it(kind: type[optim.Optimizer]) -> None:
    x = np.random.default_rng(0).normal(size=(32, 8)).astype(np.float32)
    cr.seed(0)
    model = nn.MLP([8, 8, 3], "relu")
    optimiser = kind(model.parameters(), 0.01)
    for _ in range(3):
        optimiser.zero_grad()
        squares(model, x).backward()
        before, state = model.state(), optimiser.state()
        moved = trial_step(optimiser)
        assert all((value == before[name]).all() for name, value in model.state().items())
        assert all((value == state[name]).all() for name, value in optimiser.state().items())
        optimiser.step()
        for name, value in model.state().items():
            assert np.array_equal(value, before[name] + moved[name]) or np.allclose(
                value - before[name], moved[name], atol=1e-7
            )


def test_update_ratios_and_their_verdicts() -> None:
    x = np.random.default_rng(0).normal(size=(32, 8)).astype(np.float32)
    levels = {}
    for lr in (1e-8, 1e-3, 10.0):
        cr.seed(0)
        model = nn.MLP([8, 8, 3], "relu")
        report = diagnose(model, (x,), loss=squares, optimiser=optim.Adam(model.parameters(), lr))
        (finding,) = [f for f in report.findings if f.about == "updates"]
        levels[lr] = finding.level, finding.advice.partition(",")[0]
        weight, bias = report.parameters[:2]
        assert weight.update_ratio == pytest.approx(weight.update_norm / weight.weight_norm)
        assert bias.update_ratio is None  # it starts at 0
    assert levels == {
        1e-8: ("note", "Take a larger learning rate"),
        1e-3: ("ok", ""),
        10.0: ("problem", "Take a smaller learning rate"),
    }
