"""Initialisers: the same distributions as torch.nn.init, judged by their largest value and their spread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from chainrule.nn import init

SHAPE = (400, 300)  # 120,000 draws: a standard deviation is known to 0.2 %, a bound to 0.01 %

PAIRS: dict[str, tuple[Callable[..., Any], Callable[[torch.Tensor], Any]]] = {
    "normal": (lambda s, r: init.normal(s, r, std=0.02), lambda w: torch.nn.init.normal_(w, std=0.02)),
    "uniform": (lambda s, r: init.uniform(s, r, bound=0.3), lambda w: torch.nn.init.uniform_(w, -0.3, 0.3)),
    "xavier_uniform": (init.xavier_uniform, torch.nn.init.xavier_uniform_),
    "xavier_uniform with a gain": (
        lambda s, r: init.xavier_uniform(s, r, gain=1.5),
        lambda w: torch.nn.init.xavier_uniform_(w, gain=1.5),
    ),
    "xavier_normal": (init.xavier_normal, torch.nn.init.xavier_normal_),
    "kaiming_normal": (init.kaiming_normal, lambda w: torch.nn.init.kaiming_normal_(w, nonlinearity="relu")),
    "kaiming_uniform": (
        init.kaiming_uniform,
        lambda w: torch.nn.init.kaiming_uniform_(w, nonlinearity="relu"),
    ),
    "kaiming_uniform, linear": (
        lambda s, r: init.kaiming_uniform(s, r, activation="linear"),
        lambda w: torch.nn.init.kaiming_uniform_(w, nonlinearity="linear"),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_same_distribution(name: str) -> None:
    ours, theirs = PAIRS[name]
    torch.manual_seed(0)
    got = ours(SHAPE, np.random.default_rng(0))
    want = theirs(torch.empty(SHAPE, dtype=torch.float64)).numpy()
    assert got.shape == SHAPE
    assert got.std() == pytest.approx(want.std(), rel=0.01)
    assert abs(got.mean()) < 5 * want.std() / got.size**0.5
    if "uniform" in name:
        assert np.abs(got).max() == pytest.approx(np.abs(want).max(), rel=1e-3)


def test_gains() -> None:
    """`torch_gain` has PyTorch's constants; `gain` is computed, and equal where those are exact."""
    for name in init.TORCH_GAINS:
        assert init.torch_gain(name) == pytest.approx(torch.nn.init.calculate_gain(name), rel=1e-12)
    for name in ("linear", "relu", "leaky_relu"):
        assert init.gain(name) == pytest.approx(torch.nn.init.calculate_gain(name), rel=1e-6)
    assert torch.nn.init.calculate_gain("tanh") - init.gain("tanh") > 0.07  # 5/3 against 1.5925
