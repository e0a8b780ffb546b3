"""Documents as one row of ids."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.data import Encoded

ROWS = st.lists(st.lists(st.integers(0, 99), max_size=12), min_size=1, max_size=15)


@settings(max_examples=60)
@given(rows=ROWS)
def test_documents_come_back_from_one_row(rows: list[list[int]]) -> None:
    encoded = Encoded.of(rows)
    assert [row.tolist() for row in encoded] == rows == [row.tolist() for row in encoded[:]]
    assert encoded.lengths.tolist() == [len(row) for row in rows]
    assert encoded[-1].tolist() == rows[-1]
