"""The one pool of threads: a whole training run gives the same bits for any number, and nothing leaves it stuck."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.runs import Run
from chainrule.train import TrainConfig
from tests.runs.helpers import corpus
from tests.test_native import python

BIG = {
    "n_layer": 2,
    "n_head": 3,
    "n_embd": 96,
    "block_size": 32,
    "dropout": 0.1,
}  # large enough for two threads


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_training_run_gives_the_same_bits_for_any_number_of_threads(tmp_path: Path, precision: str) -> None:
    states = []
    for n in (1, 2, 3, 8):
        native.set_threads(n)
        config = TrainConfig(max_steps=4, batch_size=16, warmup=1, eval_windows=8, precision=precision)
        run = Run.new(tmp_path / f"{n}", corpus(tmp_path), config, **BIG)
        run.train()
        states.append(run.model.state() | run.trainer.step.optimizer.state())
    for other in states[1:]:
        assert all(value.tobytes() == other[name].tobytes() for name, value in states[0].items())


def test_ctrl_c_leaves_the_pool_as_it_was() -> None:
    """Interrupts at any moment: each is seen as KeyboardInterrupt, and every product stays right."""
    program = """
import numpy as np, sys, time, chainrule as cr
from chainrule import native
cr.set_threads(2)
rng = np.random.default_rng(0)
a, b = (rng.normal(size=(300, 300)).astype(np.float32) for _ in range(2))
want = native.matmul(a, b).tobytes()
print("ready", flush=True)
seen, end = 0, time.monotonic() + 60
while seen < 20 and time.monotonic() < end:
    try:
        while True:
            assert native.matmul(a, b).tobytes() == want
    except KeyboardInterrupt:
        seen += 1
        print(seen, flush=True)
assert native.matmul(a, b).tobytes() == want
print("done", flush=True)
"""
    worker = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    for count in range(1, 21):
        time.sleep(0.005 + 0.0007 * count)
        worker.send_signal(signal.SIGINT)
        assert worker.stdout.readline() == f"{count}\n"
    assert worker.stdout.readline() == "done\n"
    assert worker.wait(timeout=30) == 0


def test_an_exception_in_python_leaves_the_pool_as_it_was() -> None:
    x = cr.Tensor(np.ones((512, 512), np.float32), requires_grad=True)
    want = native.matmul(x.data, x.data)
    for _ in range(20):
        with pytest.raises(ZeroDivisionError):
            y = cr.ops.linear(x, x)
            y.register_hook(lambda grad: 1 / 0)
            y.sum().backward()
        np.testing.assert_array_equal(native.matmul(x.data, x.data), want)


def test_daemon_threads_inside_kernels_do_not_abort_the_exit() -> None:
    result = python(
        """
import threading, time, numpy as np
from chainrule import native
native.set_threads(2)
a = np.ones((600, 600), np.float32)
def forever():
    while True:
        native.matmul(a, a)
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.2)
"""
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_a_forked_child_has_a_pool_and_memory_of_its_own() -> None:
    result = python(
        """
import os, sys, threading, numpy as np
from chainrule import native
native.set_threads(4)
a = np.random.default_rng(0).normal(size=(300, 300)).astype(np.float32)
want = native.matmul(a, a).tobytes()
stop = threading.Event()
def busy():
    while not stop.is_set():
        native.matmul(a, a)
worker = threading.Thread(target=busy)
worker.start()
for turn in range(20):
    child = os.fork()
    if child == 0:
        same = native.matmul(a, a).tobytes() == want
        os._exit(0 if same else 1) if turn % 2 else sys.exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
worker.join()
print("done")
"""
    )
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr
