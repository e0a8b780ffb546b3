"""Columns that cannot be what they were taken for, before a model is trained on them."""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.columns import flag
from chainrule.data.read.tabular.reading import Reading
from chainrule.errors import DataError, Setting

MANY = 10  # labels; fewer are not told from texts by their number
ROWS_PER_LABEL = 2  # at least


def refuse_columns(name: str, texts: Sequence[str], labels: Sequence[str], reading: Reading | None) -> None:
    """Refuse labels that are all the same, or nearly as many as the texts, and texts that are all the same."""
    different, count = len(set(labels)), len(labels)
    if different < 2:
        same = f"{different} different label{'s' * (different != 1)} in {count:,} rows (must be at least two"
        raise _other(name, "label", same, reading)
    if different >= MANY and ROWS_PER_LABEL * different > count:
        rule = f"must be at least {ROWS_PER_LABEL} rows to a label"
        many = f"{different:,} different labels in {count:,} rows ({rule}"
        raise _other(name, "label", many, reading)
    if len(texts) > 1 and len(set(texts)) < 2:
        raise _other(name, "text", f"the same text in all {len(texts):,} rows (must differ", reading)


def refuse_pairs(name: str, pairs: Sequence[tuple[str, str]], reading: Reading | None) -> None:
    """Refuse sources or targets that are all the same: there is nothing to learn."""
    for role, side in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
        if len(pairs) > 1 and len(set(side)) < 2:
            raise _other(name, role, f"the same {role} in all {len(pairs):,} pairs (must differ", reading)


def _other(name: str, role: str, said: str, reading: Reading | None) -> DataError:
    """The error, with the flag that chooses another column of a table."""
    if reading is None:
        return DataError(f"{name}: {said})")
    column = f"; {role} is {reading.shown[role]}: choose another column with "
    return DataError(f"{name}: {said}{column}", Setting(flag(role)), ")")
