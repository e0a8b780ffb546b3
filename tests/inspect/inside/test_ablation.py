"""What a model loses without each head."""

from __future__ import annotations

import json

import numpy as np
import pytest

from chainrule.errors import ConfigError
from chainrule.inspect import ZeroHeads, ablation, effect
from chainrule.inspect.inside import patching
from tests.inspect.inside.planted import IDS, planted
from tests.inspect.inside.small import CHANGED, TRANSFORMERS, small


def test_the_planted_circuit_needs_its_two_heads() -> None:
    found = ablation(planted(), IDS)
    assert found.blocks == ["h.0", "h.1"]
    assert (found.kl > 0.1).tolist() == [[True, False], [False, True]]
    assert found.kl[0, 1] == found.kl[1, 0] == 0
    json.dumps(found.to_dict())


@pytest.mark.parametrize("name", [*TRANSFORMERS, "bert", *CHANGED])
def test_each_entry_is_one_ablation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, ids = small(name)
    calls: list[tuple[int, int]] = []
    found = ablation(model, ids, progress=lambda *done: calls.append(done))
    assert calls[-1] == (len(found.blocks), len(found.blocks))
    one = effect(model, ids, ZeroHeads(found.blocks[-1], 1))
    assert found.kl[-1, 1] == pytest.approx(one.kl.mean(), abs=1e-6)
    assert found.loss == pytest.approx(np.nanmean(one.before.loss), abs=1e-6)
    gained = np.nanmean(one.after.loss) - np.nanmean(one.before.loss)
    assert found.increase[-1, 1] == pytest.approx(gained, abs=1e-5)
    monkeypatch.setattr(patching, "LOGITS", 1)  # one row at a time
    assert np.allclose(ablation(model, ids).kl, found.kl, atol=1e-6)


def test_heads_that_look_at_a_source() -> None:
    model, ids = small("seq2seq")
    found = ablation(model, ids, cross=True)
    assert found.blocks == ["model.decoder.layers.0", "model.decoder.layers.1"]
    one = effect(model, ids, ZeroHeads(found.blocks[0], 0, cross=True))
    assert found.kl[0, 0] == pytest.approx(one.kl.mean(), abs=1e-6)


def test_refusals() -> None:
    with pytest.raises(ConfigError, match="LSTMLM has no attention"):
        ablation(*small("lstm"))
    with pytest.raises(ConfigError, match="GPT has no cross-attention"):
        ablation(*small("gpt"), cross=True)
