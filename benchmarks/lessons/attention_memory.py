"""softmax(s q kᵀ) v as separate ops and as one: memory and time, as a Markdown table (docs: kernels).

    python -m benchmarks.lessons.attention_memory

One batch entry of 4 heads of 64 channels, causal, forward and backward, on one thread, timed by its own clock.
Each measurement runs in a process of its own: its memory is the growth of the peak over what the inputs need.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np

import chainrule as cr
from benchmarks.harness import ROOT, command_line, fastest, peak_mb
from benchmarks.report import markdown

HEADS, CHANNELS = 4, 64
KINDS = ("composed", "fused")
LENGTHS = (256, 1024, 4096)


def measure(kind: str, T: int) -> dict[str, float]:
    cr.set_threads(1)
    arrays = np.random.default_rng(0).normal(size=(4, 1, HEADS, T, CHANNELS)).astype(np.float32)
    q, k, v = (cr.Tensor(x, requires_grad=True) for x in arrays[:3])
    fn = cr.ops.attention if kind == "fused" else cr.ops.attention.composed
    before = peak_mb()
    ms = fastest(lambda: fn(q, k, v, causal=True).backward(arrays[3]), 1.0, time.thread_time)
    return {"MB": peak_mb() - before, "ms": ms}


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--one", nargs=2, metavar=("KIND", "T"), help="measure one, and print it as JSON")
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one[0], int(args.one[1]))))
        return
    rows = []
    for T in LENGTHS:
        command = [sys.executable, "-m", "benchmarks.lessons.attention_memory", "--one"]
        done = [json.loads(subprocess.check_output([*command, kind, str(T)], cwd=ROOT)) for kind in KINDS]
        rows.append([str(T), *(f"{d['MB']:.0f} MB" for d in done), *(f"{d['ms']:.1f} ms" for d in done)])
    print(markdown(["T", "composed, memory", "fused", "composed, time", "fused"], rows))


if __name__ == "__main__":
    main()
