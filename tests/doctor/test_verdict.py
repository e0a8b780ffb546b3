"""Underfit, ok or overfit, by two losses."""

from __future__ import annotations

import pytest

from chainrule.doctor import verdict


@pytest.mark.requirement("R-206")
def test_verdicts() -> None:
    assert [verdict(2.45, 2.45), verdict(2.0, 2.1), verdict(0.4, 2.9)] == ["underfit", "ok", "overfit"]
