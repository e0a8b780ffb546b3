"""A worker for the tests: `serve` takes 1 ms for each run of a case it is asked for, `missing` says why it cannot.

`spin` answers like `serve`, and has a thread that spins for half a second more, as helpers of BLAS do.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from benchmarks.harness import serve, serve_unavailable


def spin() -> None:
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        pass


def answer(case: str, count: int) -> list[float]:
    if sys.argv[1] == "spin":
        threading.Thread(target=spin).start()
    return [1.0] * count


if __name__ == "__main__":
    if sys.argv[1] == "missing":
        serve_unavailable("peer not found (install it)")
    elif sys.argv[1] in ("serve", "spin"):
        tuned = os.environ.get("MALLOC_TRIM_THRESHOLD_")
        serve(answer, 10.0, peak=lambda: 25.0, tuned=tuned)
