"""The table and the chart of how a step grows."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.lessons import growth
from benchmarks.lessons.growth import CASES, Point, all_measured, draw, exponent, table_of

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


def test_a_stopped_measurement_continues(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[int, int, int]] = []

    def measured(sizes: tuple[int, int, int], rounds: int) -> dict[str, Point]:
        asked.append(sizes)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return {"Chainrule": Point(1.0, 2.0), "PyTorch": Point(3.0, 4.0)}

    monkeypatch.setattr(growth, "KEPT", tmp_path / "build" / "growth.json")
    monkeypatch.setattr(growth, "measured", measured)
    with pytest.raises(KeyboardInterrupt):
        all_measured(5)
    curves = all_measured(5)
    every = [sizes for cases in CASES.values() for sizes in cases.values()]
    assert asked == [*every[:3], *every[2:]]  # the third twice, the first two once
    assert curves["context"][256]["PyTorch"] == Point(3.0, 4.0) and list(curves["width"]) == list(
        CASES["width"]
    )
