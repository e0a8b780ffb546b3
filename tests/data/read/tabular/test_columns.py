"""Which columns of a table are read."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.data import Columns, labeled_rows, load, load_pairs
from chainrule.data.read.tabular.columns import LABELED, PAIRED, choose
from chainrule.data.read.tabular.table import Table
from chainrule.errors import DataError

NEWS = "id,headline,story,topic\n" + "".join(
    f"{n},head {n},a longer story number {n},{'sport' if n % 2 else 'world'}\n" for n in range(12)
)
GERMAN = "id,german,english\n" + "".join(f"{n},Satz {n},sentence {n}\n" for n in range(9))


def table(folder: Path, content: str, name: str = "a.csv", columns: Columns | None = None) -> Table:
    (folder / name).write_text(content, encoding="utf-8")
    return Table.open(folder / name, columns or Columns())


def chosen(folder: Path, content: str, columns: Columns, name: str = "a.csv") -> dict[str, tuple[int, ...]]:
    roles = PAIRED if columns.source_column or columns.target_column else LABELED
    return choose(table(folder, content, name, columns), roles, columns)


@pytest.mark.parametrize(
    ("said", "want"),
    [
        (Columns("headline", "topic"), {"text": (1,), "label": (3,)}),
        (Columns("Headline", "TOPIC"), {"text": (1,), "label": (3,)}),
        (Columns("2", "4"), {"text": (1,), "label": (3,)}),
        (Columns("headline,story", "topic"), {"text": (1, 2), "label": (3,)}),
        (Columns(("story", "headline"), "4"), {"text": (2, 1), "label": (3,)}),
        (Columns("story"), {"text": (2,), "label": (3,)}),  # topic is a usual name
        (Columns(source_column="story", target_column="headline"), {"source": (2,), "target": (1,)}),
    ],
)
def test_columns_are_found_by_name_and_by_number(
    tmp_path: Path, said: Columns, want: dict[str, tuple[int, ...]]
) -> None:
    assert chosen(tmp_path, NEWS, said) == want


@pytest.mark.parametrize(
    ("content", "roles", "message"),
    [
        (NEWS.replace("headline", "kicker").replace("topic", "desk"), LABELED,
         r"columns 'id', 'kicker', 'story', 'desk': which is the text and which the label\? \(say it with text_column "
         r"and label_column, such as label_column desk text_column story\)"),
        (NEWS.replace("id,headline,story,topic\n", ""), LABELED,
         r"4 columns without names: .* such as label_column 4 text_column 3; if the first row, '0', 'head 0', .*, "
         r"names the columns, say header\)"),
        (NEWS, PAIRED,
         r"which is the source and which the target\? .* such as source_column headline target_column story"),
        (NEWS.replace("headline", "kicker"), ("text",), r"which is the text\? .* ending \.txt\)"),
        ("text,text,label\na,b,c\n", LABELED, "2 columns 'text'"),
    ],
)  # fmt: skip
def test_what_cannot_be_known_is_asked_for(
    tmp_path: Path, content: str, roles: tuple[str, ...], message: str
) -> None:
    said = Columns("text") if content.startswith("text,text") else Columns()
    with pytest.raises(DataError, match=message):
        choose(table(tmp_path, content, columns=said), roles, said)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            Columns("headlin", "topic"),
            "no column 'headlin' .there are 'id', 'headline'.*or a number from 1 to 4",
        ),
        (Columns("9", "topic"), "no column '9'"),
        (Columns(",", "topic"), "no column ','"),
        (Columns("story", "story"), "'story' as text and 'story' as label .must be different columns"),
    ],
)
def test_a_column_that_is_not_there_is_named_with_those_that_are(
    tmp_path: Path, said: Columns, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        chosen(tmp_path, NEWS, said)


def test_a_name_makes_the_first_row_a_header(tmp_path: Path) -> None:
    content = "red,rot\nblue,blau\n"
    said = Columns(source_column="ROT", target_column="red")
    assert chosen(tmp_path, content, said) == {"source": (1,), "target": (0,)}
    with pytest.raises(
        DataError, match=r"no column 'green' .*if the first row, 'red', 'rot', names the columns, say header"
    ):
        chosen(tmp_path, content, Columns(source_column="green", target_column="2"))


def test_an_id_is_never_taken_for_a_text(tmp_path: Path) -> None:
    rows = "".join(f"{n},{'a' if n % 2 else 'b'}\n" for n in range(20))
    with pytest.raises(DataError, match="which is the text and which the label"):
        choose(table(tmp_path, "key,kind\n" + rows), LABELED, Columns())
    path = tmp_path / "a.csv"
    path.write_text(GERMAN)
    assert load_pairs(path).pairs[0] == ("Satz 0", "sentence 0")
    turned = load_pairs(path, Columns(source_column="english", target_column="german"))
    assert turned.pairs[0] == ("sentence 0", "Satz 0")
    path.write_text(GERMAN.replace("german", "links").replace("english", "rechts"))
    with pytest.raises(DataError, match="such as source_column links target_column rechts"):
        load_pairs(path)


def test_several_columns_are_one_text_without_empty_cells(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    records = [{"t": "one", "b": "two", "y": 1}, {"t": None, "b": "three", "y": 2}, {"b": "", "y": 2}]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    rows, reading = labeled_rows(path, Columns(("t", "b"), "y"))
    assert [(row.text, row.label) for row in rows] == [("one\ntwo", "1"), ("three", "2")]
    assert reading is not None and reading.dropped == {"without a text": 1}
    assert load(path, Columns("t,b")).text == "one\ntwo\n\nthree\n"


NAMES = st.lists(st.from_regex(r"[a-z][a-z_]{2,8}", fullmatch=True), min_size=3, max_size=6, unique=True)
CELLS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), names=NAMES, separator=st.sampled_from([",", ";", "\t"]), mark=st.booleans())
def test_said_columns_are_the_ones_that_are_read(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    names: list[str],
    separator: str,
    mark: bool,
) -> None:
    """Whatever else is in the table: other columns, quotes, empty cells, line ends of other systems."""
    rows = data.draw(
        st.lists(st.lists(CELLS, min_size=len(names), max_size=len(names)), min_size=1, max_size=8)
    )
    text, label = data.draw(st.permutations(range(len(names))))[:2]
    file = io.StringIO()
    writer = csv.writer(file, delimiter=separator, lineterminator=data.draw(st.sampled_from(["\n", "\r\n"])))
    writer.writerows([names, *rows])
    path = tmp_path_factory.getbasetemp() / "said.csv"
    path.write_bytes(("\ufeff" * mark + file.getvalue()).encode())
    whole = [row for row in rows if row[text].strip() and row[label].strip()]
    want = list(dict.fromkeys((row[text], row[label]) for row in whole))
    try:
        found, reading = labeled_rows(path, Columns(names[text], names[label]))
    except DataError as error:
        assert not want and "must keep at least one row" in str(error)
        return
    assert [(row.text, row.label) for row in found] == want
    blank = sum(not "".join(row).strip() for row in rows)
    assert reading is not None and (reading.rows, reading.kept) == (len(rows) - blank, len(want))
    again, _ = labeled_rows(path, Columns(**reading.columns))
    assert again == found
