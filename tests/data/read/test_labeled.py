"""Texts with labels: reading them, and batches of them."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from chainrule.data import Labeled, label_ids, read_labeled
from chainrule.errors import DataError

DATA = os.environ.get("CHAINRULE_DATA")  # read here: no test sees the variable


@pytest.mark.parametrize(
    ("name", "content", "columns", "want"),
    [
        ("a.tsv", 'a "fine" film\t1\nno\t0\n', {"text": "1", "label": "2"}, [('a "fine" film', "1"), ("no", "0")]),
        ("a.csv", 'label,text\n2,"one, two"\n', {}, [("one, two", "2")]),
        ("a.csv", "3,title,body\n", {"label": "1", "text": "2", "other": "3"}, [("title", "3", "body")]),
        ("a.jsonl", '{"text": "x", "label": 1}\n{"text": "y", "label": "no"}\n', {}, [("x", "1"), ("y", "no")]),
        ("a.txt", "DESC:manner How ?\n\n0 What films ?\n", {}, [("How ?", "DESC:manner"), ("What films ?", "0")]),
    ],
)  # fmt: skip
def test_files_of_several_kinds(
    name: str, content: str, columns: dict[str, str], want: list[tuple[str, ...]], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
    assert read_labeled(tmp_path / name, **columns) == [Labeled(*row) for row in want]
    assert read_labeled(tmp_path / f"{name}.gz", **columns) == [Labeled(*row) for row in want]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", '{"text": "x"}', r"1 column, 'text' \(must have a text and a label\)"),
        ("a.jsonl", '{"text": "x", "label": [1]}', r"line 1: 'label' is a list \(must be a string\)"),
        ("a.jsonl", '{"text": 3, "label": 1}', r"line 1: 'text' is an int \(must be a string\)"),
        ("a.tsv", "text\tlabel\nx\n", "row 2, in line 2, has 1 cells, the first row 2"),
        ("a.txt", "0 good\nbad\n", r"line 2 is 'bad' \(must be a label, a space and a text\)"),
    ],
)
def test_a_broken_file_is_named_with_the_line(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_labeled(tmp_path / name)


def test_labels_have_numbers_that_depend_on_nothing_but_the_labels() -> None:
    assert label_ids(["pos", "neg", "pos"]) == {"neg": 0, "pos": 1}
    assert list(label_ids([str(n) for n in (11, 2, 10, 0)])) == ["0", "2", "10", "11"]


@pytest.mark.skipif(DATA is None, reason="needs the data sets")
def test_real_sets(tmp_path: Path) -> None:
    folder = Path(str(DATA), "classify")
    sst = read_labeled(folder / "sst2" / "train.tsv", text="1", label="2")
    assert len(sst) > 6900 and list(label_ids([row.label for row in sst])) == ["0", "1"]
    questions = tmp_path / "trec.txt"
    questions.write_text((folder / "trec" / "TREC.train.txt").read_text("latin-1"), encoding="utf-8")
    trec = read_labeled(questions)
    assert len(trec) == 5452 and len(label_ids([row.label for row in trec])) == 6
    news = read_labeled(folder / "ag_news_a.csv", text="2", label="1", other="3")
    assert len(news) == 6432 and all(row.other for row in news)
