"""Functions with a corner: the derivative on the corner, and integers."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr


def slope(f, *values: float) -> list[float]:
    """Derivatives of f at the values."""
    leaves = [cr.Tensor([v], requires_grad=True) for v in values]
    f(*leaves).backward()
    return [float(leaf.grad[0]) for leaf in leaves]


def test_derivatives_on_the_corner() -> None:
    assert slope(cr.ops.abs, 0.0) == slope(cr.ops.sign, 3.0) == [0.0]
    assert slope(cr.ops.maximum, 2.0, 2.0) == slope(cr.ops.minimum, 2.0, 2.0) == [0.5, 0.5]
    assert slope(cr.ops.maximum, 2.0, 3.0) == [0.0, 1.0] and slope(cr.ops.minimum, 2.0, 3.0) == [1.0, 0.0]
    assert [slope(lambda x: x.clip(-1, 1), v) for v in (-1.0, 0.5, 1.0, 1.5)] == [[1.0], [1.0], [1.0], [0.0]]


def test_integers_stay_integers_where_they_can() -> None:
    assert cr.ops.abs(np.array([-2, 3])).dtype.kind == "i"
    assert cr.ops.clip(np.arange(5), min=1, max=3).tolist() == [1, 1, 2, 3, 3]
    assert cr.ops.clip(np.arange(3), min=0.5, max=1.5).tolist() == [0.5, 1.0, 1.5]
    assert cr.ops.logsumexp(np.arange(3)).dtype == cr.ops.exp(np.arange(3)).dtype == np.float32


def test_clip_needs_a_bound() -> None:
    with pytest.raises(cr.ConfigError, match="clip: min and max are both None"):
        cr.ops.clip(np.ones(2))
