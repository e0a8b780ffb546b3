"""Gradients of parameters, and the updates an optimizer would make."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn, optim
from chainrule.doctor import Code, diagnose
from chainrule.inspect.gradients import update_norms
from tests.inspect.test_activations import squares


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
    assert Code.GRADIENTS_VANISH in {f.code for f in report.problems}


@pytest.mark.parametrize("kind", [optim.SGD, optim.Momentum, optim.AdamW, optim.RMSprop])
def test_norms_of_the_next_update_before_it_is_made(kind: type[optim.Optimizer]) -> None:
    x = np.random.default_rng(0).normal(size=(32, 8)).astype(np.float32)
    cr.seed(0)
    model = nn.MLP([8, 8, 3], "relu")
    model.layers[0].bias.requires_grad = False
    optimizer = kind(model.parameters(), 0.01)
    params = dict(model.named_parameters())
    for _ in range(3):
        optimizer.zero_grad()
        squares(model, x).backward()
        before = model.state()
        found = update_norms(optimizer)
        assert found.keys() == {id(param) for param in params.values() if param.requires_grad}
        optimizer.step()
        for name, param in params.items():
            moved = np.linalg.norm(param.array - before[name])
            assert found.get(id(param), 0.0) == pytest.approx(moved, rel=1e-5), name


def test_update_ratios_and_their_verdicts() -> None:
    x = np.random.default_rng(0).normal(size=(32, 8)).astype(np.float32)
    levels = {}
    for lr in (1e-8, 1e-3, 10.0):
        cr.seed(0)
        model = nn.MLP([8, 8, 3], "relu")
        report = diagnose(model, (x,), loss=squares, optimizer=optim.Adam(model.parameters(), lr))
        (finding,) = [f for f in report.findings if f.code.startswith("updates")]
        levels[lr] = finding.level, finding.code
        weight, bias = report.parameters[:2]
        assert weight.update_ratio == pytest.approx(weight.update_norm / weight.weight_norm)
        assert bias.update_ratio is None  # it starts at 0
    assert levels == {
        1e-8: ("note", Code.UPDATES_SMALL),
        1e-3: ("ok", Code.UPDATES_OK),
        10.0: ("problem", Code.UPDATES_LARGE),
    }
