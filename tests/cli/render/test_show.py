"""What several commands say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chainrule.cli.render.show import command_line


def test_a_hint_names_the_program_by_the_shorter_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "a" / "b" / "c" / "d" / "e"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv("PATH", str(here))
    for called, shown in [
        ("/opt/x/bin/chainrule", "/opt/x/bin/chainrule"),  # not ../../../../..
        (str(here / "bin" / "chainrule"), os.path.join("bin", "chainrule")),
        (str(here / "my env" / "chainrule"), "'my env/chainrule'"),
    ]:
        monkeypatch.setattr("sys.argv", [called])
        assert command_line() == shown
    monkeypatch.setattr("sys.argv", ["/x/chainrule/cli/__main__.py"])
    monkeypatch.setattr("sys.executable", "/opt/x/bin/python")
    assert command_line() == "/opt/x/bin/python -m chainrule.cli"


def test_a_hint_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name)
    assert (
        command_line("sample", Path("runs/ünï 😀"), "--top-k", 3)
        == "chainrule sample 'runs/ünï 😀' --top-k 3"
    )
