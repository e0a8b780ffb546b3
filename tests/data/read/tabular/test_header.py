"""Whether the first row of a table names its columns."""

from __future__ import annotations

import pytest

from chainrule.data.read.tabular.header import names_columns

LABELS = [[f"some text {n}", "good" if n % 3 else "bad"] for n in range(9)]


@pytest.mark.parametrize(
    ("first", "rest", "want"),
    [
        (["text", "label"], [], True),
        (["", "review", "stars"], [["0", "fine", "5"]], True),  # as pandas writes it
        (["review", "verdict"], LABELS, True),
        (["some text", "good"], LABELS, False),  # its label is that of others
        (["a long sentence, and more of it than a name would have", "new"], LABELS, False),
        (["said", "stars"], [[f"t{n}", str(n % 5)] for n in range(9)], True),
        (["1", "2"], LABELS, False),
        (["one", "eins"], [["two", "zwei"]], False),
        (["kind", "kind"], LABELS, False),
        (["text", "label", ""], [["a", "x", "1"]], True),
        (["Überschrift, lang", "Rubrik", ""], [[*row, ""] for row in LABELS], True),
        (["#", "Review (EN) & more", "Stars, 1-5"], [[str(n), f"t{n}", str(n % 5)] for n in range(9)], True),
        (["some text", ""], LABELS, False),  # its label is missing
        (["one", "eins", ""], [[f"a{n}", f"b{n}", ""] for n in range(9)], False),  # pairs, a comma at the end
        (["Is it late?", "new"], LABELS, False),
    ],
)
def test_whether_the_first_row_names_the_columns(first: list[str], rest: list[list[str]], want: bool) -> None:
    assert names_columns(first, rest) is want
