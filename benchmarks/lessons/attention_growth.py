"""Scores grow with the square of the length: the time of attention for n, 2n, 4n, ... as a Markdown table.

    python -m benchmarks.lessons.attention_growth

One sequence, 4 heads of 64 channels, without a mask, forward, on one thread, by its own clock. Beside the time the
multiply-adds, whose ratio is 4 exactly; the linear layers of the same block only double.
"""

from __future__ import annotations

import time

import numpy as np

import chainrule as cr
from benchmarks.harness import command_line, fastest
from benchmarks.report import markdown
from chainrule.scaling.complexity import operations

HEADS, SIZE = 4, 64
LENGTHS = (256, 512, 1024, 2048, 4096)


def milliseconds(n: int) -> float:
    """Of the fastest pass."""
    q, k, v = np.random.default_rng(0).normal(size=(3, 1, HEADS, n, SIZE)).astype(np.float32)
    return fastest(lambda: cr.ops.attention(q, k, v), clock=time.thread_time)


def main() -> None:
    command_line(__doc__).parse_args()
    cr.set_threads(1)
    width = HEADS * SIZE
    rows, before = [], None
    for n in LENGTHS:
        took, work = milliseconds(n), operations(n, width, 4 * width)
        ratio = "–" if before is None else f"{took / before:.2f}"
        rows.append([str(n), f"{took:.2f}", ratio, f"{work.pop('attention'):,}", f"{sum(work.values()):,}"])
        before = took
    print(markdown(["tokens", "ms", "ratio", "multiply-adds of attention", "of the matrices"], rows))


if __name__ == "__main__":
    main()
