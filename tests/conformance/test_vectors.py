"""The copied vectors are intact: printed and recomputed values agree exactly where the record says so."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests import vectors
from tests.vectors import decode, records, vector

PRINTED = [id for id, record in records().items() if record["agrees"] is not None]


def within(expected: Any, recomputed: Any, tolerance: Any) -> bool:
    """|expected - recomputed| <= tolerance everywhere; the reference may hold more keys than were printed."""
    if isinstance(expected, dict):
        return all(within(expected[k], recomputed[k], child(tolerance, k)) for k in expected)
    if isinstance(expected, list):
        return len(expected) == len(recomputed) and all(
            within(e, recomputed[i], child(tolerance, i)) for i, e in enumerate(expected)
        )
    if isinstance(expected, bool | str):
        return type(expected) is type(recomputed) and expected == recomputed
    return bool(expected == recomputed or abs(expected - recomputed) <= tolerance)


def child(tolerance: Any, key: Any) -> Any:
    """One number may stand for a whole subtree."""
    return tolerance[key] if isinstance(tolerance, dict | list) else tolerance


def test_counts() -> None:
    agreement = [record["agrees"] for record in records().values()]
    assert (agreement.count(True), agreement.count(False), agreement.count(None)) == (213, 54, 77)


@pytest.mark.parametrize("id", PRINTED)
def test_agrees_exactly_when_the_printed_value_is_within_tolerance(id: str) -> None:
    record = records()[id]
    expected, recomputed = decode(record["expected"]), decode(record["recomputed"])
    assert within(expected, recomputed, record["tolerance"]) is record["agrees"]


def test_references_and_infinities_are_resolved() -> None:
    assert vector("der-batchnorm-fold").inputs == vector("der-batchnorm-running").inputs
    running = vector("der-batchnorm-running").inputs
    assert running == vector("der-batchnorm").inputs | {"momentum": 0.1}
    assert vector("002-wei-softmax-T3").inputs["W"][0][1] == -math.inf


class TestCheck:
    v = vector("004-5.2-mlp-forward")  # {"W1x": [..3], "z1": [..3], "h1": [..3], "z2": x, "y": x}

    @pytest.fixture(autouse=True)
    def keep_out_of_the_report(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(vectors, "used", set())

    def right(self) -> dict[str, Any]:
        return decode(records()[self.v.id]["recomputed"])

    def test_accepts_the_reference(self) -> None:
        self.v.check(self.right())
        self.v.check({"z2": 0.2 + 1e-13}, keys=["z2"])

    @pytest.mark.parametrize(
        "wrong",
        [{"y": 0.55}, {"y": math.nan}, {"y": True}, {"y": [0.549833997312478]}, {"h1": [0.5, 0]}, {"new": 1}],
    )
    def test_refuses(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(AssertionError, match=r"004-5\.2-mlp-forward"):
            self.v.check(self.right() | wrong)

    def test_refuses_missing_and_additional_keys(self) -> None:
        with pytest.raises(AssertionError, match="got keys"):
            self.v.check({"y": 0.549833997312478})
        with pytest.raises(AssertionError, match="got keys"):
            self.v.check(self.right(), keys=["y"])
