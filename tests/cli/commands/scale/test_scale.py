"""`chainrule scale`: plan, run, fit and predict, one after the other, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chainrule.cli import main
from chainrule.scaling.laws.published import CHINCHILLA_REFITTED
from tests.scaling.fits.planted import planted


def answered(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    main([*words, "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        main(list(words))
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


@pytest.fixture
def table(tmp_path: Path) -> Path:
    runs = planted(40)
    lines = [f"{N},{C},{L}" for N, C, L in zip(runs.params, runs.flops, runs.loss, strict=True)]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(["Model Size,Training FLOP,loss", *lines, "1e7,1e18,9.5"]) + "\n")
    return path


COLUMNS = ("--params", "Model Size", "--flops", "Training FLOP", "--loss", "loss")


def test_fit_and_predict(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "fit.json"
    words = ("--form", "chinchilla", "--drop-highest", "1", "--resamples", "40", "--out", str(file))
    found = answered(capsys, "scale", "fit", str(table), *COLUMNS, *words)
    assert found["runs"] == 40 and len(found["dropped"]) == 1
    for name in ("A", "B", "E", "alpha", "beta", "a"):
        each = found[name]
        assert each["low"] <= each["value"] <= each["high"]
    assert found["a"]["value"] == pytest.approx(CHINCHILLA_REFITTED.a, abs=0.05)
    loss = answered(capsys, "scale", "predict", str(file), "--params", "1.5e10", "--tokens", "1e11")["loss"]
    assert loss["low"] < CHINCHILLA_REFITTED(1.5e10, 1e11).item() < loss["high"]
    assert not loss["speculation"]
    main(["scale", "predict", str(file), "--params", "3e12", "--flops", "1e26"])
    assert "speculation: " in capsys.readouterr().out


@pytest.mark.parametrize("form", ["kaplan", "power", "floor", "envelope"])
def test_other_forms(form: str, table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = ("--of", "flops") if form in ("power", "floor") else ()
    main(
        [
            "scale",
            "fit",
            str(table),
            *COLUMNS,
            "--form",
            form,
            *of,
            "--resamples",
            "20",
            "--drop-highest",
            "1",
        ]
    )
    said = capsys.readouterr().out
    assert "95 % from" in said and "alpha" in said


def test_what_is_wrong_in_one_line(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no column of sizes" in refused(capsys, "scale", "fit", str(table))
    assert "no column 'N'" in refused(capsys, "scale", "fit", str(table), "--params", "N")
    assert "must be one of chinchilla" in refused(
        capsys, "scale", "fit", str(table), *COLUMNS, "--form", "chincilla"
    )
    assert "COLUMN=VALUE" in refused(capsys, "scale", "fit", str(table), *COLUMNS, "--where", "x")
    assert "cannot be read" in refused(capsys, "scale", "predict", str(tmp_path / "no.json"))
    assert "is not a fit" in refused(capsys, "scale", "predict", str(table), "--params", "1")
    assert "is not a plan" in refused(
        capsys, "scale", "run", str(table), "pydoc", "--out", str(tmp_path / "s")
    )
    assert "must be left out without compute" in refused(capsys, "scale", "plan", "--served", "1e9")
    one = ("scale", "plan", "--compute", "1e20")
    assert "must be left out with compute" in refused(capsys, *one, "--budgets", "1e9")
    assert "must have --flops-per-second" in refused(capsys, *one, "--price", "2")


def test_plan_and_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, plan, out = tmp_path / "t.txt", tmp_path / "plan.json", tmp_path / "study"
    text.write_text("the quick brown fox jumps over the lazy dog. " * 400)
    small = (
        "--budgets",
        "2e8",
        "6e8",
        "--factors",
        "0.5",
        "2",
        "--context",
        "16",
        "--head",
        "4",
        "--aspect",
        "4",
    )
    main(["scale", "plan", *small, "--out", str(plan)])
    assert "4 models, 1 run of each" in capsys.readouterr().out
    main(["scale", "run", str(plan), str(text), "--out", str(out), "--jobs", "1"])
    assert "4 runs in" in capsys.readouterr().out
    main(["scale", "run", str(plan), str(text), "--out", str(out), "--workers", "1"])  # all are there
    assert "4 runs in" in capsys.readouterr().out
    assert "--workers is -1 (must be at least 0)" in refused(
        capsys, "scale", "run", str(plan), "--jobs", "-1"
    )
    main(
        ["scale", "fit", str(out / "runs.csv"), "--params", "params", "--form", "power", "--where", "seed=0"]
    )
    assert "alpha" in capsys.readouterr().out


def test_advice_for_one_budget(capsys: pytest.CaptureFixture[str]) -> None:
    found = answered(capsys, "scale", "plan", "--compute", "5.88e23", "--available", "1e12")
    assert found["rule"]["params"] == pytest.approx(70e9)
    assert set(found["limited"]) == {"smaller", "epochs", "larger"}
