"""Independent items: all results, whatever the number of processes; a failure is tried again and kept apart."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chainrule.distributed import each
from chainrule.errors import ConfigError, DataError


def square(x: int) -> int:
    if x == 3:
        raise DataError("three: is refused (must be another)")
    return x * x


def second_time(path: Path) -> str:
    """Fails at its first call"""
    if not path.exists():
        path.touch()
        raise DataError("not yet")
    return path.name


def dies(number: int) -> int:
    """The process of the item 1 is gone"""
    if number == 1:
        os._exit(1)
    return number


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_and_errors(jobs: int) -> None:
    found = sorted(each(square, [1, 2, 3, 4], jobs), key=lambda outcome: outcome.number)
    assert [outcome.result for outcome in found] == [1, 4, None, 16]
    assert [outcome.error for outcome in found] == ["", "", "three: is refused (must be another)", ""]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failure_is_tried_again(jobs: int, tmp_path: Path) -> None:
    assert [outcome.result for outcome in each(second_time, [tmp_path / "a"], jobs)] == ["a"]


def test_a_process_that_dies_costs_its_item_only() -> None:
    found = {outcome.number: outcome for outcome in each(dies, [0, 1, 2, 3], 2)}
    assert found[1].result is None and found[1].error
    assert [found[number].result for number in (0, 2, 3)] == [0, 2, 3]


def test_at_least_one_process() -> None:
    with pytest.raises(ConfigError, match="0 processes"):
        list(each(square, [1], 0))
