"""`chainrule tune show-mask`: which tokens are trained, for people and for machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chainrule.cli.main import main
from chainrule.io.hf.pretrained import save_pretrained
from tests.tasks.test_instruction import TOKENIZER, base, written


def shown(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    main(["tune", "show-mask", *args])
    return capsys.readouterr().out


@pytest.mark.requirement("R-378")
def test_reasons_are_readable_without_color(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, str(written(tmp_path)), "--limit", "1")
    first, *runs, blank, last = out.splitlines()
    assert first.startswith("conversation 0: row ")
    assert runs == [
        "  not trained  mark of the format  <|user|>",
        "  not trained  given                |C|a|p|i|t|a|l| |o|f| |F|r|a|n|c|e|?| ",
        "  not trained  mark of the format  <|assistant|>",
        "  trained      answer               |P|a|r|i|s",
        "  trained      end of the answer   <|end|>",
    ]
    assert blank == "" and last.endswith("0 cut at the end of a row, 0 dropped; 1 shown")


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(shown(capsys, str(written(tmp_path)), "--json", "--limit", "2", "--window", "40"))
    assert (found["window"], found["conversations"], found["dropped"]) == (40, 10, 0)
    first = found["shown"][0]
    assert first.keys() == {"conversation", "row", "start", "lost", "tokens"}
    trained = "".join(token["text"] for token in first["tokens"] if token["trained"])
    assert trained == " Paris<|end|>" and len(found["shown"]) == 2


def test_with_the_tokenizer_and_the_context_of_a_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_pretrained(base(block_size=24), TOKENIZER, tmp_path / "model")
    found = json.loads(shown(capsys, str(written(tmp_path)), "--model", str(tmp_path / "model"), "--json"))
    assert found["window"] == 24 and found["cut"] > 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--limit", "0"], "--limit is 0 (must be at least 1)"),
        (["--window", "0"], "--window is 0 (must be at least 1)"),
        (["--window", "3"], "has an answer within 3 tokens (--window must be larger"),
        (
            ["--window", "99", "--model", "{model}"],
            "--window is 99 (must be at most 24, the context of the model)",
        ),
        (["--tokenizer", "char", "--model", "{model}"], "--tokenizer is given with model, which has its own"),
        (["--source-column", "x"], "no column 'x'"),
    ],
)
def test_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str], args: list[str], said: str) -> None:
    save_pretrained(base(block_size=24), TOKENIZER, tmp_path / "model")
    words = [word.format(model=tmp_path / "model") for word in args]
    with pytest.raises(SystemExit) as ended:
        main(["tune", "show-mask", str(written(tmp_path)), *words])
    assert ended.value.code == 2 and said in capsys.readouterr().err
