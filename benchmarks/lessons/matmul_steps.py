"""A matmul from three loops to all cores: GFLOP/s of each step, as a Markdown table (docs/understand/kernels.md).

python -m benchmarks.lessons.matmul_steps [n]           needs the native kernels and a C++ compiler ($CXX, or c++)
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

import chainrule as cr
from benchmarks.harness import command_line, fastest
from benchmarks.report import markdown
from chainrule.machine import one_blas_thread

HERE = Path(__file__).parent
STEPS = {
    "dot_products": "three loops, row times column (i j k)",
    "weighted_columns": "three loops, columns weighted (j k i)",
    "weighted_rows": "three loops, rows weighted (i k j)",
    "blocked": "the same in blocks for the cache",
    "register_tile": "a tile of C in registers",
}
SMALL = 96  # the size for Python itself


def compiled() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "steps.so"
        flags = [
            "-O3",
            "-march=native",
            "-std=c++17",
            "-shared",
            "-fPIC",
            "-Wno-psabi",
            "-DCHAINRULE_ISA=steps",
        ]
        source, include = HERE / "matmul_steps.cpp", HERE.parents[1] / "native"
        command = [os.environ.get("CXX", "c++"), *flags, f"-I{include}", str(source), "-o", str(library)]
        subprocess.run(command, check=True)
        steps = ctypes.CDLL(str(library))
    steps.limit.restype = ctypes.c_size_t
    return steps


def best(fn: Callable[[], object], threads: int = 1) -> float:
    """Seconds of the fastest run; one thread by its own clock, which stands still while others have the core."""
    return fastest(fn, clock=time.thread_time if threads == 1 else time.perf_counter) / 1e3


def pointer(x: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


def pure_python(n: int) -> float:
    a, b = ([[1.0] * n for _ in range(n)] for _ in range(2))
    c = [[0.0] * n for _ in range(n)]

    def run() -> None:
        for i in range(n):
            for j in range(n):
                total = 0.0
                for k in range(n):
                    total += a[i][k] * b[k][j]
                c[i][j] = total

    return 2 * n**3 / best(run) / 1e9


def limit(steps: ctypes.CDLL, threads: int) -> float:
    def one(_: int = 0) -> int:  # ctypes lets go of the GIL
        tile = np.ones(1024, np.float32)
        return int(steps.limit(pointer(tile), ctypes.c_size_t(tile.size), ctypes.c_size_t(5_000_000)))

    if threads == 1:
        return one() / best(one) / 1e9
    with ThreadPoolExecutor(threads) as pool:
        return threads * one() / best(lambda: list(pool.map(one, range(threads))), threads) / 1e9


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("n", nargs="?", type=int, default=768, help="rows and columns of the matrices")
    n = parser.parse_args().n
    steps = compiled()
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, n, n)).astype(np.float32)
    c, exact = np.empty_like(a), a.astype(np.float64) @ b

    def measured(fn: Callable[[], object], threads: int = 1) -> float:
        c.fill(np.nan)
        speed = 2 * n**3 / best(fn, threads) / 1e9
        np.testing.assert_allclose(c, exact, atol=1e-5 * n)
        return speed

    def run(step: Callable[..., object]) -> None:
        step(pointer(c), pointer(a), pointer(b), ctypes.c_size_t(n))

    rows = [(f"Python, three loops ({SMALL} × {SMALL})", 1, pure_python(SMALL))]
    for name, title in STEPS.items():
        rows.append((f"C++, {title}", 1, measured(partial(run, getattr(steps, name)))))
    for threads in (1, 2):
        cr.set_threads(threads)
        speed = measured(lambda: cr.native.matmul(a, b, out=c), threads)
        rows.append(("packed panels: `native.matmul`", threads, speed))
    with one_blas_thread():
        rows.append(("for comparison: NumPy's `@`", 1, measured(lambda: np.matmul(a, b, out=c))))
    limits = {threads: limit(steps, threads) for threads in (1, 2)}

    cells = [[title, str(t), f"{v:.3g}", f"{100 * v / limits[t]:.3g} %"] for title, t, v in rows]
    cells += [["the limit: multiply-adds without memory", str(t), f"{v:.0f}", ""] for t, v in limits.items()]
    print(markdown([f"{n} × {n} × {n}", "threads", "GFLOP/s", "of the limit"], cells))


if __name__ == "__main__":
    main()
