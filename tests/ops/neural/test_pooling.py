"""One row for a text: by hand, padding, misuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import ops
from chainrule.errors import ChainruleError, ConfigError, ShapeError

X = np.arange(12.0).reshape(2, 3, 2)
MASK = np.array([[True, True, False], [True, False, False]])


def test_by_hand() -> None:
    assert ops.pool(X, mask=MASK).tolist() == [[1, 2], [6, 7]]
    assert ops.pool(X, mask=MASK, kind="last").tolist() == [[2, 3], [6, 7]]


@pytest.mark.parametrize("kind", ["mean", "last"])
def test_padding_has_no_say_and_gets_no_gradient(kind: str) -> None:
    other = np.where(MASK[..., None], X, 99.0)
    np.testing.assert_array_equal(ops.pool(other, mask=MASK, kind=kind), ops.pool(X, mask=MASK, kind=kind))
    _, saved = ops.pool.forward(X, mask=MASK, kind=kind)
    (dx,) = ops.pool.backward(np.ones((2, 2)), saved, (True,))
    assert not dx[~MASK].any() and dx.sum() == 4


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_what_is_not_a_number_is_in_the_maximum_and_in_its_gradient(backend: str) -> None:
    x = np.array([[[1, 1], [np.nan, 2], [3, 2], [9, 9]]], np.float32)
    with cr.backend(backend):
        leaf = cr.Tensor(x, requires_grad=True)
        y = ops.pool(leaf, mask=[[True, True, True, False]], kind="max")
        y.sum().backward()
    np.testing.assert_array_equal(y.numpy(), [[np.nan, 2]])
    nan = np.nan  # padding has none, and equal maxima share
    np.testing.assert_array_equal(leaf.grad, [[[nan, 0], [nan, 0.5], [nan, 0.5], [0, 0]]])


def test_a_mask_of_numbers_is_one_of_truth_values() -> None:
    np.testing.assert_array_equal(ops.pool(X, mask=MASK.astype(int).tolist()), ops.pool(X, mask=MASK))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"mask": MASK[:, :2]},
            ShapeError,
            r"x \(2, 3, 2\), mask \(2, 2\) \(must be \(B, T, C\) and \(B, T\)",
        ),
        ({"mask": ~MASK & MASK}, ShapeError, "row 0 has no token"),
        ({"mask": ~MASK, "kind": "last"}, ShapeError, "row 0 has padding before a token"),
        ({"mask": MASK, "kind": "first"}, ConfigError, "kind is 'first' .must be mean, last or max"),
    ],
)
def test_misuse_is_named(options: dict[str, Any], error: type[ChainruleError], message: str) -> None:
    with pytest.raises(error, match=message):
        ops.pool(X, **options)


def test_a_mask_that_is_added_to_scores_is_refused() -> None:
    """As booleans it would mean its opposite: 0 at tokens."""
    with pytest.raises(ConfigError, match=r"mask has dtype float64 \(must be bool, True at tokens\)"):
        ops.pool(np.ones((1, 2, 3)), mask=np.array([[0.0, -np.inf]]))
