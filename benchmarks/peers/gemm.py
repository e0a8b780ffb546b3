"""The matmuls of the training steps a, b and c beside NumPy's OpenBLAS and PyTorch.

make bench ONLY=gemm
"""

from __future__ import annotations

import statistics

from benchmarks.harness import Measured, Program, faster, progress, race
from benchmarks.peers.kernels import STEP_MATMULS, Case
from benchmarks.report import Row, Table, bold, machine_limits

ROUNDS = 5
COUNT = 3
SECONDS = 0.03  # a round of a small matmul takes at least so long: more runs than COUNT


def count_of(case: Case, gflops: float) -> int:
    return max(COUNT, round(SECONDS * gflops / case.gflop))


def gflops_of(case: Case, measured: Measured) -> str:
    return f"{1e3 * case.gflop / measured.median:.0f} ({1e3 * case.gflop / measured.minimum:.0f})"


def measure(threads: int, quick: bool) -> Table:
    variables = {"OPENBLAS_NUM_THREADS": str(threads), "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    limit = machine_limits(threads)["gflops"]
    arguments = ("--threads", threads)
    programs = [
        Program("Chainrule", "benchmarks.peers.kernels_chainrule", *arguments, variables=variables),
        Program("OpenBLAS", "benchmarks.peers.gemm_numpy", variables=variables),
        Program(
            "PyTorch", "benchmarks.peers.kernels_torch", *arguments, keep_pages=True, variables=variables
        ),
    ]
    table = Table(
        "Matmuls of the training steps",
        f"GFLOP/s at the median (at best) of {ROUNDS} rounds in turn, each of {COUNT} runs or more. NT is the forward "
        "pass of a linear layer, NN the gradient of its input, TN that of its weight. Factors lie on huge pages, as in "
        "a step. Ratio: of medians, to the faster peer.",
        ["", *(program.name for program in programs), "ratio", "of the limit"],
    )
    speeds: dict[str, list[float]] = {program.name: [] for program in programs}
    ratios = {}
    for case in STEP_MATMULS:
        progress(case.title)
        mine, *peers = race(programs, case.title, *((1, 2) if quick else (ROUNDS, count_of(case, limit))))
        for measured in (mine, *peers):
            speeds[measured.name].append(1e3 * case.gflop / measured.median)
        ratios[case.title] = faster(peers).median / mine.median
        cells = [gflops_of(case, measured) for measured in (mine, *peers)]
        share = f"{1e3 * case.gflop / mine.median / limit:.0%}"
        table.rows.append((case.title, *cells, bold(ratios[case.title]), share))
    for program in programs:
        program.close()
    means = {name: statistics.geometric_mean(values) for name, values in speeds.items()}
    ours, *others = means.values()
    table.rows.append(
        ("geometric mean", *(f"{mean:.0f}" for mean in means.values()), bold(ours / max(others)), f"{ours / limit:.0%}")
    )  # fmt: skip
    lowest = min(ratios, key=ratios.__getitem__)
    peers_text = ", ".join(f"{name} {mean:.0f}" for name, mean in means.items() if name != "Chainrule")
    table.headlines.append(
        Row(f"{len(STEP_MATMULS)} matmuls of steps a, b, c, GFLOP/s: geometric mean; lowest ({lowest})",
            f"{ours:.0f}", peers_text, f"{ours / max(others):.2f}; {ratios[lowest]:.2f}")
    )  # fmt: skip
    return table
