"""Rotary positions: a rotation, relative by construction, the same in both layouts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chainrule as cr
from chainrule.errors import ShapeError
from chainrule.ops import attention_weights, rotary
from tests.vectors import vector


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.requirement("R-314")
def test_shift_of_the_sinusoidal_encoding() -> None:
    """p(t+3) = R p(t): (sin, cos) pairs turn clockwise, so a shift by 3 is the rotation for position -3."""
    v = vector("der-pe-rotation")
    d, k = v.inputs["d"], v.inputs["k"]

    def shift(x: np.ndarray, by: int) -> np.ndarray:
        return rotary(x, positions=np.full(len(x), -by), interleaved=True)

    start = np.array([[0.0, 1.0] * (d // 2)])  # p(0)
    v.check({"R": shift(np.eye(d), k).T, "p5": shift(start, 5)[0], "p8": shift(shift(start, 5), k)[0]})


@pytest.mark.requirement("R-318")
@pytest.mark.parametrize("interleaved", [False, True])
@given(t=st.integers(0, 5000), s=st.integers(0, 5000), by=st.integers(-5000, 5000), seed=st.integers(0, 99))
def test_scores_depend_on_the_distance_alone(interleaved: bool, t: int, s: int, by: int, seed: int) -> None:
    q, k = normal(1, 8, seed=seed), normal(1, 8, seed=seed + 100)

    def score(t: int, s: int) -> float:
        turned = (rotary(x, positions=[at], interleaved=interleaved) for x, at in ((q, t), (k, s)))
        return float(np.sum(next(turned) * next(turned)))

    assert score(t + by, s + by) == pytest.approx(score(t, s), abs=1e-9)


@pytest.mark.requirement("R-318", declared="docs/derivations/rotary.md")
def test_relative_encodings_are_here_or_declared_out_of_scope() -> None:
    """A bias by distance is a float mask: it is what the logarithms of the weights differ by."""
    T, slope = 6, 0.5
    bias = -slope * np.abs(np.subtract.outer(np.arange(T), np.arange(T))).astype(float)
    weights = attention_weights(np.zeros((T, 4)), np.zeros((T, 4)), mask=bias)
    scores = np.log(weights) - np.log(np.diag(weights))[:, None]
    np.testing.assert_allclose(scores, bias, atol=1e-12)
    page = (Path(__file__).parents[3] / "docs/derivations/rotary.md").read_text(encoding="utf-8")
    sentence = page.split("## Scores depend on the distance alone")[1].split("##")[0]
    assert "float `mask` of `ops.attention`" in sentence
    assert "learned relative positions" in sentence and "out of scope" in sentence


def test_position_zero_is_the_identity_and_norms_are_kept() -> None:
    x = normal(2, 5, 6)
    np.testing.assert_array_equal(rotary(x, positions=np.zeros(5)), x)
    turned = rotary(x, positions=np.arange(5))
    np.testing.assert_allclose(np.linalg.norm(turned, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-13)
    assert abs(turned - x)[:, 1:].max() > 0.1


def test_known_angles() -> None:
    """D = 4 and base 100: frequencies 1 and 1/10, pairs (0, 2) and (1, 3) or (0, 1) and (2, 3)."""
    x = np.array([[1.0, 2.0, 3.0, 4.0]])
    c, s = np.cos([3, 0.3]), np.sin([3, 0.3])
    halves = [c[0] - 3 * s[0], 2 * c[1] - 4 * s[1], 3 * c[0] + s[0], 4 * c[1] + 2 * s[1]]
    np.testing.assert_allclose(rotary(x, positions=[3], base=100.0), [halves], rtol=1e-14)
    neighbors = [c[0] - 2 * s[0], 2 * c[0] + s[0], 3 * c[1] - 4 * s[1], 4 * c[1] + 3 * s[1]]
    got = rotary(x, positions=[3], base=100.0, interleaved=True)
    np.testing.assert_allclose(got, [neighbors], rtol=1e-14)


def test_layouts_differ_by_a_permutation() -> None:
    x, order = normal(5, 6), [0, 3, 1, 4, 2, 5]  # half-split -> interleaved
    interleaved = rotary(x[:, order], positions=np.arange(5), interleaved=True)
    np.testing.assert_array_equal(interleaved, rotary(x, positions=np.arange(5))[:, order])


def test_backward_turns_back() -> None:
    x = cr.Tensor(normal(3, 5, 6), requires_grad=True)
    y = rotary(x, positions=np.arange(5))
    y.backward(y.numpy())
    assert x.grad is not None
    np.testing.assert_allclose(x.grad, x.numpy(), rtol=1e-12)


def test_positions_per_sequence() -> None:
    x = normal(2, 3, 4, 6)  # (B, H, T, D), the second sequence starts later
    positions = np.array([[0, 1, 2, 3], [7, 8, 9, 10]])[:, None]  # (B, 1, T)
    y = rotary(x, positions=positions)
    np.testing.assert_array_equal(y[1], rotary(x[1], positions=np.arange(7, 11)))


def test_far_positions_keep_float32_accuracy() -> None:
    x, far = normal(1, 64), [1_000_003]
    got = rotary(x.astype(np.float32), positions=far)
    np.testing.assert_allclose(got, rotary(x, positions=far), atol=1e-6)


@pytest.mark.parametrize(
    "shape, positions, message",
    [
        ((5, 7), np.arange(5), "rotary: x has shape (5, 7) (must be (..., time, size) with an even size)"),
        ((8,), [0], "rotary: x has shape (8,) (must be (..., time, size) with an even size)"),
        (
            (2, 5, 4),
            np.arange(6),
            "rotary: positions have shape (6,), x has (2, 5, 4) (must broadcast to (2, 5))",
        ),
    ],
)
def test_errors(shape: tuple[int, ...], positions: Any, message: str) -> None:
    with pytest.raises(ShapeError) as error:
        rotary(np.zeros(shape), positions=positions)
    assert str(error.value) == message


def test_frequencies_take_the_place_of_the_base() -> None:
    x = np.random.default_rng(0).normal(size=(5, 8))
    given = rotary(x, positions=np.arange(5), frequency=100.0 ** (-np.arange(0, 8, 2) / 8))
    np.testing.assert_array_equal(given, rotary(x, positions=np.arange(5), base=100.0))
    np.testing.assert_array_equal(rotary(x, positions=np.arange(5), frequency=np.zeros(4)), x)
    with pytest.raises(ShapeError, match=r"frequency has shape \(3,\), x has \(5, 8\) \(must be \(4,\)\)"):
        rotary(x, positions=np.arange(5), frequency=np.zeros(3))
