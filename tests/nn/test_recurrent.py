"""Recurrent layers put together: stacks that go on from a state, and both directions at once."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn
from chainrule.errors import ConfigError

CELLS = [nn.RNN, nn.GRU, nn.LSTM]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("cell", CELLS)
def test_a_stack_goes_on_from_its_state(cell: type) -> None:
    stack = nn.Stack([cell(3, 4), cell(4, 5)]).to(np.float64)
    x = normal(2, 7, 3)
    whole, last = stack(x)
    first, state = stack(x[:, :3])
    second, after = stack(x[:, 3:], state)
    np.testing.assert_allclose(
        np.concatenate([first.numpy(), second.numpy()], axis=1), whole.numpy(), rtol=1e-12
    )
    for a, b in zip(after, last, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-12)
    assert [part.shape for layer in stack.start(2) for part in layer] == [
        part.shape for layer in last for part in layer
    ]


@pytest.mark.parametrize("cell", CELLS)
def test_gradients_of_a_stack_and_of_both_directions(cell: type) -> None:
    stack = nn.Stack([cell(3, 4), cell(4, 2)]).to(np.float64)
    assert cr.gradcheck(lambda x: stack(x)[0], normal(2, 4, 3)) < 1e-6
    both = nn.Bidirectional(cell(3, 2), cell(3, 2)).to(np.float64)
    lengths = np.array([4, 2])
    assert cr.gradcheck(lambda x: both(x, lengths)[0], normal(2, 4, 3)) < 1e-6
    loss = normal(2, 4, 4, seed=1)
    assert cr.gradcheck_model(both.parameters(), lambda: (both(normal(2, 4, 3)) * loss).sum()) < 1e-6


def test_dropout_falls_between_the_layers_in_training_only() -> None:
    stack = nn.Stack([nn.RNN(3, 50), nn.RNN(50, 4)], dropout=0.5)
    x = normal(2, 4, 3).astype(np.float32)
    assert not np.array_equal(stack(x)[0].numpy(), stack(x)[0].numpy())
    stack.eval()
    assert np.array_equal(stack(x)[0].numpy(), stack(x)[0].numpy())
    with pytest.raises(ConfigError, match="no layers"):
        nn.Stack([])


def test_both_directions_see_the_whole_text_and_nothing_of_the_padding() -> None:
    both = nn.Bidirectional(nn.GRU(3, 4), nn.GRU(3, 4)).to(np.float64)
    x = normal(2, 6, 3)
    y = both(x).numpy()
    assert y.shape == (2, 6, 8)
    np.testing.assert_array_equal(y[..., :4], both.ahead(x)[0].numpy())
    np.testing.assert_array_equal(y[..., 4:], both.back(x[:, ::-1])[0].numpy()[:, ::-1])
    changed = x.copy()
    changed[:, -1] += 1
    assert (both(changed).numpy()[:, 0, 4:] != y[:, 0, 4:]).any()  # the first output knows the last input

    lengths = np.array([6, 2])
    padded = both(x, lengths).numpy()
    np.testing.assert_allclose(padded[1, :2], both(x[1:, :2]).numpy()[0], rtol=1e-12)
    np.testing.assert_allclose(padded[0], y[0], rtol=1e-12)
