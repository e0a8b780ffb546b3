"""Independent items: all results, whatever the number of processes; a failure is tried again and kept apart."""

from __future__ import annotations

import os
import subprocess
import sys
import time
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


def long_work(path: Path) -> None:
    """Says who works on it, and never ends"""
    path.with_suffix(".new").write_text(str(os.getpid()))
    path.with_suffix(".new").rename(path)
    time.sleep(600)


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


def test_processes_do_not_outlive_the_one_that_began_them(tmp_path: Path) -> None:
    program = f"""
import os, signal, threading, time
from pathlib import Path
from chainrule.distributed import each
from tests.distributed.test_executor import long_work
if __name__ == "__main__":
    place = Path({str(tmp_path)!r})
    threading.Thread(target=lambda: list(each(long_work, [place / "a", place / "b"], 2)), daemon=True).start()
    while len(list(place.glob("?"))) < 2:
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    (tmp_path / "program.py").write_text(program)
    root = str(Path(__file__).parents[2])
    subprocess.run(
        [sys.executable, tmp_path / "program.py"], env={**os.environ, "PYTHONPATH": root}, timeout=120
    )
    pids = [int(path.read_text()) for path in tmp_path.glob("?")]
    until = time.monotonic() + 30
    while any(Path(f"/proc/{pid}/cmdline").exists() for pid in pids) and time.monotonic() < until:
        time.sleep(0.1)
    assert len(pids) == 2 and not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_at_least_one_process() -> None:
    with pytest.raises(ConfigError, match="0 processes"):
        list(each(square, [1], 0))
