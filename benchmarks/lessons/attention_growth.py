"""Scores grow with the square of the length: the time of attention for n, 2n, 4n, ... as a Markdown table.

    python -m benchmarks.lessons.attention_growth

One sequence, 4 heads of 64 channels, without a mask, forward, on one thread, by its own clock. Beside the time the
multiply-adds, whose ratio is 4 exactly; the linear layers of the same block only double.        R-456 (seed 004 §9.6)
"""

from __future__ import annotations

import time

import numpy as np

import chainrule as cr
from chainrule.scaling.complexity import operations

HEADS, SIZE = 4, 64
LENGTHS = (256, 512, 1024, 2048, 4096)
PATIENCE = 0.5  # seconds for each length


def milliseconds(n: int) -> float:
    """Of the fastest pass."""
    q, k, v = np.random.default_rng(0).normal(size=(3, 1, HEADS, n, SIZE)).astype(np.float32)
    times: list[float] = []
    while len(times) < 3 or sum(times) < PATIENCE:
        began = time.thread_time()
        cr.ops.attention(q, k, v)
        times.append(time.thread_time() - began)
    return 1e3 * min(times)


def main() -> None:
    cr.set_threads(1)
    width = HEADS * SIZE
    print("| tokens | ms | ratio | multiply-adds of attention | of the matrices |\n|---|---|---|---|---|")
    before = None
    for n in LENGTHS:
        took, work = milliseconds(n), operations(n, width, 4 * width)
        ratio = "–" if before is None else f"{took / before:.2f}"
        print(f"| {n} | {took:.2f} | {ratio} | {work.pop('attention'):,} | {sum(work.values()):,} |")
        before = took


if __name__ == "__main__":
    main()
