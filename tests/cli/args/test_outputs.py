"""What is in the way of a result is said before any work: here none of the sources exists, and nobody notices."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainrule.cli import main

FULL, FILE = "full: exists already (choose another name", "taken.txt: is not a directory"
NOT_FILE, NOT_EMPTY = "full: is not a regular file", "full: the directory is not empty"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("import none.gguf --out full", FULL),
        ("import none.gguf --out taken.txt/model", "taken.txt/model: cannot be written (Not a directory)"),
        ("export none --out full", FULL),
        ("data build none.txt --out full", FULL),
        ("data dedup none.jsonl --out old.jsonl", "old.jsonl: exists already"),
        ("data dedup none.jsonl --out empty", "empty: is not a regular file"),
        ("tokenize train none.txt --out full", NOT_FILE),
        ("tokenize train none.txt --out old.jsonl", "old.jsonl: exists already"),
        ("tokenize train none.txt --kind word", "word.json: exists already"),
        ("embed none none.txt --out full.npy", "full.npy: is not a regular file"),
        ("runs report none --out full", NOT_FILE),
        ("runs report none --out taken.txt", "taken.txt: exists already (only a file that ends in .html is"),
        ("scale plan --out taken.txt", "taken.txt: exists already (only a file that ends in .json is"),
        (
            "scale fit none.csv --plot old.jsonl",
            "old.jsonl: exists already (only a file that ends in .png or",
        ),
        ("replay none --step 1 --save taken.txt", "taken.txt: exists already"),
        ("diagnose none --plot taken.txt", FILE),
        ("ngram none.txt --plot taken.txt", FILE),
        ("figures xor --out taken.txt", FILE),
        ("train gpt none.txt --out full", NOT_EMPTY),
        ("train gpt none.txt --budget 1h --out full", NOT_EMPTY),
        ("train gpt none.txt --out taken.txt", FILE),
        ("train word2vec none.txt --out full", NOT_EMPTY),
    ],
)
def test_a_place_that_is_taken_is_refused_first(
    words: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (
        Path("full/a.txt"),
        Path("full.npy/a.txt"),
        Path("taken.txt"),
        Path("old.jsonl"),
        Path("word.json"),
    ):
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}\n")
    Path("empty").mkdir()
    with pytest.raises(SystemExit) as stop:
        main(words.split())
    error = capsys.readouterr().err
    assert stop.value.code == 2 and message in error and error.count("\n") == 1
