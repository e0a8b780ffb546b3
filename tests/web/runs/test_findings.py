"""What the doctor said while a run trained, as the page shows it."""

from __future__ import annotations

from typing import Any

import pytest

from chainrule.doctor import Finding
from chainrule.doctor.finding import Code
from chainrule.web.runs.findings import MOST, Findings


def finding(code: Code, level: Any = "problem") -> dict[str, Any]:
    return Finding(code, level, "loss", "1", "it rose", "a smaller rate").to_dict()


def test_problems_are_counted_beyond_those_that_are_shown() -> None:
    found = Findings()
    for step in range(MOST + 5):
        found.add({"step": step, "finding": finding(Code.LOSS_SPIKE)})
    assert len(found.listed()) == MOST and found.problems == MOST + 5


def test_a_look_counts_once_and_not_beside_what_was_told() -> None:
    found = Findings()
    for step in (1, 2):
        found.add(
            {"step": step, "watch": {"findings": [finding(Code.LOSS_SPIKE), finding(Code.UPDATES_LARGE)]}}
        )
    assert [each["step"] for each in found.listed()] == [1, 1] and found.problems == 2
    found.add({"step": 3, "finding": finding(Code.LOSS_SPIKE)})
    assert [each["step"] for each in found.listed()] == [1, 3] and found.problems == 2


@pytest.mark.parametrize(("code", "setting"), [(Code.LOSS_SPIKE, "lr"), (Code.CLIPPING, None)])
def test_the_setting_to_change_first(code: Code, setting: str | None) -> None:
    found = Findings()
    found.add({"step": 1, "finding": finding(code)})
    assert found.listed()[0]["setting"] == setting
