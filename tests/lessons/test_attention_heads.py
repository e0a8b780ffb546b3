"""A trained model whose heads do different things, seen through `inspect`."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.inspect import maps, patterns
from chainrule.lessons.attention_heads import texts, trained_gpt
from chainrule.models import GPT


@pytest.fixture(scope="module")
def trained() -> GPT:
    return trained_gpt()


@pytest.mark.requirement("R-295", "R-299", "R-500")
def test_the_heads_of_a_trained_model_specialize(trained: GPT) -> None:
    ids = texts(16, step=1 << 20)

    def heads(model: GPT) -> np.ndarray:
        (A,) = maps(model, ids).values()
        assert A.shape == (16, 2, 8, 8) and (A >= 0).all()  # (B, H, T, T)
        np.testing.assert_allclose(A.sum(axis=-1), 1, rtol=1e-5)
        return A.mean(axis=0)

    assert abs(np.subtract(*heads(trained_gpt(steps=0)))).max() < 0.1
    found = heads(trained)
    assert abs(found - found.swapaxes(-1, -2)).max() > 0.5
    to_first, to_previous = found[:, 2:, 0].mean(axis=1), found[:, range(2, 8), range(1, 7)].mean(axis=1)
    assert sorted([to_first.argmax(), to_previous.argmax()]) == [0, 1]  # one head each
    assert to_first.max() > 0.8 and to_previous.max() > 0.8
    (kinds,) = ([head.kind for head in layer] for layer in patterns(trained, ids).values())
    assert sorted(kinds) == ["diagonal", "stripe"]


def test_it_learns_what_it_is_asked(trained: GPT) -> None:
    ids = texts(64, step=1 << 20)
    wanted = 3 * ids[:, :1] + np.roll(ids, 1, axis=1)
    assert (trained(ids).numpy().argmax(-1) == wanted)[:, 1:].mean() > 0.95
