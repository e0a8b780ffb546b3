"""`chainrule tune distill` and `chainrule tune compare`: answers of a teacher, and what tuning has changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chainrule.cli.main import main
from chainrule.data import load_conversations
from chainrule.io.hf.pretrained import save_pretrained
from chainrule.runs import Run
from chainrule.text import BPETokenizer
from chainrule.train import TrainConfig
from tests.tasks.test_instruction import CAPITALS, SETTINGS, base, written


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base, and a run that has learned capitals."""
    folder = tmp_path_factory.mktemp("models")
    tokenizer = BPETokenizer.train("", 256)
    save_pretrained(base(vocab_size=256, block_size=96), tokenizer, folder / "base")
    config = TrainConfig(**SETTINGS | {"max_steps": 150, "eval_every": 50, "keep": "last"})
    run = Run.new(folder / "tuned", written(folder), config, "gpt", None, folder / "base", task="instruction")
    run.train()
    return folder


@pytest.mark.requirement("R-381")
def test_a_teacher_answers_the_questions_of_a_file(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "answers.jsonl"
    words = [
        "--temperature",
        "0",
        "--max-new-tokens",
        "20",
        "--num-samples",
        "2",
        "--out",
        str(out),
        "--json",
    ]
    main(["tune", "distill", str(models / "tuned"), str(written(tmp_path)), *words])
    said = json.loads(capsys.readouterr().out)
    assert (said["questions"], said["answers"], said["copies"]) == (10, 10, 10)  # the likeliest answer twice
    found = load_conversations(out).conversations
    assert [talk.question for talk in found] == [f"Capital of {land}?" for land in CAPITALS]
    assert sum(talk.answer == CAPITALS[talk.question[11:-1]] for talk in found) >= 8


def test_a_model_that_does_not_answer_is_no_teacher(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["tune", "distill", str(models / "base"), "docstrings", "--out", str(tmp_path / "x.jsonl")])
    assert ended.value.code == 2
    assert "a model that does not answer (must be tuned on conversations" in capsys.readouterr().err


@pytest.mark.requirement("R-384", "R-385")
def test_what_tuning_has_changed(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        str(models / "base"),
        str(models / "tuned"),
        str(models / "capitals.jsonl"),
        "--max-new-tokens",
        "8",
    ]
    main(["tune", "compare", *words])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1 of 1 answers became likelier; mean ln P(answer | question)")
    assert [line.split()[0] for line in lines[-5:]] == [
        "behavior",
        "format",
        "task",
        "helpfulness",
        "refusal",
    ]
    main(["tune", "compare", *words[:2], "--max-new-tokens", "4", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found.keys() == {"before", "after"} and found["after"]["refusal"]["rule"] == "declines in words"
    replies = found["after"]["format"]["replies"]
    assert len(replies) == found["after"]["format"]["of"] and replies[0].keys() >= {
        "prompt",
        "text",
        "passed",
    }
