"""Activation patching finds the place that carries the answer."""

from __future__ import annotations

import json

import numpy as np
import pytest

from chainrule.errors import ConfigError, DataError
from chainrule.inspect import Patch, patching, view
from chainrule.inspect.inside import patching as module
from tests.inspect.inside.planted import IDS, planted
from tests.inspect.inside.small import FAMILIES, PAIR, small

CLEAN = IDS[:8]  # START a b c d e f a: b comes next
CORRUPTED = np.array([*CLEAN[:2], 8, *CLEAN[3:]])  # another letter after the first a
RIGHT, WRONG = int(CLEAN[2]), 8


def test_the_planted_circuit_is_found() -> None:
    """b is read at position 2 by the induction head, and is at the last position afterwards."""
    calls: list[tuple[int, int]] = []
    found = patching(planted(), CLEAN, CORRUPTED, RIGHT, WRONG, progress=lambda *done: calls.append(done))
    wanted = np.zeros((2, 8))
    wanted[0, 2] = wanted[1, 7] = 1
    assert np.allclose(found.recovered, wanted, atol=1e-4)
    assert found.clean == pytest.approx(-found.corrupted, rel=1e-3) and found.clean > 9
    assert calls == [(1, 2), (2, 2)]
    json.dumps(found.to_dict())
    heads = patching(planted(), CLEAN, CORRUPTED, RIGHT, WRONG, part="attention")
    assert np.argwhere(heads.recovered > 0.5).tolist() == [[1, 7]]
    assert not patching(planted(), CLEAN, CORRUPTED, RIGHT, WRONG, part="mlp").recovered.round(6).any()


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "mlp"])
def test_each_entry_is_one_patch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, ids = small(name)
    other = (PAIR[0], [2, 4, 6]) if isinstance(ids, tuple) else [2, *ids[1:]]
    found = patching(model, ids, other, 4, 3)
    last = found.blocks[-1]
    patched = view(model, other, Patch(last, view(model, ids).stream(last), positions=1)).logits[-1]
    assert found.difference[-1, 1] == pytest.approx(patched[4] - patched[3], abs=1e-5)
    monkeypatch.setattr(module, "LOGITS", 1)  # one row at a time
    assert np.allclose(patching(model, ids, other, 4, 3).difference, found.difference, atol=1e-5)


def test_an_encoder_is_patched_by_the_positions_of_the_source() -> None:
    model, ids = small("t5")
    other = ([2, *PAIR[0][1:]], PAIR[1])
    found = patching(model, ids, other, 4, 3, blocks=["encoder.block.0", 1])
    assert found.blocks == ["encoder.block.0", "encoder.block.1"] and found.recovered.shape == (2, 5)
    with pytest.raises(ConfigError, match="must be of one text"):
        patching(model, ids, other, 4, 3, blocks=[0, -1])


def test_refusals() -> None:
    with pytest.raises(DataError, match=r"texts of shapes \[\(1, 8\)\] and \[\(1, 5\)\]"):
        patching(planted(), CLEAN, CLEAN[:5], RIGHT, WRONG)
    with pytest.raises(DataError, match="both texts have a difference of logits"):
        patching(planted(), CLEAN, CLEAN, RIGHT, WRONG)
