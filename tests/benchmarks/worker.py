"""A worker for the tests: `serve` takes 1 ms for each run of a case it is asked for, `missing` says why it cannot."""

from __future__ import annotations

import os
import sys

from benchmarks.harness import serve, serve_unavailable


def answer(case: str, count: int) -> list[float]:
    return [1.0] * count


if __name__ == "__main__":
    if sys.argv[1] == "missing":
        serve_unavailable("peer not found (install it)")
    elif sys.argv[1] == "serve":
        tuned = os.environ.get("MALLOC_TRIM_THRESHOLD_")
        chosen = {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}
        serve(answer, 10.0, peak=lambda: 25.0, tuned=tuned, chosen=chosen)
