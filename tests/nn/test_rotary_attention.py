"""Attention with rotary positions: which positions matter, and what is normalized."""

from __future__ import annotations

from typing import Any

import numpy as np

import chainrule as cr
from chainrule.nn import RotaryAttention, frequencies

X = np.random.default_rng(0).normal(size=(1, 6, 8))


def layer(turning: Any, **options: Any) -> RotaryAttention:
    cr.seed(0)
    return RotaryAttention(8, 4, 2, 4, turning, **options).to(np.float64)


def test_without_frequencies_the_order_of_what_came_before_does_not_matter() -> None:
    order = [2, 0, 1, 4, 3, 5]  # the last position stays
    for turning, same in (
        (None, True),
        (np.zeros(2), True),
        (frequencies(4), False),
        (np.array([0, 0.3]), False),
    ):
        attend = layer(turning)
        one, other = (attend(x).numpy()[0, -1] for x in (X, X[:, order]))
        assert np.allclose(one, other, atol=1e-12) == same


def test_normalized_queries_and_keys_do_not_see_their_size() -> None:
    attend = layer(frequencies(4), qk_norm=1e-12)
    before = attend(X).numpy()
    for part in (attend.q_proj, attend.k_proj):
        part.weight.data[...] *= 7
    np.testing.assert_allclose(attend(X).numpy(), before, atol=1e-9)
    assert (layer(frequencies(4))(X).numpy() != before).any()


def test_biases_where_they_are_asked_for() -> None:
    names = {name for name, _ in layer(None, bias=(True, False)).named_parameters() if name.endswith("bias")}
    assert names == {"q_proj.bias", "k_proj.bias", "v_proj.bias"}
