"""Texts with labels: what is held back to evaluate on, the vocabulary, and names of labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from chainrule.data import LabelCorpus, Labeled, load_labels
from chainrule.errors import DataError
from chainrule.models import make
from chainrule.tasks.labeled.classification import SPLIT, ClassificationTask

TINY = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 64}
FEW = {"batch_size": 4, "limit": 8}


def texts(count: int, labels: tuple[str, ...] = ("neg", "pos")) -> list[Labeled]:
    """From one word to sixty, longer and longer."""
    return [Labeled(f"t{i} " + "w " * (60 * i // count), labels[i % len(labels)]) for i in range(count)]


def test_a_few_texts_to_judge_by_are_as_long_as_all_of_them() -> None:
    labels = ClassificationTask.of(LabelCorpus("some", "test", tuple(texts(400))))
    model = make("bert-classifier", **TINY, **labels.sizes())
    batches = labels.eval_batches(model, **FEW)
    every = labels.eval_batches(model, batch_size=4, limit=1000)
    lengths, whole = ([int(n) for (_, mask, _), _ in some for n in mask.sum(1)] for some in (batches, every))
    assert len(lengths) == 8 and len(whole) == len(labels.validation)
    assert max(lengths) == max(whole) and np.mean(lengths) == pytest.approx(np.mean(whole), rel=0.2)


def test_the_vocabulary_is_made_of_the_texts_to_train_on() -> None:
    rows = texts(400)
    held_back = {
        row.text for row in ClassificationTask.of(LabelCorpus("some", "test", tuple(rows))).validation
    }
    rare = [row._replace(text=row.text + "qqqqqq") if row.text in held_back else row for row in rows]
    rare = [row for row in rare if row.text.endswith("q") == (SPLIT.part(row.text) == "validation")]
    labels = ClassificationTask.of(LabelCorpus("some", "test", tuple(rare)))
    assert any("q" in row.text for row in labels.validation)
    assert not any("q" in row.text for row in labels.training)
    assert "[UNK]" in labels.tokenizer.decode(labels.tokenizer.encode("q"))


def test_too_few_texts_after_copies_were_left_out(tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("good fine food\nbad dull food\n" * 10, encoding="utf-8")
    with pytest.raises(DataError, match=r"2 texts, 18 copies left out \(must be enough to hold back one in"):
        ClassificationTask.of(load_labels(path))
    rows = [f"{row.label} {row.text}" for row in texts(40)]
    path.write_text("\n".join([*rows, rows[0]]), encoding="utf-8")
    assert ClassificationTask.of(load_labels(path)).amount().endswith(", 1 copy left out")


def test_labels_are_known_by_name() -> None:
    labels = ClassificationTask.of(LabelCorpus("some", "test", tuple(texts(400))))
    model = make("bert-classifier", **TINY, **labels.sizes())
    assert model.config.labels == ("neg", "pos")
    one = ClassificationTask.of(
        LabelCorpus("one", "test", tuple(texts(9, ("pos",)))), labels.tokenizer, eval_only=True
    )
    assert one.names == {"pos": 0}
    assert {int(n) for _, numbers in one.fitted(model).eval_batches(model, **FEW) for n in numbers} == {1}
    rows = tuple(texts(9, ("yak", "zebra")))
    other = ClassificationTask.of(LabelCorpus("other", "test", rows), labels.tokenizer, eval_only=True)
    with pytest.raises(DataError, match=r"other: label 'yak', unknown to the model \(must be neg, pos\)"):
        other.fitted(model)


def test_names_of_columns_are_no_label(tmp_path: Path) -> None:
    path = tmp_path / "reviews.tsv"
    rows = "".join(f"{row.text}\t{row.label}\n" for row in texts(100))
    path.write_text("review\tsentiment\n" + rows)
    assert (
        ClassificationTask.of(ClassificationTask.find(path)).amount().endswith("reviews.tsv: 50 neg, 50 pos")
    )
    path.write_text(rows)
    assert (
        ClassificationTask.of(ClassificationTask.find(path)).amount().endswith("reviews.tsv: 50 neg, 50 pos")
    )
