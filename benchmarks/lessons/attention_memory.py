"""softmax(s q kᵀ) v as separate ops and as one: memory and time, as a Markdown table (docs/kernels.md).

    python -m benchmarks.lessons.attention_memory

One batch entry of 4 heads of 64 channels, causal, forward and backward, on one thread, timed by its own clock.
Each measurement runs in a process of its own: its memory is the growth of the peak over what the inputs need.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import numpy as np

import chainrule as cr

HEADS, CHANNELS = 4, 64
KINDS = ("composed", "fused")
LENGTHS = (256, 1024, 4096)
PATIENCE = 1.0  # seconds for one measurement


def peak() -> int:
    """The most memory this process ever had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024  # Linux counts in KB


def measure(kind: str, T: int) -> dict[str, float]:
    cr.set_threads(1)
    arrays = np.random.default_rng(0).normal(size=(4, 1, HEADS, T, CHANNELS)).astype(np.float32)
    q, k, v = (cr.Tensor(x, requires_grad=True) for x in arrays[:3])
    fn = cr.ops.attention if kind == "fused" else cr.ops.attention.composed
    before, times = peak(), []
    while len(times) < 2 or sum(times) < PATIENCE:
        began = time.thread_time()
        fn(q, k, v, causal=True).backward(arrays[3])
        times.append(time.thread_time() - began)
    return {"MB": peak() - before, "ms": min(times) * 1e3}


def main() -> None:
    print("| T | composed, memory | fused | composed, time | fused |\n|---|---|---|---|---|")
    for T in LENGTHS:
        done = [
            json.loads(subprocess.check_output([sys.executable, __file__, kind, str(T)])) for kind in KINDS
        ]
        cells = [f"{d['MB']:.0f} MB" for d in done] + [f"{d['ms']:.1f} ms" for d in done]
        print(f"| {T} | {' | '.join(cells)} |")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
    else:
        main()
