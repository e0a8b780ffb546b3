from __future__ import annotations

import json
from pathlib import Path

import pytest

from chainrule.cli.main import main
from tests.runs.helpers import new_run


@pytest.mark.requirement("R-406")
@pytest.mark.parametrize(
    ("words", "method"),
    [
        (["--examples", "200000"], "full"),
        (["--examples", "5000"], "lora"),
        (["--examples", "5000", "--swappable"], "adapter"),
        (["--examples", "300"], "prefix"),
        (["--examples", "3"], "prompting"),
    ],
)
def test_each_branch_is_reached(words: list[str], method: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["tune", "advise", *words, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["method"] == method and found["reasons"]
    main(["tune", "advise", *words])
    assert capsys.readouterr().out.startswith(f"{method}: ")


@pytest.mark.requirement("R-389")
def test_sizes_on_disk_are_those_of_all_tasks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = new_run(tmp_path, "base", max_steps=1)
    run.train()
    capsys.readouterr()
    main(["tune", "advise", str(run.folder), "--examples", "5000", "--tasks", "10", "--json"])
    found = json.loads(capsys.readouterr().out)
    whole, pairs = run.model.count(), 2 * 8 * (16 + 16)
    assert (found["bytes_full"], found["bytes_method"]) == (2 * whole * 10, 2 * whole + 2 * pairs * 10)
