"""Runs from tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from chainrule.errors import DataError
from chainrule.scaling.fits import Runs

TABLE = "name,N,C,loss,set\na,1e6,6e13,3.1,x\nb,2_000_000,2.4e14,2.8,x\nc,4e6,9.6e14,,x\nd,4e6,9.6e14,2.5,y\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text(TABLE)
    return path


COLUMNS = {"loss": "loss", "params": "N", "flops": "C"}


def test_two_quantities_give_the_third(table: Path) -> None:
    runs = Runs.read(table, COLUMNS)
    assert runs.params.tolist() == [1e6, 2e6, 4e6]
    np.testing.assert_allclose(runs.tokens, [1e7, 2e7, 4e7])
    assert runs.dropped == ("line 4: loss empty",)
    back = Runs.of(runs.loss, tokens=runs.tokens, flops=runs.flops)
    np.testing.assert_allclose(back.params, runs.params)


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_columns_may_be_separated_otherwise(separator: str, table: Path) -> None:
    plain = Runs.read(table, COLUMNS)
    table.write_text(TABLE.replace(",", separator))
    assert Runs.read(table, COLUMNS).loss.tolist() == plain.loss.tolist()


def test_a_name_that_is_not_asked_for_may_occur_twice(table: Path) -> None:
    table.write_text("N,C,loss,,\n1e6,6e13,3.1,,\n2e6,6e13,3.0,,\n")
    assert len(Runs.read(table, COLUMNS)) == 2


def test_some_of_the_rows(table: Path) -> None:
    assert len(Runs.read(table, COLUMNS, {"set": "x"})) == 2
    with pytest.raises(DataError, match=r"no run in it .*set equal to z"):
        Runs.read(table, COLUMNS, {"set": "z"})


def test_without_the_highest(table: Path) -> None:
    kept = Runs.read(table, COLUMNS).without_highest(1)
    assert kept.loss.tolist() == [2.8, 2.5]
    assert "the 1 highest of 3 losses, 3.1 and above" in kept.dropped
    with pytest.raises(DataError, match="3 runs to drop of 3"):
        Runs.read(table, COLUMNS).without_highest(3)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("N,C\n1,2\n", r"no column 'loss' for loss \(must be one of N, C"),
        ("N,C,loss\n1,2\n", "line 2: 2 columns, the header has 3"),
        ("N,C,loss\n1,two,3\n", "line 2: C is 'two'"),
        ("N,C,loss\n1,-2,3\n", "line 2: C is '-2'"),
        ("N,C,loss\n1,nan,3\n", "line 2: C is 'nan'"),
        ("N,C,loss\n", "no run in it"),
        ("N,C,loss,loss\n1,2,3,4\n", r"column 'loss' is there 2 times \(must be once"),
        ("N;C;loss\n1;2;3,1\n", r"line 2: loss is '3,1' \(must be a positive number, with a point"),
    ],
)
def test_what_is_wrong_is_named_by_line(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=said):
        Runs.read(path, COLUMNS)


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        Runs.read(tmp_path / "no.csv", COLUMNS)
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not text in UTF-8"):
        Runs.read(tmp_path / "b.csv", COLUMNS)
