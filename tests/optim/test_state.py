"""Optimizer state is part of a checkpoint: resuming gives the same bits as never having stopped."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn
from chainrule.errors import CheckpointError, ShapeError
from chainrule.optim import SGD, Adam, Optimizer
from tests.optim.test_optimizer import ALL

DATA = np.random.default_rng(0).normal(size=(32, 5)).astype(np.float32)


def model() -> nn.MLP:
    cr.seed(3)
    return nn.MLP([4, 8, 1], "tanh")


def train(net: nn.MLP, optimizer: Optimizer, steps: range) -> None:
    for step in steps:
        batch = DATA[(step * 8) % 32 : (step * 8) % 32 + 8]
        optimizer.zero_grad()
        cr.ops.mse(net(batch[:, :4]), batch[:, 4:]).backward()
        optimizer.step()


@pytest.mark.parametrize("name", ALL)
def test_resume_is_bit_exact(name: str) -> None:
    whole = model()
    train(whole, ALL[name](whole.parameters()), range(10))

    first = model()
    optimizer = ALL[name](first.parameters())
    train(first, optimizer, range(4))
    saved = first.state(), optimizer.state()

    second = nn.MLP([4, 8, 1], "tanh")
    second.load(saved[0])
    resumed = ALL[name](second.parameters())
    resumed.load(saved[1])
    train(second, resumed, range(4, 10))

    assert resumed.steps == 10
    for key, value in whole.state().items():
        np.testing.assert_array_equal(second.state()[key], value, err_msg=key)


def test_the_state_is_needed() -> None:
    """Without it the same weights go another way: the test above can fail."""
    whole, other = model(), model()
    optimizer = Adam(whole.parameters(), 0.1)
    train(whole, optimizer, range(4))
    other.load(whole.state())
    train(whole, optimizer, range(4, 6))
    train(other, Adam(other.parameters(), 0.1), range(4, 6))
    assert not np.array_equal(whole.layers[0].weight.data, other.layers[0].weight.data)


def test_state_is_named_and_copied() -> None:
    net = model()
    optimizer = Adam(net.parameters())
    state = optimizer.state()
    assert list(state) == ["steps"] + [
        f"{slot}.{name}" for slot in "mv" for name, _ in net.parameters().items()
    ]
    assert state["m.layers.0.weight"].shape == (8, 4)
    train(net, optimizer, range(1))
    assert not state["m.layers.0.weight"].any()


def test_state_is_independent_of_the_order_in_the_block() -> None:
    """Freezing a layer reorders the flat block; the names still find their values."""
    net = model()
    net.layers[0].freeze()
    optimizer = Adam(net.parameters())
    train(net, optimizer, range(3))
    state = optimizer.state()
    assert not any("layers.0" in name for name in state)
    again = model()
    again.layers[0].freeze()
    other = Adam(again.parameters())
    other.load(state)
    np.testing.assert_array_equal(other.state()["v.layers.1.weight"], state["v.layers.1.weight"])


def test_states_that_do_not_fit_change_nothing() -> None:
    optimizer = Adam(model().parameters())
    good = optimizer.state()
    wrong_shape = good | {"v.layers.1.bias": np.ones(7)}
    for state, error, message in [
        (
            {k: v for k, v in good.items() if k != "steps"},
            CheckpointError,
            r"Adam: the saved state lacks steps \(must",
        ),
        (
            good | {"u.layers.0.weight": np.ones(1)},
            CheckpointError,
            "Adam: the saved state has the unknown u.layers.0",
        ),
        (SGD(model().parameters(), 0.1).state(), CheckpointError, r"lacks m\.layers\.0\.bias, .* \.\.\."),
        (wrong_shape, ShapeError, r"v\.layers\.1\.bias has shape \(1,\), state has \(7,\)"),
    ]:
        with pytest.raises(error, match=message):
            optimizer.load({k: v + 1 for k, v in state.items()})
        assert optimizer.steps == 0
        assert not any(a.any() for a in optimizer.arrays.values())
