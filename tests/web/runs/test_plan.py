"""The form of a training: its words are those of the command, and its forecast is the doctor's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import chainrule as cr
from chainrule.web.runs.plan import QUICK, Plan
from tests.web.conftest import TEXT


@pytest.fixture
def text(tmp_path: Path) -> str:
    path = tmp_path / "fox.txt"
    path.write_text(TEXT, encoding="utf-8")
    return str(path)


def test_the_words_of_the_command(tmp_path: Path) -> None:
    plan = Plan.of(QUICK | {"options": {"n_layer": 2, "lr": "0.01", "seed": ""}})
    words = plan.words(tmp_path / "gpt")
    assert words[:5] == ["train", "gpt", "pydoc", "--out", str(tmp_path / "gpt")]
    assert words[5:7] == ["--budget", "120"] and words[-4:] == ["--n-layer", "2", "--lr", "0.01"]


def test_the_forecast_is_the_doctors(
    ask: Any, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = {"n_layer": "1", "n_head": "2", "n_embd": "16", "block_size": "16", "batch_size": "4"}
    form = {"family": "gpt", "data": text, "steps": "10", "options": options}
    found = ask("/api/train/forecast", form)
    sizes = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 16}
    config = cr.train.TrainConfig(max_steps=10, batch_size=4)
    run = cr.runs.Run.new("", text, config, draft=True, **sizes)
    assert found["parameters"] == run.model.count() and found["sizes"]["n_embd"] == 16
    codes = [str(finding.code) for finding in run.trainer.examine()]
    assert [each["code"] for each in found["findings"]] == codes and "forecast" in codes
    assert [path.name for path in tmp_path.iterdir()] == ["fox.txt"]  # nothing is written


def test_what_the_form_knows(ask: Any) -> None:
    found = ask("/api/train")
    assert "pydoc" in [each["name"] for each in found["corpora"]] and found["quick"]["data"] == "pydoc"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"family": "other"}, "no family 'other'"),
        ({"data": "--config"}, "data is '--config'"),
        ({"data": ""}, "data is ''"),
        ({"name": "../up"}, "the name '../up'"),
        ({"name": "a b"}, "the name 'a b'"),
        ({"steps": "5"}, "must have a time or a number of steps, not both"),
        ({"budget": ""}, "must have a time or a number of steps, not both"),
        ({"options": {"out": "/tmp"}}, "no option 'out'"),
        ({"options": [1]}, "options must be names with values"),
    ],
)
@pytest.mark.parametrize("path", ["/api/train", "/api/train/forecast"])
def test_forms_that_are_refused(ask: Any, path: str, change: dict[str, Any], said: str) -> None:
    assert said in ask(path, QUICK | change, status=400)["error"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"options": {"n_embd": "x"}}, "--n-embd"),
        ({"options": {"n_head": "3", "n_embd": "16"}}, "n_head"),
        ({"data": "no-such-text.txt"}, "no-such-text.txt"),
        ({"steps": "0"}, "max_steps"),
    ],
)
def test_what_the_command_would_refuse_is_said_in_its_words(
    ask: Any, text: str, change: dict[str, Any], said: str
) -> None:
    form = {"family": "gpt", "data": text, "steps": "10", "options": {}} | change
    assert said in ask("/api/train/forecast", form, status=400)["error"]
