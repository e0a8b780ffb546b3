"""The table and the chart of how a step grows."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.lessons.growth import CASES, Point, draw, exponent, table_of

from chainrule.cli.render.plots.canvas import save

CURVES = {
    axis: {x: {"Chainrule": Point(x**2.0, 3.0 * x), "PyTorch": Point(2 * x**2.0, 6.0 * x)} for x in cases}
    for axis, cases in CASES.items()
}


def test_the_exponent_is_that_of_the_last_two_points() -> None:
    assert exponent([(1, 100.0), (2, 8.0), (4, 32.0)]) == pytest.approx(2)
    assert exponent([(256, 10.0), (1024, 40.0)]) == pytest.approx(1)


def test_the_table_has_a_row_for_each_size_and_tells_the_exponents() -> None:
    table = table_of(CURVES, 5)
    assert len(table.rows) == sum(map(len, CASES.values()))
    assert table.rows[0] == ("context", "256", "65.54 s", "131.07 s", "2.00", "768 MB", "1536 MB", "0.50")
    assert table.notes[0] == (
        "Between the last two points of the context: Chainrule: time as the power 2.00, memory 1.00; "
        "PyTorch: time as the power 2.00, memory 1.00."
    )


def test_the_chart_is_drawn(tmp_path: Path) -> None:
    save(draw(CURVES), tmp_path / "growth.png")
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")
