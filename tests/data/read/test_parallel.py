"""Pairs of texts from files of every kind."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from chainrule.data import load_pairs
from chainrule.errors import DataError

PAIRS = (("one", "eins"), ("two", "zwei"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "one\teins\ntwo\tzwei\n"),
        ("a.tsv", "source\ttarget\none\teins\ntwo\tzwei\n"),
        ("a.csv", "target,source\neins,one\nzwei,two\n"),
        ("a.jsonl", '{"source": "one", "target": "eins"}\n{"source": "two", "target": "zwei"}\n'),
        ("a.jsonl", '{"instruction": "one", "output": "eins"}\n{"instruction": "two", "output": "zwei"}\n'),
        ("a.dict", "one eins # a comment\ntwo(2)  zwei\n"),
        ("a.dict", ";;; the older form\none\teins\n\n# nothing\ntwo(2)\t zwei\n"),
        ("c++.tsv", "one\teins\ntwo\tzwei\n"),
        ("a.csv", "tgt,id,src\neins,1,one\nzwei,2,two\n"),
        ("a.jsonl", '{"input": "one", "output": "eins"}\n{"input": "two", "output": "zwei"}\n'),
        ("a.tsv", "en\tde\none\teins\ntwo\tzwei\n"),
        ("a.csv", "English,German,note\none,eins,\ntwo,zwei,\n"),
        ("a.tsv", "Source\tTarget\none\teins\ntwo\tzwei\n"),
    ],
)
def test_every_format_gives_the_same_pairs(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    found = load_pairs(path)
    assert found.pairs == PAIRS and found.name == str(path)
    assert load_pairs(found.name) == found and load_pairs(found.name).sha256 == found.sha256


def test_two_files_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("one\ntwo\n")
    with gzip.open(tmp_path / "a.de.gz", "wt") as file:
        file.write("eins\nzwei\n")
    assert load_pairs(f"{tmp_path}/a.en+{tmp_path}/a.de.gz").pairs == PAIRS
    (tmp_path / "a.en").write_text("one\ntwo\nthree\n")
    with pytest.raises(DataError, match=r"a.en has 3 lines, .*a.de.gz 2"):
        load_pairs(f"{tmp_path}/a.en+{tmp_path}/a.de.gz")


def test_empty_lines_do_not_move_what_follows(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("one\n\nnothing\ntwo\n\n")
    (tmp_path / "a.de").write_text("eins\nnichts\n \nzwei\n\n")
    assert load_pairs(f"{tmp_path}/a.en+{tmp_path}/a.de").pairs == PAIRS
    (tmp_path / "a.de").write_text("eins\nzwei\n")
    with pytest.raises(DataError, match=r"a.en has 5 lines, .*a.de 2"):
        load_pairs(f"{tmp_path}/a.en+{tmp_path}/a.de")


def test_three_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("one\teins\n")
    with pytest.raises(DataError, match=r"c.tsv: 3 files \(must be one, or two as A\+B"):
        load_pairs(f"{tmp_path}/a.tsv+b.tsv+c.tsv")


@pytest.mark.parametrize(
    "first", [("it", "es"), ("German", "Deutsch"), ("de", "de"), ("text", "a text"), ("one", "german")]
)
def test_a_first_row_that_may_be_a_pair_is_one(tmp_path: Path, first: tuple[str, str]) -> None:
    (tmp_path / "a.tsv").write_text("\t".join(first) + "\none\teins\ntwo\tzwei\n")
    assert load_pairs(tmp_path / "a.tsv").pairs == (first, *PAIRS)
    (tmp_path / "a.tsv").write_text("one\teins\nenglish\tgerman\n")  # further down it is no header
    assert load_pairs(tmp_path / "a.tsv").pairs == (PAIRS[0], ("english", "german"))


def test_copies_and_halves_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("one\teins\none\teins\none\tein\n")
    assert load_pairs(path).pairs == (("one", "eins"), ("one", "ein"))
    before = load_pairs(path).sha256
    path.write_text("one\teins\none\tein.\n")
    assert load_pairs(path).sha256 != before


def test_what_is_no_pair_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.tsv: no such file"):
        load_pairs(tmp_path / "none.tsv")
    (tmp_path / "a.txt").write_text("some text")
    with pytest.raises(DataError, match=r"a\.txt: not a file of pairs .*chainrule embed reads"):
        load_pairs(tmp_path / "a.txt")
    (tmp_path / "a.tsv").write_text("only\n")
    with pytest.raises(DataError, match=r"a\.tsv: 1 column, '1' \(must have a source and a target\)"):
        load_pairs(tmp_path / "a.tsv")
    (tmp_path / "b.jsonl").write_text('{"text": "one"}\n')
    with pytest.raises(DataError, match=r"b\.jsonl: 1 column, 'text' \(must have a source and a target\)"):
        load_pairs(tmp_path / "b.jsonl")


def test_functions_and_what_they_do_need_no_file() -> None:
    found = load_pairs()
    assert len(found.pairs) > 1000 and found.version.startswith("CPython")
    assert all(source.startswith("def ") and '"""' not in target for source, target in found.pairs[:50])
