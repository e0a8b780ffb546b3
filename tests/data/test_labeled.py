"""Texts with labels: reading them, and batches of them."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from chainrule.data import (
    Labeled,
    LabeledBatches,
    SpecialIds,
    TwinBatches,
    label_ids,
    read_labeled,
)
from chainrule.errors import DataError

DATA = os.environ.get("CHAINRULE_DATA")  # read here: no test sees the variable
SPECIAL = SpecialIds(cls=1, sep=2, mask=3, pad=0)


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
        ("a.jsonl", '{"text": "x"}', "line 1 has no field 'label'"),
        ("a.jsonl", '{"text": "x", "label": 1.5}', r"line 1: 'label' is a float \(must be a string\)"),
        ("a.jsonl", '{"text": 3, "label": 1}', r"line 1: 'text' is a int \(must be a string\)"),
        ("a.tsv", "text\tlabel\nx\n", "line 2 has 1 columns"),
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


# -- batches ----------------------------------------------------------------------------------------------------


def test_an_epoch_visits_every_text_once_with_its_label() -> None:
    texts = [np.arange(4, 4 + n) for n in range(1, 11)]
    batches = LabeledBatches(texts, range(10), special=SPECIAL, batch_size=4, block_size=8, seed=3, pool=5)
    found = []
    for step in range(5):
        (ids, mask, segments), labels = batches.batch(step)
        assert ids.shape[1] <= 8 and not segments.any()
        found += [(row[m].tolist(), int(label)) for row, m, label in zip(ids, mask, labels, strict=True)]
    want = [([1, *text[:6].tolist(), 2], label) for label, text in enumerate(texts)]
    assert sorted(found) == sorted(want * 2)


def test_every_text_once_for_an_exam() -> None:
    batches = LabeledBatches(
        [[5] * n for n in (4, 1, 3)], [0, 1, 0], special=SPECIAL, batch_size=2, block_size=8
    )
    (first, labels), (last, label) = batches.once()
    assert first.ids.tolist() == [[1, 5, 2, 0, 0], [1, 5, 5, 5, 2]] and labels.tolist() == [1, 0]
    assert last.ids.tolist() == [[1, 5, 5, 5, 5, 2]] and label.tolist() == [0]


def test_pairs_share_a_row() -> None:
    batches = LabeledBatches(
        [[5] * 9, [6]], [0, 1], [[7], [8] * 9], special=SPECIAL, batch_size=2, block_size=8
    )
    (ids, _, segments), labels = batches.batch(0)
    rows = dict(zip(labels.tolist(), zip(ids.tolist(), segments.tolist(), strict=True), strict=True))
    assert rows[0] == ([1, 5, 5, 5, 5, 2, 7, 2], [0, 0, 0, 0, 0, 0, 1, 1])
    assert rows[1] == ([1, 6, 2, 8, 8, 8, 8, 2], [0, 0, 0, 1, 1, 1, 1, 1])


def test_twins_stay_together() -> None:
    texts, partners = [[n] * 2 for n in range(4, 10)], [[n] * 3 for n in range(4, 10)]
    batches = TwinBatches(texts, partners, special=SPECIAL, batch_size=3, block_size=8, seed=5)
    for step in range(4):
        twins, targets = batches.batch(step)
        assert (twins.ids[:, 1] == twins.partner_ids[:, 1]).all() and (targets == 0).all()
        assert twins.mask.all() and twins.partner_ids.shape == (3, 5)


def test_texts_without_labels_are_refused() -> None:
    with pytest.raises(DataError, match=r"2 texts, 1 labels \(must be as many\)"):
        LabeledBatches([[1], [2]], [0], special=SPECIAL, batch_size=1, block_size=8)
    with pytest.raises(DataError, match=r"2 texts, 2 labels, 1 second texts"):
        LabeledBatches([[1], [2]], [0, 1], [[3]], special=SPECIAL, batch_size=1, block_size=8)
