"""Gradients by depth, with and without residual connections."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.errors import ConfigError
from chainrule.lessons.depth import gradients_by_depth, random_stack
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


@pytest.mark.requirement("R-225")
def test_residual_connections_keep_the_gradient() -> None:
    weights, x = random_stack(50, 64, 0.5), np.random.default_rng(0).normal(size=64)
    assert gradients_by_depth(weights, x, activation="tanh")[0] < 1e-6
    assert gradients_by_depth(weights, x, activation="tanh", residual=True)[0] > 0.1
