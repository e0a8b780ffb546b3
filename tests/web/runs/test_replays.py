"""A step again, for the page: the numbers of `runs.replay`, and arrays of the step that is kept."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

import chainrule as cr
from tests.web.families import arrays, ran


def test_a_step_is_that_of_the_library(ask: Any, runs: Path) -> None:
    found = ask("/api/runs/one/replay", step=7)
    expected = cr.runs.replay(runs / "one", 7)
    assert (found["loss"], found["norm"], found["same"]) == (expected.loss, expected.norm, True)
    assert found["parameters"] == expected.report.to_dict()["parameters"]
    assert found["texts"][0] == {key: text[:600] for key, text in expected.texts[0].items()}
    assert str(found["loss"]) in ran(found["python"])[1]
    name = "gradient/wte.weight"
    array = ask("/api/runs/one/replay-array", step=7, array=name)
    assert found["arrays"][name] == array["shape"]
    assert np.array_equal(arrays(array["values"]), expected.arrays()[name])


def test_another_run_of_the_same_name_is_replayed_anew(ask: Any, runs: Path) -> None:
    before = ask("/api/runs/one/replay", step=7)["loss"]
    shutil.rmtree(runs / "one")
    shutil.copytree(runs / "group" / "two", runs / "one")
    found = ask("/api/runs/one/replay", step=7)["loss"]
    assert found == cr.runs.replay(runs / "group" / "two", 7).loss != before


def test_refusals(ask: Any, runs: Path) -> None:
    assert "has the steps 1 to 13" in ask("/api/runs/one/replay", step=99, status=400)["error"]
    found = ask("/api/runs/one/replay-array", step=3, array="gradient/x", status=400)
    assert "no array 'gradient/x'" in found["error"]
    assert "not in" in ask("/api/runs/none/replay", step=1, status=400)["error"]
