"""What is said about the columns of a table."""

from __future__ import annotations

from chainrule.columns import CHOSEN, Columns, flag


def test_one_text_column_or_several_are_said_alike() -> None:
    assert Columns("title") == Columns(("title",)) == Columns(["title"])  # type: ignore[arg-type]
    assert Columns("title", "topic").asked("text") == ("title",)
    assert Columns(label_column="topic").asked("label") == ("topic",) and CHOSEN.asked("label") == ()
    assert flag("source") == "source_column"
