"""Maps of attention in words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chainrule as cr
from chainrule.errors import ConfigError, ShapeError
from chainrule.inspect import maps
from chainrule.inspect.links import Link, attends, focus, strongest
from tests.vectors import vector


@pytest.mark.requirement("R-300")
def test_the_worked_example() -> None:
    """§9.3.1: token 1 attends to 2, token 2 to 1, token 3 to all alike."""
    v = vector("004-9.3-weights")
    X, W_q, W_k = (np.array(v.inputs[name]) for name in ("X", "WQ", "WK"))
    A = cr.ops.attention_weights(X @ W_q, X @ W_k)
    v.check(A)
    assert focus(A) == [(1,), (0,), (0, 1, 2)]
    assert strongest(A, 2) == [Link(0, 1, A[0, 1]), Link(1, 0, A[1, 0])]
    assert attends(A, ["1", "2", "3"]) == ["1 → 2 (0.77)", "2 → 1 (0.77)", "3 → all alike"]


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 99))
def test_the_strongest_links_are_the_largest_weights(T: int, S: int, seed: int) -> None:
    A = np.random.default_rng(seed).dirichlet(np.ones(S), size=T)
    links = strongest(A, n=T * S)
    assert [link.weight for link in links] == sorted(A.reshape(-1).tolist(), reverse=True)
    assert all(A[link.query, link.key] == link.weight for link in links)
    for row, found in zip(A, focus(A), strict=True):
        assert row.argmax() in found


def test_of_a_model_and_of_cross_attention() -> None:
    model = cr.models.GPT(cr.models.GPTConfig(n_layer=1, n_head=2, n_embd=8, block_size=4, vocab_size=9))
    (A,) = maps(model, np.array([[1, 2, 3]])).values()
    lines = attends(A[0, 1], ["the", "cat", "sat"])
    assert lines[0] == "the → the (1.00)" and len(lines) == 3
    assert attends([[0.2, 0.7, 0.1]], ["chat"], ["the", "cat", "sat"]) == ["chat → cat (0.70)"]


def test_what_is_no_map_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"map \(2, 2, 2\)"):
        focus(np.ones((2, 2, 2)))
    with pytest.raises(ShapeError, match="2 queries and 2 keys"):
        attends(np.ones((2, 3)), ["a", "b"])
    with pytest.raises(ConfigError, match="n is -1"):
        strongest(np.ones((2, 3)), -1)
