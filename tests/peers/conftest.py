"""The table of all ops: gradient check and distance from PyTorch, printed after the tests.

CHAINRULE_BATTERY_TABLE=build/battery.md also writes it to a file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import chainrule as cr
from tests.battery import checks as battery

# These have peers of their own, and skip themselves.
WITHOUT_TORCH = {"test_subword.py", "test_tokenizers.py", "test_word2vec.py"}

HERE = Path(__file__).parent
collect_ignore = (
    []
    if find_spec("torch")
    else [path.name for path in HERE.glob("test_*.py") if path.name not in WITHOUT_TORCH]
)

TITLES = ("op", "examples", "gradcheck f64", "forward f64", "gradient f64", "forward f32", "gradient f32")


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """The inputs are small: more threads would only wait for each other."""
    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if collect_ignore:
        terminalreporter.write_line(
            "most of tests/peers not run: PyTorch is missing (pip install torch==2.13.0)"
        )
        return
    checked = {name: (count, worst) for name, count, worst in recorded(terminalreporter, "battery")}
    far = {(name, dtype): distances for name, dtype, *distances in recorded(terminalreporter, "peer")}
    complete = [name for name in cr.ops.all_ops() if {(name, "float64"), (name, "float32")} <= far.keys()]
    if not complete:
        return
    rows = [TITLES, *(row(name, checked, far) for name in complete)]
    terminalreporter.section("every op: gradient check (relative error), distance from PyTorch")
    for line in aligned(rows):
        terminalreporter.write_line(line)
    if path := os.environ.get("CHAINRULE_BATTERY_TABLE"):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(markdown(rows), encoding="utf-8")


def recorded(terminalreporter: Any, name: str) -> Iterator[tuple[Any, ...]]:
    """What the tests that passed left under `name`; it travels with the reports, from other processes too."""
    for report in terminalreporter.stats.get("passed", ()):
        yield from (value for key, value in report.user_properties if key == name)


def row(name: str, checked: dict[str, Any], far: dict[Any, Any]) -> tuple[str, ...]:
    if name not in checked:  # tests/battery is not part of this run
        op = cr.ops.all_ops()[name]
        examples = battery.examples(op)
        checked[name] = len(examples), max(battery.check_gradient(op, example) for example in examples)
    count, worst = checked[name]
    numbers = (worst, *far[name, "float64"], *far[name, "float32"])
    return (name, str(count), *(f"{number:.1e}" for number in numbers))


def aligned(rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for cells in rows:
        name, *numbers = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        yield "  ".join([name.strip().ljust(widths[0]), *numbers])


def markdown(rows: list[tuple[str, ...]]) -> str:
    rule = ("---", *["---:"] * (len(TITLES) - 1))
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (rows[0], rule, *rows[1:]))
