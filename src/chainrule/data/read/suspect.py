"""Columns that cannot be what they were taken for, before a model is trained on them."""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.data.read.columns import flag
from chainrule.data.read.reading import Reading
from chainrule.errors import DataError, Setting

MANY = 10  # labels; fewer are not told from texts by their number
TEXTS_PER_LABEL = 2  # at least


def refuse_columns(name: str, texts: Sequence[str], labels: int, reading: Reading | None) -> None:
    """Refuse labels that are all the same, or nearly as many as the texts, and texts that are all the same."""
    if labels < 2:
        same = f"{labels} different label{'s' * (labels != 1)} in {len(texts):,} texts (must be at least two"
        raise _other(name, "label", same, reading)
    if labels >= MANY and TEXTS_PER_LABEL * labels > len(texts):
        rule = f"must be at least {TEXTS_PER_LABEL} texts to a label"
        many = f"{labels:,} different labels in {len(texts):,} texts ({rule}"
        raise _other(name, "label", many, reading)
    if len(set(texts)) < 2:
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
