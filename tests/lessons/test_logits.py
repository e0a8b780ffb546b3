"""Logits made by hand, and what they cost."""

from __future__ import annotations

import pytest

from chainrule.lessons.logits import hand_made_logits
from tests.vectors import vector


@pytest.mark.requirement("R-218")
def test_hand_made_logits() -> None:
    names = ["zeros", "uniform01", "right-label", "wrong-label", "normal1", "normal10", "normal100"]
    rows = hand_made_logits()
    assert len(rows) == len(names)
    for row, name in zip(rows, names, strict=True):
        v = vector(f"002-table1-{name}")
        if name == "normal1":  # the document gives only probabilities
            v.check({"loss": row.loss, "logits_recovered": row.logits}, rtol=1e-9)
            assert row.p == pytest.approx(v.inputs["p"], abs=1e-9)
        else:
            assert list(row.logits) == v.inputs["logits"]
            v.check({"loss": row.loss, "p": row.p}, rtol=1e-9)
