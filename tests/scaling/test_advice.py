"""What to train with a budget."""

from __future__ import annotations

import pytest

from chainrule.scaling.advice import advise


def test_advice_for_a_budget() -> None:
    found = advise(1e23, available=1e11, served=1e13, flops_per_second=4e14, devices=1000, price=2.0)
    assert found.rule.params == pytest.approx(2.887e10, rel=1e-3)
    assert set(found.limited) == {"smaller", "epochs", "larger"}
    assert found.serving is not None and found.serving.params < found.law.params
    assert found.hours == pytest.approx(1e23 / 4e17 / 3600)
    assert found.price == pytest.approx(2.0 * 1000 * (found.hours or 0))
    assert "20 tokens per parameter" in str(found)
    plain = advise(1e18)
    assert not plain.limited and plain.serving is None and plain.hours is None
