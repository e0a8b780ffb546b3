"""Turn-taking, and workers in processes of their own."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import count
from mmap import mmap
from types import SimpleNamespace

import pytest
from benchmarks import harness
from benchmarks.harness import (
    LONGEST,
    SETTLE,
    Measured,
    Program,
    Unavailable,
    faster,
    fastest,
    in_turn,
    memory_mb,
    peak_mb,
    race,
    resident_mb,
    settle,
    started,
    timed,
)

WORKER = "tests.benchmarks.worker"


class Recorder:
    """A program that only notes when it is asked."""

    def __init__(self, name: str, asked: list[str]) -> None:
        self.name, self.asked = name, asked

    def ask(self, case: str, count: int) -> None:
        self.asked.append(f"{self.name} {case} {count}")

    def measured(self, case: str) -> Measured:
        return Measured(self.name, [1.0])

    def cpu_ticks(self) -> int:
        return 0


def test_programs_take_turns_in_every_round() -> None:
    asked: list[str] = []
    programs = [Recorder("ours", asked), Recorder("peer", asked)]
    race(programs, "step", 2, 3)  # type: ignore[arg-type]
    assert asked == ["ours step 3", "peer step 3"] * 2


class Spinning:
    """A program whose helpers have used `ticks`, one more of them each time; only `sleep` advances the clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ticks: Iterable[int]) -> None:
        self.cpu_ticks = iter(ticks).__next__
        self.slept: list[float] = []
        clock = SimpleNamespace(monotonic=lambda: sum(self.slept), sleep=self.slept.append)
        monkeypatch.setattr(harness, "time", clock)


def test_a_turn_begins_when_the_helpers_of_others_no_longer_spin(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Spinning(monkeypatch, [1, 2, 3, 3])
    settle([program])  # type: ignore[list-item]
    assert program.slept == [SETTLE] * 2


def test_helpers_that_spin_for_ever_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Spinning(monkeypatch, count())
    settle([program])  # type: ignore[list-item]
    assert LONGEST <= sum(program.slept) < LONGEST + 2 * SETTLE


def test_the_ticks_of_a_worker_are_counted() -> None:
    program = Program("peer", WORKER, "serve")
    assert program.cpu_ticks() > 0  # it has started Python
    program.close()


def test_runs_take_turns_in_every_round() -> None:
    order: list[str] = []
    found = in_turn({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 3)
    assert order == ["a", "b"] * 3
    assert {name: len(measured.ms) for name, measured in found.items()} == {"a": 3, "b": 3}


def test_statistics_of_times() -> None:
    measured = Measured("ours", [5.0, 1.0, 2.0, 3.0, 4.0])
    assert (measured.median, measured.minimum) == (3.0, 1.0)
    assert measured.spread == pytest.approx((4 - 2) / 3)
    slow, quick = Measured("slow", [1.0, 9.0, 9.0]), Measured("quick", [2.0, 3.0, 4.0])
    assert faster([slow, quick]) is quick  # by the median, not by the minimum


def test_times_are_milliseconds() -> None:
    clock = iter([0.0, 0.5, 1.0, 3.0]).__next__
    assert timed(lambda: None, 2, clock) == [500.0, 2000.0]
    assert fastest(lambda: time.sleep(0.001), seconds=0.01) >= 1.0


def test_a_worker_answers_with_times_and_memory() -> None:
    program = Program("peer", WORKER, "serve", keep_pages=True)
    assert race([program], "step", 2, 3)[0].ms == [1.0] * 6
    assert program.info["peak_mb"] - program.info["imported_mb"] == 15.0
    assert program.info["tuned"] == "1000000000"  # malloc keeps its pages
    program.close()
    assert program.worker.returncode == 0


def test_malloc_is_tuned_only_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    program = Program("ours", WORKER, "serve")
    assert program.info["tuned"] is None
    program.close()


def test_a_library_chooses_its_own_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    program = Program("peer", WORKER, "serve", variables={"OPENBLAS_VERBOSE": "1"})
    assert program.info["chosen"] == {"OPENBLAS_NUM_THREADS": "2", "OPENBLAS_VERBOSE": "1"}
    program.close()


def test_a_peer_that_is_missing_says_why() -> None:
    running, reasons = started([lambda: Program("peer", WORKER, "missing")])
    assert not running and reasons == {"peer not found (install it)"}
    with pytest.raises(Unavailable, match="peer stopped with exit code 0"):
        Program("peer", WORKER, "ends at once")
    with pytest.raises(RuntimeError, match="Chainrule stopped"):  # is no row of a table
        Program("Chainrule", WORKER, "ends at once")


def test_memory_is_counted_in_megabytes() -> None:
    before = resident_mb()
    block = mmap(-1, 64 << 20)  # of its own: an allocator may give memory that is resident already
    for page in range(0, len(block), 4096):
        block[page] = 1
    assert 50 < resident_mb() - before < 100
    block.close()
    assert peak_mb() >= before + 50
    assert memory_mb("VmHWM", pid=2**22 + 1) == 0  # ended
