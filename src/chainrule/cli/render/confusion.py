"""What a classifier gets right and wrong, label by label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chainrule.cli.render.tables import table

WIDEST = 12  # labels of a matrix; of more, the commonest mistakes are listed
MISTAKES = 10


def by_label(labels: Mapping[str, Mapping[str, Any]], counts: Sequence[Sequence[int]]) -> list[str]:
    """Precision, recall and F1 of each label, and the confusion matrix or its commonest mistakes."""
    rows = [
        [name, *(f"{each[score]:.1%}" for score in ("precision", "recall", "f1")), f"{each['count']:,}"]
        for name, each in labels.items()
    ]
    lines = ["", *table(["label", "precision", "recall", "F1", "count"], rows), ""]
    names = list(labels)
    if len(names) <= WIDEST:
        found = [[name, *(f"{n:,}" for n in row)] for name, row in zip(names, counts, strict=True)]
        return [*lines, "confusion: rows are right, columns were given", *table(["", *names], found)]
    wrong = [
        (n, names[i], names[j]) for i, row in enumerate(counts) for j, n in enumerate(row) if i != j and n
    ]
    worst = sorted(wrong, key=lambda each: -each[0])[:MISTAKES]
    listed = [[f"{n:,}", right, given] for n, right, given in worst]
    return [*lines, "commonest mistakes", *table(["count", "right", "given"], listed)] if listed else lines
