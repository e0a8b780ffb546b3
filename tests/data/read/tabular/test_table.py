"""Tables: headers, separators, and what was read of them in words."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest

from chainrule.data import Columns, labeled_rows, load_pairs
from chainrule.data.read.tabular.reading import read_rows
from chainrule.data.read.tabular.table import Table
from chainrule.errors import DataError


@pytest.mark.parametrize(
    ("name", "content", "want"),
    [
        ("a.csv", "\ufefftext;label\r\n\"a; b\";1\r\nc, d;0\r\n", [("a; b", "1"), ("c, d", "0")]),
        ("a.csv", "text\tlabel\nsay \"so\"\t1\nno\t0\n", [('say "so"', "1"), ("no", "0")]),
        ("a.csv", 'label,text\n1,"two\nlines"\n0,"a ""quote"""\n', [("two\nlines", "1"), ('a "quote"', "0")]),
        ("a.tsv", 'text\tlabel\na "quote\t1\n', [('a "quote', "1")]),
        ("a.csv", "text,label\na,\n,1\nb,2\nb,2\n", [("b", "2")]),
        ("a.jsonl", '{"id": 1, "utterance": "hi", "intent": true}\n', [("hi", "true")]),
        ("a.jsonl", '{"utterance": "hi", "intent": 3, "x": [1]}\n{"utterance": "yo", "intent": null}\n', [("hi", "3")]),
    ],
)  # fmt: skip
def test_tables_as_programs_write_them(
    tmp_path: Path, name: str, content: str, want: list[tuple[str, str]]
) -> None:
    (tmp_path / name).write_bytes(content.encode())
    found, _ = labeled_rows(tmp_path / name)
    assert [(row.text, row.label) for row in found] == want


def test_the_header_can_be_said(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\na,x\nb,y\n")
    said = Columns("1", "2", header=False)
    assert [row.text for row in labeled_rows(path, said)[0]] == ["text", "a", "b"]
    path.write_text("red,rot\nblue,blau\n")
    assert load_pairs(path, Columns(header=True)).pairs == (("blue", "blau"),)


def test_a_ragged_table_names_the_row_and_the_count(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('text,label\n"two\nlines",x\none, two,y\n')
    with pytest.raises(
        DataError,
        match=r"row 3, in line 4, has 3 cells, the first row 2 \(must be equal, and a cell with ','",
    ):
        labeled_rows(path)


@pytest.mark.parametrize(
    ("names", "place"),
    [
        (["0", "1", "2"], 0),  # as pandas numbers columns: their names are not their places
        (["0", "1", "2"], 1),
        (["Text", " text"], 1),
        (["a,b", "c"], 0),
        (["1", "a", "a"], 2),
        (["text", "label "], 1),
    ],
)
def test_the_columns_of_a_run_are_found_again(tmp_path: Path, names: list[str], place: int) -> None:
    path = tmp_path / "a.csv"
    rows = [[f"{name.strip()} of row {i}" for name in names] for i in range(4)]
    for i, row in enumerate(rows):
        row[place] = f"wanted {i}"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    table = Table.open(path, Columns(header=True))
    again = Columns((table.spoken(place),), header=True)
    assert [text for (text,) in read_rows(path, ("text",), again)[0]] == [row[place] for row in rows]


def test_the_case_of_an_ending_means_nothing(tmp_path: Path) -> None:
    path = tmp_path / "A.CSV"
    path.write_text("text,label\none two,x\nthree,y\n")
    assert [row.text for row in labeled_rows(path)[0]] == ["one two", "three"]
    packed = tmp_path / "A.Csv.GZ"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert labeled_rows(packed)[0] == labeled_rows(path)[0]
