"""Other data, read like those of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainrule.columns import CHOSEN, Columns
from chainrule.data.read.again import as_before

NAMED = Columns("said", "kind", header=True)
NUMBERED = Columns("2", "3", header=True)
UNNAMED = Columns("2", "3", header=False)
SAME = "key,said,kind\n1,a,x\n2,b,y\n"
BARE = "1,a,x\n2,b,y\n3,c,x\n4,d,y\n5,e,x\n"


@pytest.mark.parametrize(
    ("content", "asked", "before", "want"),
    [
        (SAME, CHOSEN, NAMED, NAMED),
        (SAME, Columns(header=True), NAMED, NAMED),
        (SAME, Columns("key"), NAMED, Columns("key", "kind", header=True)),
        (SAME, Columns("key", "said"), NAMED, Columns("key", "said", header=True)),
        (SAME, CHOSEN, NUMBERED, NUMBERED),  # two columns of one name are known by number alone
        (SAME, CHOSEN, Columns(), CHOSEN),
        ("text,label\na,x\n", CHOSEN, NAMED, CHOSEN),
        ("text,label\na,x\n", CHOSEN, NUMBERED, CHOSEN),
        (BARE, CHOSEN, UNNAMED, UNNAMED),
        (BARE, CHOSEN, NAMED, CHOSEN),
        (SAME.replace("key", "id").replace("said", "text"), CHOSEN, UNNAMED, CHOSEN),
    ],
)
def test_what_is_not_said_is_as_in_the_run(
    tmp_path: Path, content: str, asked: Columns, before: Columns, want: Columns
) -> None:
    (tmp_path / "a.csv").write_text(content)
    assert as_before(str(tmp_path / "a.csv"), asked, before) == want
    assert as_before(str(tmp_path), asked, before) == want
    assert as_before(str(tmp_path / "*.csv"), asked, before) == want


def test_columns_of_a_run_are_not_asked_of_plain_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("good a film\n")
    assert as_before(str(tmp_path / "a.txt"), CHOSEN, NAMED) == CHOSEN
    asked = Columns("said")  # which is then refused
    assert as_before(str(tmp_path / "a.txt"), asked, NAMED) == asked


def test_the_data_of_the_run_are_read_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\na,x\n")
    before = Columns("1", "2", header=False)
    assert as_before(str(path), CHOSEN, before, str(path)) == before
    assert as_before("pydoc", CHOSEN, before) == CHOSEN
