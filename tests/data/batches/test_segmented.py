"""Rows of one or two texts between special tokens."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from chainrule.data import SpecialIds, segmented
from chainrule.data.batches.segmented import trim

SPECIAL = SpecialIds(cls=1, sep=2, mask=3, pad=0)


@given(first=st.integers(1, 30), second=st.integers(1, 30), room=st.integers(2, 30))
def test_the_longer_text_loses_its_end_first(first: int, second: int, room: int) -> None:
    a, b = trim(np.arange(first), np.arange(second), room)
    assert b is not None and len(a) >= 1 and len(b) >= 1
    assert len(a) + len(b) == min(room, first + second)
    if len(a) < first:
        assert len(a) >= len(b) - 1
    if len(b) < second:
        assert len(b) >= len(a) - 1


def test_rows_with_and_without_a_second_text() -> None:
    rows = segmented([np.array([7])], [None], SPECIAL)
    assert rows.ids.tolist() == [[1, 7, 2]] and rows.mask.all() and not rows.segments.any()
