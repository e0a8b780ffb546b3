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
    assert words[5] == "--budget=120" and words[-2:] == ["--n-layer=2", "--lr=0.01"]


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
        ({"options": {"n_embd": "x"}}, {"n_embd": "train: n_embd is 'x' (must be an integer)"}),
        ({"options": {"n_head": "3", "n_embd": "16"}}, {"n_embd, n_head": "heads must divide the width"}),
        ({"options": {"lr": "-1"}}, {"lr": "train: lr is -1.0 (must be a positive number)"}),
        ({"options": {"lr": "2", "weight_decay": "0.9"}}, {"lr, weight_decay": "must be below 1"}),
        ({"options": {"lr": "0", "seed": "a"}}, {"seed": "is 'a'", "lr": "must be a positive number"}),
        ({"options": {"tokenizer": "bpee"}}, {"tokenizer": "did you mean bpe"}),
        ({"family": "lstm", "options": {"n_head": "2"}}, {"n_head": "is no option of a lstm"}),
        ({"data": "no-such-text.txt"}, {"data": "no-such-text.txt: no such corpus or file"}),
        ({"data": "pydok"}, {"data": "did you mean pydoc"}),
        ({"steps": "0"}, {"steps": "train: steps is 0 (must be at least 1)"}),
        ({"steps": "", "budget": "-5"}, {"budget": "budget is -5"}),
        ({"name": "a b"}, {"name": "the name 'a b'"}),
    ],
)
def test_what_the_command_would_refuse_is_said_beside_the_fields(
    ask: Any, text: str, change: dict[str, Any], said: dict[str, str]
) -> None:
    form = {"family": "gpt", "data": text, "steps": "10", "options": {}} | change
    found = {", ".join(each["fields"]): each["error"] for each in ask("/api/train/check", form)["problems"]}
    assert found.keys() == said.keys() and all(said[fields] in found[fields] for fields in said)
    for path in ("/api/train", "/api/train/forecast"):  # neither starts
        first = ask(path, form, status=400)
        assert first["error"] in found.values() and ", ".join(first["fields"]) in said


def test_what_an_empty_field_stands_for(ask: Any) -> None:
    form = {"family": "gpt", "data": "pydoc", "steps": "10", "options": {}}
    config = cr.models.GPTConfig()
    found = ask("/api/train/check", form)
    assert found["problems"] == [] and found["defaults"]["n_embd"] == str(config.n_embd)
    assert (
        found["defaults"]["lr"] == f"{cr.train.TrainConfig().lr:g}"
        and found["defaults"]["tokenizer"] == "char"
    )
    timed = ask("/api/train/check", form | {"steps": "", "budget": "60"})["defaults"]
    assert timed["n_embd"] == timed["lr"] == "fits the time" and timed["seed"] == "0"
    assert "n_head" not in ask("/api/train/check", form | {"family": "lstm"})["defaults"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "n" * 300),
        ("name", "/etc/passwd"),
        ("data", "d" * 5000),
        ("data", "a\0b"),
        ("tokenizer", "t" * 5000),
    ],
)
def test_what_is_no_path_is_refused_beside_its_field(ask: Any, field: str, value: str) -> None:
    given = {"options": {field: value}} if field == "tokenizer" else {field: value}
    problems = ask("/api/train/check", QUICK | given)["problems"]
    assert [problem["fields"] for problem in problems] == [[field]]
