"""`chainrule data instruct` and `chainrule data mix`: files of conversations from other files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chainrule.cli.main import main
from chainrule.data import load_conversations


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["data", *words])
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.fixture
def reviews(tmp_path: Path) -> str:
    path = tmp_path / "reviews.tsv"
    path.write_text("".join(f"review {i} of {i % 2}\t{i % 2}\n" for i in range(20)), encoding="utf-8")
    return str(path)


@pytest.mark.requirement("R-380")
def test_labels_become_answers(tmp_path: Path, reviews: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "chats.jsonl")
    words = ["--template", "sentiment", "--labels", "1=positive", "0=negative", "--out", out, "--json"]
    main(["data", "instruct", reviews, *words])
    assert json.loads(capsys.readouterr().out)["conversations"] == 20
    first = load_conversations(out).conversations[0]
    want = "Classify the sentiment of this review as positive or negative: review 0 of 0"
    assert (first.question, first.answer) == (want, "negative")


@pytest.mark.requirement("R-380", "R-382")
def test_pairs_and_a_mixture(tmp_path: Path, reviews: str, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"word {c}\tmot {c}\n" for c in "abcdefghij"), encoding="utf-8")
    out, chats, both = (str(tmp_path / name) for name in ("pairs.jsonl", "chats.jsonl", "both.jsonl"))
    main(["data", "instruct", str(pairs), "--template", "translate", "--language", "French", "--out", out])
    assert load_conversations(out).conversations[0].question == "Translate to French: word a"
    main(["data", "instruct", reviews, "--out", chats])
    capsys.readouterr()
    main(["data", "mix", f"{out}=2", f"{chats}=1", "--out", both, "--json"])
    assert json.loads(capsys.readouterr().out) == {out: 10, chats: 5, "conversations": 15, "out": both}
    assert len(load_conversations(both).conversations) == 15


def test_refusals(tmp_path: Path, reviews: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "x.jsonl")]
    language = refused(capsys, "instruct", reviews, "--language", "French", *out)
    assert "--language is given for a template without {language}" in language
    labels = refused(capsys, "instruct", reviews, "--template", "translate", "--labels", "a", *out)
    assert "--labels are given for a template without {labels}" in labels
    assert "must end in .jsonl" in refused(capsys, "instruct", reviews, "--out", str(tmp_path / "x.txt"))
    assert "must be a file and its weight" in refused(capsys, "mix", f"{reviews}=x", *out)
    assert "a file is named twice" in refused(capsys, "mix", reviews, reviews, *out)
    assert not (tmp_path / "x.jsonl").exists()
