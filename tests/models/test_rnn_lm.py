"""Recurrent language models: right gradients, a state to go on from, any length, a first loss near ln V."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ConfigError, ShapeError
from chainrule.models import FAMILIES, RecurrentConfig, RecurrentLM

TINY = RecurrentConfig(n_layer=2, n_embd=5, n_hidden=6, block_size=7, vocab_size=11)
NAMES = ["rnn", "gru", "lstm"]
IDS = np.random.default_rng(1).integers(11, size=(2, 8))
INPUTS, TARGETS = IDS[:, :-1], IDS[:, 1:]


@pytest.fixture(params=NAMES)
def model(request: pytest.FixtureRequest) -> RecurrentLM:
    cr.seed(0)
    made = FAMILIES[request.param].model(TINY)
    assert isinstance(made, RecurrentLM)
    return made


def test_every_gradient_in_float64(model: RecurrentLM) -> None:
    model.to(np.float64)
    _, state = model.loss_from(None, TARGETS, INPUTS)
    assert cr.gradcheck_model(model.parameters(), lambda: model.loss(INPUTS, TARGETS)) < 1e-6
    assert cr.gradcheck_model(model.parameters(), lambda: model.loss_from(state, INPUTS, TARGETS)[0]) < 1e-6


def test_text_in_pieces_is_the_text(model: RecurrentLM) -> None:
    """The state is all that a piece needs of those before it."""
    whole, last = model.loss_from(None, INPUTS[:, :6], TARGETS[:, :6])
    state, losses = None, []
    for start in range(0, 6, 2):
        piece = slice(start, start + 2)
        loss, state = model.loss_from(state, INPUTS[:, piece], TARGETS[:, piece])
        losses.append(loss.item())
    assert np.mean(losses) == pytest.approx(whole.item(), rel=1e-5)
    assert state is not None
    for a, b in zip(state, last, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert all(isinstance(part, np.ndarray) for layer in state for part in layer)  # gradients end here


@pytest.mark.requirement("R-234")
def test_the_same_weights_serve_any_length(model: RecurrentLM) -> None:
    count = model.count()
    for T in (1, 5, 50):
        assert model(np.zeros((2, T), int)).shape == (2, T, 11)
    assert model.count() == count


def test_what_does_not_fit_is_refused(model: RecurrentLM) -> None:
    with pytest.raises(ShapeError, match=rf"{type(model).__name__}: ids \(2, 0\)"):
        model(INPUTS[:, :0])
    with pytest.raises(ConfigError, match="n_hidden is 0"):
        RecurrentConfig(n_hidden=0)
    with pytest.raises(ConfigError, match=r"dropout is 1\.0"):
        RecurrentConfig(dropout=1.0)
