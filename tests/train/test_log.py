"""The log: what a person sees on a terminal and elsewhere, and what is written down."""

from __future__ import annotations

import io
import json
import math
import sys
from pathlib import Path

import pytest
from rich.console import Console

from chainrule.errors import ConfigError, DataError
from chainrule.inspect import curve
from chainrule.runs import loss_curve
from chainrule.train import Log, log


def train_a_little(path: Path, console: Console, resume_at: int = 0) -> None:
    with Log(path, per_step=128, parameters=7, console=console, resume_at=resume_at) as told:
        for step in range(resume_at + 1, resume_at + 4):
            told.step(step, 3.0 / step, lr=1e-3, norm=1.0, seconds=step / 4, left=90.0)
        told.evaluation(resume_at + 3, 1.25, seconds=0.75)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "REFRESH", 0.0)
    monkeypatch.setattr(log, "PLAIN", 0.0)


def test_every_step_is_one_json_object_on_a_line(tmp_path: Path) -> None:
    train_a_little(tmp_path / "log.jsonl", Console(file=io.StringIO()))
    records = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert records[1] == {"step": 2, "loss": 1.5, "lr": 1e-3, "norm": 1.0, "seconds": 0.5, "parameters": 7}
    assert records[3] == {"step": 3, "validation": 1.25, "seconds": 0.75, "parameters": 7}
    assert log.read(tmp_path / "log.jsonl") == records
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"step": 0, "forecast": 3}\n{"step": -1}\n{"step": 0.5}\n')
    assert log.read(tmp_path / "log.jsonl") == [*records, {"step": 0, "forecast": 3}]


def test_what_is_not_finite_is_written_as_null(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with Log(path, per_step=128, parameters=7, console=Console(file=io.StringIO())) as told:
        told.step(1, 3.0, lr=1e-3, norm=math.nan, seconds=0.1, left=1.0)
        told.step(2, math.inf, lr=1e-3, norm=math.inf, seconds=0.2, left=1.0)
        told.note(2, {"watch": {"problems": [], "layers": [{"std": -math.inf}, (math.nan,)]}})
        told.evaluation(2, math.nan, seconds=0.2)

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    for text in path.read_text().splitlines():
        json.loads(text, parse_constant=refuse)
    records = log.read(path)
    assert records[0]["norm"] is None and records[0]["loss"] == 3.0
    assert records[1]["loss"] is records[1]["norm"] is records[3]["validation"] is None
    assert records[2]["watch"]["layers"] == [{"std": None}, [None]]
    loss_curve(path, tmp_path / "loss.png")
    assert curve([record["loss"] for record in records[:2]], 10).broken is not None


@pytest.mark.usefixtures("impatient")
def test_a_loss_that_is_not_finite_does_not_spoil_the_mean(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=80)
    with Log(tmp_path / "log.jsonl", per_step=128, parameters=7, console=console) as told:
        for step, loss in enumerate([math.nan, 3.0, math.inf, 3.0], 1):
            told.step(step, loss, lr=1e-3, norm=1.0, seconds=step, left=1.0)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert "loss nan" in lines[0] and all("loss 3.0000" in said for said in lines[1:])


@pytest.mark.usefixtures("impatient")
def test_the_line_has_the_last_scores_and_the_rate_of_what_is_counted(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=120)
    sizes = {"per_step": 32, "parameters": 7}
    with Log(tmp_path / "log.jsonl", **sizes, unit="texts", console=console) as told:
        told.step(1, 1.0, lr=1e-3, norm=1.0, seconds=1.0, left=9.0)
        told.evaluation(1, 0.5, seconds=1.0, scores={"accuracy": 0.875, "f1": 0.8})
        told.step(2, 1.0, lr=1e-3, norm=1.0, seconds=2.0, left=8.0)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines[1] == "step      1   validation loss 0.5000   accuracy 87.5 %   F1 80.0 %   0:01"
    assert lines[2] == "step      2   loss 1.0000   accuracy 87.5 %   F1 80.0 %   0:08 left   32 texts/s"
    assert log.read(tmp_path / "log.jsonl")[1]["f1"] == 0.8


@pytest.mark.usefixtures("impatient")
def test_plain_lines_when_there_is_no_terminal(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=80)
    train_a_little(tmp_path / "log.jsonl", console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b" not in text and "\r" not in text
    lines = text.splitlines()
    assert lines[2] == "step      3   loss 2.8287   1:30 left   512 tokens/s"
    assert lines[3] == "step      3   validation loss 1.2500   0:01"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("width", [200, 80, 40, 20, 8, 1])
def test_the_live_line_fits_any_terminal(tmp_path: Path, width: int) -> None:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    train_a_little(tmp_path / "log.jsonl", console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    live = [
        part for part in text.replace("\n", "\r").split("\r") if "loss" in part and "validation" not in part
    ]
    assert "\x1b[2K" in text  # the line is erased and drawn again
    if width >= 80:
        assert any("tokens/s" in part for part in live)
    assert all(len(part.split("\x1b[2K")[-1].replace("\x1b[?25l", "")) <= width for part in live)


def test_a_resumed_log_goes_on_where_the_checkpoint_was(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    train_a_little(path, Console(file=io.StringIO()))
    with path.open("a") as file:
        file.write('{"step": 4, "lo')  # a crash in the middle of a line
    train_a_little(path, Console(file=io.StringIO()), resume_at=2)
    assert [record["step"] for record in log.read(path)] == [1, 2, 3, 4, 5, 5]


def test_a_log_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none/log.jsonl: cannot be written \(No such file"):
        Log(tmp_path / "none" / "log.jsonl", per_step=1, parameters=1)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0:00"), (59.6, "1:00"), (90, "1:30"), (3725, "1:02:05")]
)
def test_clock(seconds: float, text: str) -> None:
    assert log.clock(seconds) == text


def test_the_loss_curve_is_a_picture(tmp_path: Path) -> None:
    train_a_little(tmp_path / "log.jsonl", Console(file=io.StringIO()))
    loss_curve(tmp_path / "log.jsonl", tmp_path / "loss.png", {"uniform": 4.6})
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_an_empty_log_cannot_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no step to draw"):
        loss_curve(tmp_path / "log.jsonl", tmp_path / "loss.png")


def test_without_matplotlib_the_loss_curve_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(
        ConfigError, match=r"matplotlib is not installed \(pip install 'chainrule\[plots\]'\)"
    ):
        loss_curve(tmp_path / "log.jsonl", tmp_path / "loss.png")
