"""Independent items: all results, whatever the number of processes; a failure is tried again and kept apart."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chainrule.distributed import each, in_order, world
from chainrule.errors import ConfigError, DataError, Failure
from tests.distributed.test_communicator import needs_mpi
from tests.distributed.together import start, together


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


def slow(path: Path) -> None:
    """Says that it was interrupted"""
    path.with_suffix(".begun").touch()
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        path.touch()
        raise


def dies(number: int) -> int:
    """The process of the item 1 is gone"""
    if number == 1:
        os._exit(1)
    return number


@pytest.mark.parametrize("jobs", [1, 3])
def test_results_come_in_order(jobs: int) -> None:
    assert list(in_order(square, iter([*range(3), *range(4, 20)]), jobs)) == [
        x * x for x in range(20) if x != 3
    ]
    assert list(in_order(square, [], jobs)) == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_whole_ends_with_an_item_that_fails_twice(jobs: int, tmp_path: Path) -> None:
    assert list(in_order(second_time, [tmp_path / "a", tmp_path / "b"], jobs)) == ["a", "b"]
    found = in_order(square, [1, 2, 3, 4], jobs)
    assert next(found) == 1
    with pytest.raises(DataError, match="three: is refused"):
        list(found)


def test_a_process_that_dies_is_an_error_of_its_item() -> None:
    found = in_order(dies, [0, 2, 3, 1, 4], 2)
    assert [next(found) for _ in range(3)] == [0, 2, 3]
    with pytest.raises(Failure, match="has died"):
        next(found)


RANKS = """
import os
from chainrule.distributed import each, in_order, ranks_as_workers
from tests.distributed.test_executor import pid, ranks_of_world, square
with ranks_as_workers() as first:
    if first:
        assert list(in_order(square, [0, 1, 2, 4, 5])) == [0, 1, 4, 16, 25]
        found = sorted(each(square, [1, 2, 3, 4]), key=lambda outcome: outcome.number)
        assert [outcome.result for outcome in found] == [1, 4, None, 16] and "three" in found[2].error
        assert os.getpid() not in set(in_order(pid, range(20)))
        assert set(in_order(ranks_of_world, range(20))) == {1}  # what a worker trains, it trains alone
        print("done")
"""


def ranks_of_world(_: int) -> int:
    return world().size


def pid(_: int) -> int:
    return os.getpid()


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_are_workers(ranks: int) -> None:
    done = together(ranks, "-c", RANKS)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_an_interrupt_ends_all_at_once(tmp_path: Path) -> None:
    """It is sent to the first process alone: a terminal sends it to all."""
    program = f"""
from pathlib import Path
from chainrule.distributed import in_order
from tests.distributed.test_executor import slow
if __name__ == "__main__":
    list(in_order(slow, [Path({str(tmp_path)!r}) / name for name in "abcdefgh"], 2))
"""
    (tmp_path / "program.py").write_text(program)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    words = [sys.executable, str(tmp_path / "program.py")]
    process = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        while len(list(tmp_path.glob("*.begun"))) < 2 and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert said.count("Traceback") == 1 and said.endswith(
        "KeyboardInterrupt\n"
    )  # of the program, not of workers
    assert sorted(path.name for path in tmp_path.glob("?")) == ["a", "b"]


@needs_mpi
def test_an_interrupt_ends_all_ranks(tmp_path: Path) -> None:
    """`mpiexec` sends it to all; what was not begun does not begin."""
    program = f"""
from pathlib import Path
from chainrule.distributed import each, ranks_as_workers
from tests.distributed.test_executor import slow
with ranks_as_workers() as first:
    if first:
        list(each(slow, [Path({str(tmp_path)!r}) / name for name in "abcdefgh"]))
"""
    process = start(3, "-c", program)
    try:
        while len(list(tmp_path.glob("*.begun"))) < 2 and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode != 0
    assert len(list(tmp_path.glob("?"))) == len(list(tmp_path.glob("*.begun"))) == 2


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
    with pytest.raises(ConfigError, match="workers is 0"):
        list(each(square, [1], 0))
