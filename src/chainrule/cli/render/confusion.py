"""What a classifier gets right and wrong, label by label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chainrule.cli.render.tables import table

WIDEST = 12  # labels of a matrix; of more, the commonest mistakes are listed


def by_label(found: Mapping[str, Any]) -> list[str]:
    """Precision, recall and F1 of each label, and the confusion matrix or its commonest mistakes."""
    labels = found["labels"]
    rows = [
        [name, *(f"{each[score]:.1%}" for score in ("precision", "recall", "f1")), f"{each['count']:,}"]
        for name, each in labels.items()
    ]
    lines = ["", *table(["label", "precision", "recall", "F1", "count"], rows), ""]
    names = list(labels)
    if len(names) <= WIDEST:
        rows = [[name, *map("{:,}".format, row)] for name, row in zip(names, found["confusion"], strict=True)]
        return [*lines, "confusion: rows are right, columns were given", *table(["", *names], rows)]
    listed = [[f"{n:,}", right, given] for right, given, n in found["mistakes"]]
    return [*lines, "commonest mistakes", *table(["count", "right", "given"], listed)] if listed else lines
