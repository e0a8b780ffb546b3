"""Two forward passes side by side."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ConfigError
from chainrule.inspect import ZeroHeads, compare, effect
from tests.inspect.inside.planted import IDS, INDUCTION, SECOND, planted
from tests.inspect.inside.small import FAMILIES, small


def test_an_effect_is_where_the_circuit_was_used() -> None:
    found = effect(planted(), IDS, ZeroHeads(*INDUCTION))
    used = list(SECOND)
    assert (found.kl[used] > 2).all() and found.kl[used].min() > found.kl[: used[0]][1:].max() / 2
    token, before, after = found.changes(used[0], k=1)[0]
    assert token == IDS[used[0] + 1] and before > 0.999 and after == pytest.approx(0.1)
    first, second = found.logit_difference(int(token), 1, used[0])
    assert first > 9 and second == 0
    json.dumps(found.to_dict())


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "mlp"])
def test_a_model_beside_itself_is_the_same(name: str) -> None:
    model, ids = small(name)
    found = compare(model, copy.deepcopy(model), ids)
    assert np.abs(found.kl).max() < 1e-6
    assert all(not row.any() for row in found.map_distances.values())


def test_kl_by_hand_and_the_head_that_moved() -> None:
    model, ids = small("gpt")
    other = copy.deepcopy(model)
    other.h[1].attn.c_attn.weight.data[8:16] *= -1  # the queries of head 1
    found = compare(model, other, ids)
    p, q = found.before.probabilities, found.after.probabilities
    assert np.allclose(found.kl, (p * np.log(p / q)).sum(-1), atol=1e-5)
    assert [(block, head) for block, head, _ in found.moved_heads(1)] == [("h.1", 1)]
    assert [distance for *_, distance in found.moved_heads(4)][1:] == [0, 0, 0]
    A, B = found.before.attention("h.1")[1], found.after.attention("h.1")[1]
    assert found.map_distances["h.1"][1] == pytest.approx(np.abs(A - B).sum() / 2 / len(ids), rel=1e-5)


def test_models_of_other_sizes() -> None:
    a, b = (
        cr.models.make("gpt", n_layer=n, n_head=2, n_embd=16, block_size=8, vocab_size=10) for n in (1, 3)
    )
    assert list(compare(a, b, [1, 2, 3]).map_distances) == ["h.0"]
    c = cr.models.make("gpt", n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=12)
    with pytest.raises(ConfigError, match="vocabularies of 10 and 12 tokens"):
        compare(a, c, [1, 2, 3])
