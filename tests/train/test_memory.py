"""Freed memory is kept where glibc can be told so."""

from __future__ import annotations

import subprocess
import sys

import pytest

from chainrule.train import memory

COUNT = """
import resource, numpy as np
from chainrule.train.memory import keep_freed_memory
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
    if memory.keep_freed_memory():
        assert faults("keep_freed_memory()") < 100 < faults("")


def test_other_systems_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chainrule.train.memory.sys.platform", "darwin")
    assert not memory.keep_freed_memory()
    monkeypatch.undo()
    monkeypatch.setattr("chainrule.train.memory.ctypes.CDLL", lambda name: object())  # no mallopt, as in musl
    assert not memory.keep_freed_memory()
