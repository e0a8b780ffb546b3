"""New tensors."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr


def test_zeros_ones_arange() -> None:
    assert cr.zeros(2, 3).shape == cr.ones((2, 3)).shape == (2, 3)
    assert cr.zeros(2).dtype == np.float32 and cr.ones(3, requires_grad=True).requires_grad
    assert cr.arange(2, 5).tolist() == [2, 3, 4] and cr.arange(3).dtype.kind == "i"


def test_randn_repeats_after_a_seed_only() -> None:
    cr.seed(3)
    a, b = cr.randn(4), cr.randn(4)
    cr.seed(3)
    again = cr.randn(4)
    cr.seed(0)
    assert (a == again).all() and not (a == b).any() and a.dtype == np.float32


@pytest.mark.parametrize("make", [lambda: cr.zeros(-1), lambda: cr.randn("a"), lambda: cr.arange(1, 2, 0)])
def test_wrong_sizes_are_refused(make) -> None:
    with pytest.raises(cr.ShapeError):
        make()
