"""What separates the cells of a .csv."""

from __future__ import annotations

import pytest

from chainrule.data.read.tabular.dialect import separator


@pytest.mark.parametrize(
    ("lines", "want"),
    [
        (["a,b", "1,2"], ","),
        (["a;b;c", "1;x, y;3", "1;x;3"], ";"),
        (["a\tb", "1\t2"], "\t"),
        (["a|b", "1|2"], "|"),
        (["a,b;c", "1,2;3"], ","),  # both fit: it is called .csv
        (['"a;b",c', "1,2"], ","),
        (["one column", "and more; of it"], ","),
        (["a,b", "1,2,3"], ","),  # ragged, which is said when it is read
        ([], ","),
    ],
)
def test_the_separator_gives_all_rows_as_many_cells(lines: list[str], want: str) -> None:
    assert separator(lines) == want
