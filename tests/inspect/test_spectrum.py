"""Dominant eigenvalues of recurrent and attention matrices."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn
from chainrule.errors import ConfigError, ShapeError
from chainrule.inspect import attention_spectra, recurrent_spectra, spectrum
from chainrule.models import GPT, GPTConfig


@pytest.mark.requirement("R-230")
def test_the_spectral_radius() -> None:
    assert spectrum(np.diag([0.9, 1.1])).radius == pytest.approx(max(abs(0.9), abs(1.1)))
    turn = spectrum([[0.0, -2.0], [2.0, 0.0]])
    assert turn.radius == pytest.approx(2)
    assert np.allclose(turn.to_dict()["eigenvalues"], [[0, 2], [0, -2]])
    with pytest.raises(ShapeError, match="must be square"):
        spectrum(np.ones((2, 3)))
    with pytest.raises(ConfigError, match="not finite"):
        spectrum([[np.nan]])


@pytest.mark.requirement("R-230")
def test_of_the_matrices_of_a_model() -> None:
    for layer, gates in ((nn.RNN(3, 4), "h"), (nn.GRU(3, 4), "rzn"), (nn.LSTM(3, 4), "ifgo")):
        layer.weight_h.array[:4] = np.diag([0.9, 1.1, -0.2, 0.1])
        found = recurrent_spectra(layer)
        assert [s.name for s in found] == [f"weight_h[{gate}]" for gate in gates]
        assert found[0].radius == pytest.approx(1.1) and len(found[0].eigenvalues) == 4
    model = GPT(GPTConfig(n_layer=2, n_head=2, n_embd=16, block_size=12, vocab_size=9))
    maps = attention_spectra(model, np.arange(12)[None] % 9)
    assert len(maps) == 4 and all(s.radius == pytest.approx(1, abs=1e-5) for s in maps)
    assert recurrent_spectra(model) == []
    assert cr.inspect.spectrum is spectrum
