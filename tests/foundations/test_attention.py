"""Attention built up on plain arrays: three ways to an average, any score, and the op that does it all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule import ops
from chainrule.errors import ShapeError
from chainrule.foundations.attention import (
    additive,
    attend,
    averaging_matrix,
    dot,
    running_average,
    scaled_dot,
    self_attend,
    wei,
)
from chainrule.foundations.probability import softmax
from tests.vectors import vector


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.requirement("R-275", "R-276", "R-277")
def test_the_averages_of_the_worked_example() -> None:
    v = vector("der-bow")
    X = np.array(v.inputs["X"])
    v.check(running_average(X))
    v.check(averaging_matrix(3) @ X)
    v.check(softmax(wei(3)) @ X)
    vector("002-bow-weights-T3").check(averaging_matrix(3))
    w = vector("002-wei-softmax-T3")
    assert wei(3).tolist() == w.inputs["W"]
    w.check(softmax(wei(3)))


@pytest.mark.requirement("R-275", "R-276", "R-277")
@given(st.integers(0, 9), st.integers(0, 5), st.integers(0, 99))
def test_loop_matrix_and_softmax_give_the_same_averages(T: int, C: int, seed: int) -> None:
    X = normal(T, C, seed=seed)
    want = [X[: t + 1].mean(axis=0) for t in range(T)]
    for got in (running_average(X), averaging_matrix(T) @ X, softmax(wei(T)) @ X if T else X):
        np.testing.assert_allclose(got, np.reshape(want, X.shape), rtol=1e-12, atol=1e-14)


@pytest.mark.requirement("R-278")
@given(st.integers(1, 7), st.integers(0, 99))
def test_queries_and_keys_make_the_averages_depend_on_the_content(T: int, seed: int) -> None:
    X, W = normal(T, 4, seed=seed), normal(3, 4, 2, seed=seed + 1)
    nothing_asked = self_attend(X, 0 * W[0], W[1], W[2], causal=True)
    np.testing.assert_allclose(nothing_asked.weights, averaging_matrix(T), rtol=1e-12)
    np.testing.assert_allclose(nothing_asked.output, running_average(X @ W[2]), rtol=1e-12, atol=1e-14)
    asked = self_attend(X, *W, causal=True).weights
    assert T == 1 or abs(asked - averaging_matrix(T)).max() > 1e-6


@pytest.mark.requirement("R-280")
def test_any_function_of_query_and_key_will_do_as_a_score() -> None:
    q, k, v = normal(3, 5), normal(4, 5, seed=1), normal(4, 2, seed=2)

    def distance(q: np.ndarray, k: np.ndarray) -> np.ndarray:
        return -((q[:, None] - k[None]) ** 2).sum(axis=-1)

    scores = {
        "dot": dot, "scaled": scaled_dot, "distance": distance,
        "additive": additive(normal(6, 5, seed=3), normal(6, 5, seed=4), normal(6, seed=5)),
    }  # fmt: skip
    found = {name: attend(q, k, v, score=score) for name, score in scores.items()}
    for name, (output, weights) in found.items():
        np.testing.assert_allclose(weights, softmax(scores[name](q, k)))
        np.testing.assert_allclose(output, weights @ v)
        assert abs(weights.sum(axis=1) - 1).max() < 1e-12
    np.testing.assert_allclose(found["scaled"].output, ops.attention(q, k, v), rtol=1e-12)
    np.testing.assert_allclose(found["dot"].output, ops.attention(q, k, v, scale=1.0), rtol=1e-12)
    assert found["distance"].weights.argmax(axis=1).tolist() == distance(q, k).argmax(axis=1).tolist()
    mixed = additive(normal(6, 5, seed=3), normal(6, 2, seed=4), normal(6, seed=5))
    assert attend(q, v, v, score=mixed).output.shape == (3, 2)  # queries and keys of different sizes


@pytest.mark.requirement("R-281", "R-285")
def test_the_worked_example_of_self_attention() -> None:
    v = vector("004-9.3-qkv")
    X, *W = (np.array(v.inputs[name]) for name in ("X", "WQ", "WK", "WV"))
    found = self_attend(X, *W)
    vector("004-9.3-weights").check(found.weights)
    vector("004-9.3-output").check(found.output)


@pytest.mark.requirement("R-296")
@given(st.permutations(range(5)), st.integers(0, 99))
def test_attention_has_no_notion_of_order(order: list[int], seed: int) -> None:
    X, W = normal(5, 4, seed=seed), normal(3, 4, 3, seed=seed + 1)
    before, after = self_attend(X, *W), self_attend(X[order], *W)
    np.testing.assert_allclose(after.output, before.output[order], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(after.weights, before.weights[order][:, order], rtol=1e-9, atol=1e-12)


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(ShapeError, match="3 keys, 2 values"):
        attend(normal(1, 2), normal(3, 2), normal(2, 2))
    with pytest.raises(ShapeError, match=r"the score gave \(1,\)"):
        attend(normal(1, 2), normal(3, 2), normal(3, 2), score=lambda q, k: np.zeros(1))
    with pytest.raises(ShapeError, match="2 queries, 3 keys"):
        attend(normal(2, 2), normal(3, 2), normal(3, 2), causal=True)
