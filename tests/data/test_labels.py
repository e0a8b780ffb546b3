"""Labeled texts by name: the built-in ones, files, and their hashes."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainrule.data import LabelCorpus, Labeled, Tagged, load_labels, load_tags
from chainrule.errors import DataError


def test_docstrings_are_there_with_labels_and_with_tags() -> None:
    labeled, tagged = load_labels("docstrings"), load_tags("docstrings")
    assert {row.label for row in labeled.texts} == {"code", "prose"}
    assert len(set(labeled.texts)) == len(labeled.texts) and len(set(tagged.texts)) == len(tagged.texts)
    assert tagged.texts[0].words[0] == "def" and tagged.texts[0].labels[0] == "keyword"


def test_files_are_found_by_their_path(tmp_path: Path) -> None:
    texts, tags = tmp_path / "texts.txt", tmp_path / "tags.conll"
    texts.write_text("good fine day\nbad dull day\ngood fine day\n", encoding="utf-8")
    tags.write_text("Ada\tNAME\nwrote\tO\n\nAda\tNAME\nwrote\tO\n", encoding="utf-8")
    assert load_labels(texts).texts == (Labeled("fine day", "good"), Labeled("dull day", "bad"))
    found = load_tags(tags)
    assert found.texts == (Tagged(("Ada", "wrote"), ("NAME", "O")),) and found.name == str(tags)
    assert found.reading is not None and found.reading.rows == 4
    assert load_labels(texts).copies == found.copies == 1


def test_copies_are_counted_within_and_between_files(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("text,label\none,x\none,x\ntwo,y\n", encoding="utf-8")
    found = load_labels(tmp_path)
    assert (len(found.texts), found.copies) == (2, 4)


@pytest.mark.parametrize(("load", "what"), [(load_labels, "texts with labels"), (load_tags, "sentences")])
def test_a_file_that_is_not_there(load: object, what: str) -> None:
    with pytest.raises(DataError, match=rf"^no.csv: no such file \(must be {what}.*, or docstrings\)$"):
        load("no.csv")  # type: ignore[operator]


def test_the_hash_is_that_of_texts_and_labels_in_order() -> None:
    rows = (Labeled("a b", "x"), Labeled("c", "y"))
    hashes = {LabelCorpus("name", "file", some).sha256 for some in (rows, rows[::-1], (rows[0], rows[0]))}
    assert len(hashes) == 3
    assert LabelCorpus("other", "file", rows).sha256 in hashes
