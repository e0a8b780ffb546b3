"""Our own scaling study: its committed table, the fits made of it again, and the report."""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict

import pytest
from benchmarks.lessons.isoflop import FITS, FORMS, REPORT, TABLE, joined, report

from chainrule.scaling.fits import Runs
from chainrule.scaling.fits.isoflop import near_best
from chainrule.scaling.fits.report import fit

COLUMNS = {"params": "params", "tokens": "tokens", "loss": "loss"}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def means_of(rows: list[dict[str, str]]) -> list[tuple[float, int, float]]:
    """Budget, size and mean loss of each model"""
    losses = defaultdict(list)
    for row in rows:
        losses[float(row["budget"]), int(row["params"])].append(float(row["loss"]))
    return [(budget, N, sum(each) / len(each)) for (budget, N), each in losses.items()]


@pytest.mark.requirement("R-446")
def test_the_sizes_span_two_orders_of_magnitude_with_three_seeds_each(rows: list[dict[str, str]]) -> None:
    sizes = {int(row["params"]) for row in rows}
    assert len(sizes) >= 4 and max(sizes) / min(sizes) >= 100
    seeds = defaultdict(set)
    for row in rows:
        seeds[row["name"]].add(row["seed"])
        assert math.isfinite(float(row["loss"])) and float(row["standard_error"]) > 0
    assert min(map(len, seeds.values())) >= 3
    assert len({row["budget"] for row in rows}) >= 3


@pytest.mark.requirement("R-446")
@pytest.mark.parametrize("form", FORMS)
def test_the_fits_follow_from_the_table(form: str) -> None:
    """Fitted again: the numbers of the file, each with its standard error. Errors are not compared: few resamples."""
    committed = json.loads(FITS.read_text(encoding="utf-8"))[form]
    runs = Runs.read(TABLE, COLUMNS)
    again = fit(near_best(runs, 4) if form == "isoflop" else runs, form, resamples=20)
    for name in committed["numbers"]:
        assert again.estimates[name].value == pytest.approx(committed[name]["value"], rel=1e-3)
        assert committed[name]["error"] > 0
        assert committed[name]["low"] < committed[name]["value"] < committed[name]["high"]


@pytest.mark.requirement("R-446", "R-514")
def test_the_report_has_exponents_with_errors_and_means_over_seeds() -> None:
    fits = json.loads(FITS.read_text(encoding="utf-8"))
    page = REPORT.read_text(encoding="utf-8")
    assert page == report(TABLE, fits)
    a = fits["isoflop"]["a"]
    assert f"| isoflop | a | {a['value']:.4g} |" in page and f"{a['error']:.2g}" in page
    assert page.count(" ± ") >= 14 and "chainrule scale run" in page


def test_every_budget_has_both_sides_of_its_valley(rows: list[dict[str, str]]) -> None:
    fits = json.loads(FITS.read_text(encoding="utf-8"))
    assert len(fits["isoflop"]["valleys"]) >= 3
    sizes = [float(row["params"]) for row in rows]
    assert all(min(sizes) < valley["params"] < max(sizes) for valley in fits["isoflop"]["valleys"])
    for valley in fits["isoflop"]["valleys"]:
        means = {
            N: loss for budget, N, loss in means_of(rows) if budget == pytest.approx(valley["flops"], rel=0.1)
        }
        best = min(means, key=lambda N: means[N])
        assert min(means) < best < max(means)  # worse on both sides


def test_tables_are_joined_in_order(rows: list[dict[str, str]]) -> None:
    assert joined([TABLE]) == TABLE.read_text(encoding="utf-8")
