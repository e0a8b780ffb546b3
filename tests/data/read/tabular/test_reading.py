"""What was read of a table: rows kept and dropped, and how it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainrule.data import Columns, labeled_rows, read_documents
from chainrule.errors import DataError


def test_what_was_read_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,text,label\n1,a,x\n2,,x\n3,b,\n4,a,x\n5,c,y\n")
    rows, reading = labeled_rows(path)
    assert len(rows) == 2 and str(reading) == (
        "a.csv: text is 'text', label is 'label'; the first row names the columns; 5 rows, 2 kept, 3 dropped "
        "(1 without a text, 1 without a label, 1 copies of another row)"
    )
    path.write_text("a,x\nb,y\nb,y\n")
    _, reading = labeled_rows(path, Columns("1", "2"))
    assert str(reading).startswith(
        "a.csv: text is column 1, label is column 2; no header: the first row is data; 3 rows"
    )
    assert reading is not None
    assert reading.columns == {"text_column": ["1"], "label_column": "2", "header": False}


def test_a_table_without_rows_to_keep_says_why(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\n,x\n,y\n")
    with pytest.raises(
        DataError, match=r"2 rows, 0 kept, 2 dropped \(2 without a text\) \(must keep at least one"
    ):
        labeled_rows(path)


def test_rows_of_documents_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,body\n1,one\n2,\n3,three\n")
    told: list[str] = []
    found = list(read_documents(path, tell=lambda reading: told.append(str(reading))))
    assert [document.text for document in found] == ["one", "", "three"]
    assert told == ["a.csv: text is 'body'; the first row names the columns; 3 rows, 3 kept, none dropped"]


def test_space_around_a_label_makes_no_other_label(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text, label\nfoo, good\nbar,good\n baz ,bad \n")
    assert [tuple(row[:2]) for row in labeled_rows(path)[0]] == [
        ("foo", "good"),
        ("bar", "good"),
        (" baz ", "bad"),
    ]
