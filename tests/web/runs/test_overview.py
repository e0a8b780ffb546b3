"""The lists of runs: what the page shows is what the library reads."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

import chainrule as cr
from chainrule.doctor import Finding
from chainrule.doctor.finding import Code
from chainrule.runs.records.compare import facts


def test_no_directory_is_no_runs(ask: Any) -> None:
    assert ask("/api/runs")["runs"] == []


def test_the_list_is_that_of_the_library(ask: Any, runs: Path) -> None:
    listed = ask("/api/runs")["runs"]
    assert {line["name"] for line in listed} == {"one", "group/two"}
    for line in listed:
        history = cr.runs.History.of(runs / line["name"])
        assert {key: line[key] for key in facts(history)} == facts(history)


def test_the_list_counts_what_the_doctor_found(ask: Any, runs: Path) -> None:
    def count() -> int:
        return next(line["findings"] for line in ask("/api/runs")["runs"] if line["name"] == "one")

    before = count()
    spike, clip = (
        Finding(code, level, "loss", "measured", "means").to_dict()
        for code, level in ((Code.LOSS_SPIKE, "problem"), (Code.CLIPPING, "note"))
    )
    with (runs / "one" / "log.jsonl").open("a") as log:
        for step, found in ((5, spike), (6, clip), (9, spike)):
            log.write(json.dumps({"step": step, "finding": found}) + "\n")
    assert count() == before + 2  # a remark is no problem


def test_one_run(ask: Any, runs: Path) -> None:
    found = ask("/api/runs/group/two")
    assert found["settings"]["lr"] == 0.02 and found["state"] == "finished"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(found["python"], {})
    assert str(cr.runs.History.of(runs / "group" / "two").series("validation")) in printed.getvalue()


def test_compared(ask: Any, client: Any, runs: Path) -> None:
    found = client.get("/api/runs-compare", params={"run": ["one", "group/two"]}).json()
    assert found["settings"] == {"lr": [0.01, 0.02]}
    for each in found["runs"]:
        history = cr.runs.History.of(runs / each["name"])
        assert [tuple(point) for point in each["loss"]] == history.series("loss")
        assert each["best_validation"] == history.best[1]  # type: ignore[index]


def test_the_doctor_is_that_of_the_command(ask: Any, runs: Path) -> None:
    from chainrule.cli.commands.doctor import of_run

    title, findings = of_run(runs / "one")
    found = ask("/api/runs/one/doctor")
    assert found["title"] == title
    assert [each["code"] for each in found["findings"]] == [str(finding.code) for finding in findings]


@pytest.mark.parametrize("name", ["nothing", "one/checkpoints"])
def test_what_is_no_run_here_is_refused(ask: Any, runs: Path, name: str) -> None:
    assert f"run '{name}': not in" in ask(f"/api/runs/{name}", status=400)["error"]


def test_one_run_cannot_be_compared(ask: Any, runs: Path) -> None:
    assert ask("/api/runs-compare", status=400, run="one") == {
        "error": "compare: must be two different runs or more"
    }


def test_a_path_that_leaves_the_directory_is_refused(runs: Path) -> None:
    from chainrule.web.runs.overview import Runs

    (runs.parent / "outside").mkdir()
    for name in ("..", "../outside", "/etc", "", ".", "one/../../outside"):
        with pytest.raises(cr.ConfigError, match="must be the name of a run there"):
            Runs(runs).path(name)


@pytest.mark.parametrize("findings", [None, ["x"], [{}], 3])
def test_a_damaged_finding_is_left_out(ask: Any, runs: Path, findings: Any) -> None:
    def counts() -> dict[str, int]:
        return {line["name"]: line["findings"] for line in ask("/api/runs")["runs"]}

    before = counts()
    with (runs / "one" / "log.jsonl").open("a") as log:
        log.write(json.dumps({"step": 1, "watch": {"findings": findings}}) + "\n")
    assert counts() == before
