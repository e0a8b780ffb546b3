"""Single kernels, forward and backward, beside PyTorch with malloc told to keep its pages.

make bench ONLY=kernels
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.harness import Program, command_line, progress, race, serve, timed
from benchmarks.report import Row, Table, bold, machine_limits, middle_and_best, milliseconds

ROUNDS, COUNT = 5, 5


@dataclass(frozen=True)
class Case:
    """A kernel of a size, and the work it must do at least: floating-point operations, bytes to and from memory."""

    title: str
    kernel: str
    sizes: tuple[int, ...]
    gflop: float = 0.0
    gigabytes: float = 0.0
    in_readme: bool = False


def rowwise(title: str, kernel: str, rows: int, columns: int, passes: int, in_readme: bool = False) -> Case:
    """A kernel that reads and writes `passes` arrays of the same size."""
    name, sizes = f"{title} {rows} × {columns}", (rows, columns)
    return Case(name, kernel, sizes, gigabytes=passes * 4e-9 * rows * columns, in_readme=in_readme)


def matmul_case(kind: str, M: int, N: int, K: int) -> Case:
    """(M, K) times (K, N); NT has the second factor transposed, TN the first."""
    return Case(f"matmul {kind} {M} × {N} × {K}", f"matmul_{kind.lower()}", (M, N, K), gflop=2e-9 * M * N * K)


MATMULS = [
    ("NT", 768, 384, 128), ("NN", 768, 128, 512), ("TN", 512, 128, 768),
    ("NT", 4096, 1536, 384), ("NN", 4096, 384, 1536), ("TN", 1536, 384, 4096),
    ("NT", 1024, 3072, 768), ("NN", 1024, 768, 3072), ("TN", 3072, 768, 1024),
    ("NT", 512, 50257, 768), ("NN", 512, 768, 50257), ("TN", 50257, 768, 512),
]  # fmt: skip
RECURRENT = [(32, 128, 256, 512), (12, 64, 128, 128)]  # batch, time, inputs, hidden

CASES = [
    *(matmul_case(*matmul) for matmul in MATMULS),
    *(
        Case(
            f"causal attention {B} × {H} × {T} × {D}", "attention", (B, H, T, D), 7e-9 * B * H * T * T * D,
            in_readme=big,
        )
        for B, H, T, D, big in [(16, 6, 256, 64, True), (12, 4, 64, 32, False)]
    ),
    rowwise("softmax + cross-entropy", "cross_entropy", 1024, 50257, 3, in_readme=True),
    rowwise("GELU (tanh)", "gelu_tanh", 4096, 1536, 5, in_readme=True),
    rowwise("GELU (erf)", "gelu", 4096, 1536, 5),
    rowwise("SwiGLU", "swiglu", 4096, 1536, 8),
    rowwise("softmax", "softmax", 4096, 512, 5),
    rowwise("layer norm", "layernorm", 4096, 384, 5, in_readme=True),
    rowwise("RMS norm", "rmsnorm", 4096, 384, 5),
    Case("embedding 50257 × 768, 4096 ids", "embedding", (50257, 768), in_readme=True),
    Case("AdamW, 10 M parameters", "adamw", (10_000_000,), gigabytes=7 * 4e-9 * 1e7),
    *(
        Case(
            f"{kernel.upper()} {B} × {T}, {C} → {H}", kernel, (B, T, C, H), 6e-9 * gates * B * T * H * (C + H),
            in_readme=kernel == "lstm",
        )
        for kernel, gates in (("lstm", 4), ("gru", 3))
        for B, T, C, H in RECURRENT
    ),
    Case("three operations on four numbers", "three_ops", (4,)),
]  # fmt: skip


def step_matmuls() -> list[Case]:
    """The matmuls of the linear layers of training steps a, b and c (steps.py): forward NT, dx NN, dW TN."""
    linears = [(512, 50257, 768)]  # rows, outputs, inputs; the output layer of c, a chunk of rows at a time
    for rows, C in [(768, 128), (4096, 384), (1024, 768)]:
        linears += [(rows, 3 * C, C), (rows, C, C), (rows, 4 * C, C), (rows, C, 4 * C)]
    orders = [("NT", (0, 1, 2)), ("NN", (0, 2, 1)), ("TN", (1, 2, 0))]
    return [matmul_case(kind, *(sizes[i] for i in axes)) for sizes in linears for kind, axes in orders]


STEP_MATMULS = step_matmuls()


def measure(threads: int, quick: bool) -> Table:
    limits, ratios = machine_limits(threads), {}
    table = Table(
        "Kernels, forward and backward",
        f"Median (minimum) of {ROUNDS} rounds of {COUNT} in turn. PyTorch runs with malloc told to keep its pages, see "
        "steps.md. Limit: the larger of the time of the arithmetic and of the memory that must be moved, at the speeds "
        "above; what fits into a cache can be faster.",
        ["", "Chainrule", "PyTorch", "ratio of medians", "of minima", "limit", "of the limit"],
    )
    arguments = ("--threads", threads)
    ours = Program("Chainrule", "benchmarks.peers.kernels_chainrule", *arguments)
    theirs = Program("PyTorch", "benchmarks.peers.kernels_torch", *arguments, keep_pages=True)
    for case in CASES:
        progress(case.title)
        mine, peer = race([ours, theirs], case.title, *((1, 2) if quick else (ROUNDS, COUNT)))
        bound = 1e3 * max(case.gflop / limits["gflops"], case.gigabytes / limits["copy_gb_s"])
        ratios[case.title] = peer.median / mine.median
        table.rows.append(
            (
                case.title, middle_and_best(mine), middle_and_best(peer), bold(ratios[case.title]),
                f"{peer.minimum / mine.minimum:.2f}", milliseconds(bound) if bound else "–",
                f"{bound / mine.median:.0%}" if bound else "–",
            )
        )  # fmt: skip
        if case.in_readme:
            cells = milliseconds(mine.median), f"PyTorch {milliseconds(peer.median)}"
            table.headlines.append(Row(case.title, *cells, f"{ratios[case.title]:.2f}"))
    for program in (ours, theirs):
        program.close()
    lowest = min(ratios, key=ratios.__getitem__)
    mean = statistics.geometric_mean(ratios.values())
    work = f"all {len(CASES)} kernels: geometric mean; lowest ({lowest})"
    table.headlines.append(Row(work, "", "PyTorch", f"{mean:.2f}; {ratios[lowest]:.2f}"))
    return table


# What both workers share

Call = Callable[[], object]


def worker_arguments(description: str | None) -> argparse.ArgumentParser:
    parser = command_line(description)
    parser.add_argument("--threads", type=int, default=2)
    return parser


def serve_kernels(make: Callable[[str, tuple[int, ...]], Call], imported_mb: float) -> None:
    """`make` prepares the call of a kernel; it is kept until another case is asked for."""
    by_title, prepared = {case.title: case for case in [*CASES, *STEP_MATMULS]}, {}

    def run(title: str, count: int) -> list[float]:
        if title not in prepared:
            prepared.clear()  # frees the arrays of the case before
            case = by_title[title]
            prepared[title] = make(case.kernel, case.sizes)
            timed(prepared[title], 2)
        each = 100 if title.startswith("three operations") else 1

        def several() -> None:
            for _ in range(each):
                prepared[title]()

        return [ms / each for ms in timed(several, count)]

    serve(run, imported_mb)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def token_ids(n: int, V: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, V, n)


def matmul_factors(kernel: str, M: int, N: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Two factors (M, K), (K, N), one of them a transposed view: `matmul_tn` has the first one transposed."""
    a = normal(K, M).T if kernel == "matmul_tn" else normal(M, K)
    b = normal(N, K).T if kernel == "matmul_nt" else normal(K, N)
    return a, b
