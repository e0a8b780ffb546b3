"""Freed memory is kept where glibc can be told so, and the BLAS is held to one thread."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

from chainrule import machine

COUNT = """
import resource, numpy as np
from chainrule.machine import keep_freed_memory
{call}
def step():
    a = [np.ones(1 << 20, np.float32) for _ in range(8)]  # 32 MB
step(); step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(call: str) -> int:
    code = COUNT.format(call=call)
    return int(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    )


def test_a_step_gets_no_fresh_pages() -> None:
    if machine.keep_freed_memory():
        assert faults("keep_freed_memory()") < 100 < faults("")


def test_other_systems_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chainrule.machine.sys.platform", "darwin")
    assert not machine.keep_freed_memory()
    monkeypatch.undo()
    monkeypatch.setattr("chainrule.machine.ctypes.CDLL", lambda name: object())  # no mallopt, as in musl
    assert not machine.keep_freed_memory()


def test_one_blas_thread_and_back() -> None:
    def threads() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    with machine.one_blas_thread():
        assert all(n == 1 for n in threads())
    assert threads() == before


RUN = """
import sys
from pathlib import Path
from tests.runs import helpers
helpers.SIZE |= {"n_embd": 128, "n_head": 4, "block_size": 64}  # large enough for a BLAS to share out
run = helpers.new_run(Path(sys.argv[1]), max_steps=3, batch_size=16)
run.train()
print([loss.hex() for _, loss in helpers.losses(run)])
"""


def test_same_bits_for_any_number_of_threads(tmp_path: Path) -> None:
    def last_line(threads: str) -> str:
        (tmp_path / threads).mkdir()
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(tmp_path / threads)],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[1],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads, "CHAINRULE_THREADS": threads},
        )
        return done.stdout.splitlines()[-1]

    assert last_line("1") == last_line("2") == last_line("4")


@pytest.mark.parametrize("kind", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_a_limit_of_the_process_is_its_memory(kind: str) -> None:
    limit = 3 << 29
    code = f"""
import resource
from chainrule.machine import memory
there = memory()
resource.setrlimit(resource.{kind}, ({limit}, resource.RLIM_INFINITY))
print(there, memory())
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    there, limited = map(int, said.split())
    assert limited == min(there, limit)


PEAK = """
from chainrule.machine import peak_memory, resident_memory
assert 10 << 20 < resident_memory() <= peak_memory() < 200 << 20, (resident_memory(), peak_memory())
block = bytearray(100 << 20)
del block
assert resident_memory() < 100 << 20 < peak_memory() < 300 << 20
"""


def test_memory_is_that_of_this_process_whatever_started_it() -> None:
    large = bytearray(400 << 20)
    subprocess.run([sys.executable, "-c", PEAK], check=True)
    assert len(large) < machine.peak_memory() and machine.resident_memory() <= machine.peak_memory()
