"""The side of NumPy's OpenBLAS of gemm.py; OPENBLAS_NUM_THREADS sets its threads."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import resident_mb
from benchmarks.peers.kernels import Call, matmul_factors, serve_kernels

IMPORTED = resident_mb()


def make(kernel: str, sizes: tuple[int, ...]) -> Call:
    a, b = matmul_factors(kernel, *sizes)
    out = np.empty((a.shape[0], b.shape[1]), np.float32)
    return lambda: np.matmul(a, b, out=out)


if __name__ == "__main__":
    serve_kernels(make, IMPORTED)
