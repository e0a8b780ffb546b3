"""Columns that cannot be what they were taken for."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainrule.data import Columns
from chainrule.errors import DataError
from chainrule.tasks.labeled.classification import ClassificationTask
from chainrule.tasks.pairs.translation import TranslationTask

ROWS = "id,said,part,kind\n" + "".join(f"{n},text {n},train,{'a' if n % 2 else 'b'}\n" for n in range(200))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (Columns("said", "id"),
         r"200 different labels in 200 rows \(must be at least 2 rows to a label; label is 'id': "
         r"choose another column with label_column\)"),
        (Columns("said", "part"), r"1 different label in 200 rows \(must be at least two; label is 'part'"),
        (Columns("part", "kind"), r"the same text in all 2 rows \(must differ; text is 'part'"),
    ],
)  # fmt: skip
def test_labels_and_texts_that_are_none(tmp_path: Path, columns: Columns, message: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(ROWS)
    with pytest.raises(DataError, match=message):
        ClassificationTask.of(ClassificationTask.find(path, columns))
    found = ClassificationTask.of(ClassificationTask.find(path, Columns("said", "kind")))
    assert list(found.names) == ["a", "b"]


def test_pairs_with_one_side_for_all(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(ROWS)
    said = Columns(source_column="said", target_column="part")
    with pytest.raises(DataError, match=r"the same target in all 200 pairs \(must differ; target is 'part'"):
        TranslationTask.of(TranslationTask.find(path, said))
