"""Scaling: fits to our own study and to a table that was sent, predictions, and the planner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chainrule.scaling.advice import advise
from chainrule.scaling.laws.published import CHINCHILLA_REFITTED
from chainrule.web.lab.scaling import BUILT_IN

ROOT = Path(__file__).parents[3]
TABLE = BUILT_IN.read_text(encoding="utf-8")


def test_the_built_in_table_is_that_of_the_study() -> None:
    assert (ROOT / "benchmarks" / "results" / "isoflop.csv").read_text(encoding="utf-8") == TABLE


@pytest.mark.parametrize(("form", "within"), [("isoflop", 4), ("power", None), ("envelope", None)])
def test_a_fit_is_that_of_the_program(ask: Any, form: str, within: float | None) -> None:
    found = ask("/api/scaling/fit", {"form": form, "quantity": "flops", "within": within})
    names: dict[str, Any] = {}
    exec(found["python"], names)
    report = names["report"]
    assert found["numbers"] == list(report.estimates)
    for name, estimate in report.estimates.items():
        assert found[name] == estimate._asdict()
    assert found["curves"] and len(found["rows"]["loss"]) == found["runs"]


def test_the_valleys_are_those_of_the_docs(ask: Any) -> None:
    found = ask("/api/scaling/fit", {"form": "isoflop", "within": 4})
    assert [round(each["params"], -2) for each in found["valleys"]] == [8500, 18900, 34200]
    assert found["a"]["value"] == pytest.approx(0.61, abs=0.01)


def test_the_program_of_ones_own_table_holds_it(
    ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = {"loss": "loss", "params": "params", "tokens": "tokens"}
    found = ask(
        "/api/scaling/fit", {"table": TABLE, "columns": columns, "form": "power", "quantity": "flops"}
    )
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(found["python"], names)
    assert found["alpha"] == names["report"].estimates["alpha"]._asdict()


def test_a_table_of_ones_own(ask: Any) -> None:
    columns = {"loss": "loss", "params": "params", "tokens": "tokens"}
    asked = {"table": TABLE, "columns": columns, "form": "power", "quantity": "flops"}
    assert (
        ask("/api/scaling/fit", asked)["alpha"]
        == ask("/api/scaling/fit", {"form": "power", "quantity": "flops"})["alpha"]
    )
    inside = ask("/api/scaling/predict", {**asked, "sizes": {"flops": 2e11}})
    far = ask("/api/scaling/predict", {**asked, "sizes": {"flops": 1e20}})
    assert inside["decades"] == 0 and not inside["speculation"] and far["speculation"]
    assert far["loss"]["low"] < far["loss"]["value"] < inside["loss"]["value"]


def test_a_plan_is_the_advice_of_the_library(ask: Any) -> None:
    found = ask("/api/scaling/plan", compute=1e20, available=1e9, served=1e12)
    advice = advise(1e20, 1e9, 1e12)
    sizes = {each["name"]: (each["params"], each["tokens"]) for each in found["options"]}
    assert sizes["rule"] == tuple(advice.rule) and sizes["law"] == tuple(advice.law)
    assert sizes["smaller"] == tuple(advice.limited["smaller"]) and sizes["serving"] == tuple(
        advice.serving or ()
    )
    for each in found["options"]:
        once = each["name"] != "epochs"  # the law is one of text that is read once
        assert each["loss"] == (CHINCHILLA_REFITTED(each["params"], each["tokens"]).item() if once else None)
        assert each["unknown"] == (None if once else "the law does not cover repeated text")
    names: dict[str, Any] = {}
    exec(found["python"], names)
    assert names["advice"] == advice


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("fit", {"table": "a,b\n1,2\n", "columns": {"loss": "loss"}}, "the table: has no column 'loss'"),
        ("fit", {"form": "magic"}, "form 'magic'"),
        ("fit", {"columns": 3}, "must have a form"),
        ("fit", {"table": "x" * 400_001}, "400,001 characters"),
        ("fit", {"within": "wide"}, "within is 'wide'"),
        ("predict", {"table": "x" * 400_001, "sizes": {"params": 1}}, "400,001 characters"),
        ("predict", {"form": "power", "sizes": {"flops": -1}}, "sizes must be positive"),
    ],
)
def test_refusals(ask: Any, path: str, body: dict[str, Any], said: str) -> None:
    assert said in ask(f"/api/scaling/{path}", body, status=400)["error"]


@pytest.mark.parametrize("asked", [{"compute": 1}, {"compute": 1e20, "served": 0}])
def test_a_plan_out_of_range(ask: Any, asked: dict[str, Any]) -> None:
    assert "must be from" in ask("/api/scaling/plan", status=400, **asked)["error"]
