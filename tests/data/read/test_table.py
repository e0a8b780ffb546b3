"""Tables: headers, separators, and what was read of them in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainrule.data import Columns, labeled_rows, load_pairs
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
