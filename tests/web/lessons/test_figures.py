"""Figures of lessons: numbers are the library's, knobs have bounds, and programs run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule.lessons.learning_rate import descend
from chainrule.web.lessons import figures


@pytest.mark.parametrize("name", figures.FIGURES)
def test_every_figure_is_drawn_and_its_program_runs(ask: Any, name: str, capsys: Any) -> None:
    found = ask(f"/api/figures/{name}")
    assert found["plots"] or found["maps"]
    for plot in found["plots"]:
        for series in plot["series"]:
            assert len(series["x"]) == len(series["y"]) > 0 and np.isfinite(series["y"]).all()
    exec(found["python"], {})
    assert capsys.readouterr().out
    for knob in found["knobs"]:
        for value in (knob["low"], knob["high"]):
            assert ask(f"/api/figures/{name}", **{knob["name"]: value})["numbers"]


def numbers(found: dict[str, Any]) -> dict[str, float]:
    return {each["name"]: each["value"] for each in found["numbers"]}


def test_descent_and_slope(ask: Any) -> None:
    assert numbers(ask("/api/figures/descent", rate=0.5))["θ after one step"] == descend(0.5, 1)[-1] == 0
    found = numbers(ask("/api/figures/slope", x=1.0, h=0.5))
    assert found["slope of the tangent"] == pytest.approx(2) and found[
        "slope of the secant"
    ] == pytest.approx(3.5)


def test_each_head_took_one_job(ask: Any) -> None:
    found = numbers(ask("/api/figures/heads"))
    first = [found[f"head {h}: on the first token"] > 0.8 for h in (1, 2)]
    before = [found[f"head {h}: on the one before"] > 0.8 for h in (1, 2)]
    assert sorted(first) == sorted(before) == [False, True] and first != before


def test_plain_descent_leaves_the_valley_where_the_lesson_says(ask: Any) -> None:
    below, above = (
        numbers(ask("/api/figures/valley", rate=rate))["SGD: distance left"] for rate in (0.09, 0.12)
    )
    assert below < 0.2 and above > 10


@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("nothing", {}, "no such figure"),
        ("descent", {"rate": 9}, "rate is '9' (must be a number from 0.02 to 1.1)"),
        ("descent", {"rate": "fast"}, "rate is 'fast'"),
    ],
)
def test_refusals(ask: Any, name: str, asked: dict[str, Any], said: str) -> None:
    assert said in ask(f"/api/figures/{name}", status=400, **asked)["error"]


def test_a_query_takes_from_the_key_it_points_at(ask: Any) -> None:
    weights = list(numbers(ask("/api/figures/mixture", angle=210, length=10)).values())
    assert sum(weights) == pytest.approx(1) and weights[1] > 0.99
    assert list(numbers(ask("/api/figures/mixture", length=0)).values()) == pytest.approx([1 / 3] * 3)
