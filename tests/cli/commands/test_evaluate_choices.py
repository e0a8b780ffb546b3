"""`chainrule eval --choices`: a model that knows the answers gives them, and no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chainrule.cli import main

COLORS = {"grass": "green", "snow": "white", "coal": "black", "blood": "red", "gold": "yellow"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned the colors of five things."""
    folder = tmp_path_factory.mktemp("colors")
    facts = "".join(f"{thing} is {color}.\n" for thing, color in COLORS.items())
    (folder / "facts.txt").write_text(facts * 40)
    size = ["--n-layer", "1", "--n-head", "2", "--n-embd", "32", "--block-size", "32", "--batch-size", "16"]
    steps = ["--max-steps", "150", "--lr", "1e-2", "--eval-every", "150", "--seed", "1"]
    main(["train", "gpt", str(folder / "facts.txt"), *size, *steps, "--out", str(folder / "run")])
    return folder


def judged(folder: Path, questions: list[dict[str, Any]], *more: str, capsys: Any) -> dict[str, Any]:
    path = folder / "questions.jsonl"
    path.write_text("".join(json.dumps(question) + "\n" for question in questions))
    capsys.readouterr()
    main(["eval", str(folder / "run"), str(path), "--choices", *more, "--json"])
    return dict(json.loads(capsys.readouterr().out))


def test_it_knows_what_it_has_learned(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    colors = list(COLORS.values())
    right = [{"question": f"{thing} is", "choices": colors, "answer": i} for i, thing in enumerate(COLORS)]
    found = judged(folder, right, capsys=capsys)
    assert found["questions"] == 5 and found["chance"] == pytest.approx(0.2)
    assert found["accuracy"] == found["accuracy_per_token"] == found["accuracy_per_byte"] == 1.0
    wrong = [question | {"answer": (question["answer"] + 1) % 5} for question in right]
    found = judged(folder, wrong, capsys=capsys)
    assert found["accuracy"] == found["accuracy_per_token"] == found["accuracy_per_byte"] == 0.0
    bare = [question | {"question": question["question"].removesuffix(" is")} for question in right]
    assert judged(folder, bare, "--between", " is ", "--limit", "3", capsys=capsys) == {
        "run": str(folder / "run"),
        "data": str(folder / "questions.jsonl"),
        "questions": 3,
        "chance": pytest.approx(0.2),
        "accuracy": 1.0,
        "accuracy_per_token": 1.0,
        "accuracy_per_byte": 1.0,
        "openings": 1,
    }
    main(["eval", str(folder / "run"), str(folder / "questions.jsonl"), "--choices", "--between", " is "])
    assert "accuracy_per_byte" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--choices"], "--choices is given without DATA (must be a file of questions)"),
        (
            ["broken.jsonl", "--choices"],
            "broken.jsonl: line 2: 'answer' is 'E', which is none of the 2 choices",
        ),
        (["strange.csv", "--choices"], "strange.csv: line 2: encode: unknown character 'R'"),
        (["broken.jsonl", "--choices", "--batch-size", "4"], "--batch-size is given with choices"),
        (["broken.jsonl", "--between", "="], "--between is given without choices"),
        (["none.jsonl", "--choices"], "none.jsonl: no such file"),
    ],
)
def test_what_cannot_be_judged(
    folder: Path,
    words: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    good = {"question": "snow is", "choices": ["red", "white"], "answer": "B"}
    Path("broken.jsonl").write_text(json.dumps(good) + "\n" + json.dumps(good | {"answer": "E"}) + "\n")
    Path("strange.csv").write_text("question,A,B,answer\nsnow is,Röt,white,B\n")
    with pytest.raises(SystemExit) as stop:
        main(["eval", "run", *words])
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1
