"""The file of a recipe: new rows replace those of the same name, others stay."""

from __future__ import annotations

import datetime
from pathlib import Path

from benchmarks.recipes.results import write

HEADER = ("task", "model", "accuracy")


def table(folder: Path, *rows: tuple[str, ...], header: tuple[str, ...] = HEADER) -> list[str]:
    text = write("mine", "Mine", ["chainrule train"], header, rows, keys=2, folder=folder)
    assert text == (folder / "recipe-mine.md").read_text(encoding="utf-8")
    assert text.startswith("# Mine\n") and "    chainrule train\n" in text
    return [line for line in text.splitlines() if line.startswith("|")][2:]


def test_a_part_of_a_recipe_replaces_its_own_rows_only(tmp_path: Path) -> None:
    today = datetime.date.today()
    assert table(tmp_path, ("TREC", "bag", "80 %"), ("TREC", "body", "90 %")) == [
        f"| TREC | bag | 80 % | {today} |",
        f"| TREC | body | 90 % | {today} |",
    ]
    assert table(tmp_path, ("TREC", "bag", "82 %"), ("SST-2", "bag", "78 %")) == [
        f"| TREC | bag | 82 % | {today} |",
        f"| TREC | body | 90 % | {today} |",
        f"| SST-2 | bag | 78 % | {today} |",
    ]


def test_rows_that_stay_keep_their_day(tmp_path: Path) -> None:
    table(tmp_path, ("TREC", "bag", "80 %"))
    path = tmp_path / "recipe-mine.md"
    path.write_text(path.read_text(encoding="utf-8").replace(str(datetime.date.today()), "2020-01-01"))
    assert table(tmp_path, ("TREC", "body", "90 %"))[0].endswith("| 2020-01-01 |")


def test_a_table_with_other_columns_begins_anew(tmp_path: Path) -> None:
    table(tmp_path, ("TREC", "bag", "80 %"))
    assert len(table(tmp_path, ("TREC", "body", "0.3"), header=("task", "model", "loss"))) == 1
