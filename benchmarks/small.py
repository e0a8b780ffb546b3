"""Small things next to PyTorch; each side in processes of its own, in turn, so that their threads do not meet.

    python benchmarks/small.py            needs torch (make test-peers installs it)

Ratios above 1 mean that Chainrule is faster.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

ROUNDS = 5
rng = np.random.default_rng(0)
SHAPES = ((4096, 384), (384,), (384,), (4096, 384))


def microseconds(fn: Callable[[], object], repeat: int) -> float:
    for _ in range(10):
        fn()
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        fn()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e6


def ours() -> dict[str, float]:
    import chainrule as cr
    from chainrule.machine import keep_freed_memory

    cr.set_threads(2)
    keep_freed_memory()  # as the trainer does
    few = cr.Tensor(np.ones(4, np.float32), requires_grad=True)
    *inputs, dy = (rng.normal(size=shape).astype(np.float32) for shape in SHAPES)
    tensors = [cr.Tensor(a, requires_grad=True) for a in inputs]

    def three_ops() -> None:
        few.zero_grad()
        (few * 2.0).tanh().sum().backward()

    def layer_norm() -> None:
        for t in tensors:
            t.zero_grad()
        cr.ops.layernorm(*tensors).backward(dy)

    return {"three ops": microseconds(three_ops, 2000), "layer norm": microseconds(layer_norm, 200)}


def theirs() -> dict[str, float]:
    import torch

    torch.set_num_threads(2)
    few = torch.ones(4, requires_grad=True)
    *inputs, dy = (torch.tensor(rng.normal(size=shape).astype(np.float32)) for shape in SHAPES)
    tensors = [a.requires_grad_() for a in inputs]

    def three_ops() -> None:
        few.grad = None
        (few * 2.0).tanh().sum().backward()

    def layer_norm() -> None:
        for t in tensors:
            t.grad = None
        torch.nn.functional.layer_norm(tensors[0], (384,), tensors[1], tensors[2]).backward(dy)

    return {"three ops": microseconds(three_ops, 2000), "layer norm": microseconds(layer_norm, 200)}


def import_time(module: str) -> float:
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    return float(subprocess.check_output([sys.executable, "-c", code])) * 1e6


def main() -> None:
    rows: dict[str, tuple[list[float], list[float]]] = {}
    for _ in range(ROUNDS):
        for column, side in enumerate(("ours", "theirs")):
            done = subprocess.check_output([sys.executable, __file__, side])
            measured = json.loads(done) | {"import": import_time(("chainrule", "torch")[column])}
            for name, value in measured.items():
                rows.setdefault(name, ([], []))[column].append(value)
    print(f"{'':<14}{'chainrule':>13}{'torch':>13}")
    for name, columns in rows.items():
        a, b = map(statistics.median, columns)
        print(f"{name:<14}{a:10.0f} µs{b:10.0f} µs   x{b / a:.2f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps({"ours": ours, "theirs": theirs}[sys.argv[1]]()))
    else:
        main()
