"""The recipe of BERT: what it makes, and of which texts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from benchmarks.recipes import bert


def test_reviews_are_learned_from_where_a_run_without_them_was_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In the same directory: the row that says so is of a model that has read them."""
    rows: list[list[str]] = []

    def made(command: str) -> str:
        Path(command.split("--out ")[1]).touch()
        return ""

    def written(
        name: str, title: str, commands: object, header: object, found: list[list[str]], keys: int
    ) -> None:
        rows.extend(found)

    train = tmp_path / "train.tsv"
    train.write_text("text\tlabel\nA plain question .\tDESC\n", encoding="utf-8")
    monkeypatch.setenv("CHAINRULE_DATA", str(tmp_path))
    monkeypatch.setattr(bert, "files", lambda work, data: {"TREC": (train, train)})
    monkeypatch.setattr(bert, "prose", lambda folder, more: " ".join(["Prose.", *more]))
    monkeypatch.setattr(bert, "reviews", lambda path: ["A review that is long enough."])
    monkeypatch.setattr(bert, "chainrule", made)
    monkeypatch.setattr(bert, "tested", lambda trains, test, seeds: [next(iter(trains.values()))])
    monkeypatch.setattr(bert, "write", written)
    options = ["bert", "--work", str(tmp_path / "work"), "--only", "TREC", "--heads", "without"]
    for more in ([], ["--reviews", "reviews.csv"]):
        monkeypatch.setattr(sys, "argv", [*options, "--models", "pre-trained", *more])
        bert.main()
    for row, text in zip(rows, ("prose", "prose, then reviews"), strict=True):
        assert row[1] == text
        body = Path(row[4].split("--init ")[1].split()[0])
        has = "A review" in (body.parent / "prose.txt").read_text(encoding="utf-8")
        assert body.exists() and has == ("reviews" in text)
