"""How a training scales over the cores of this machine, and what the link between two ranks can do.

    python -m benchmarks.cluster            about six minutes on a quiet machine; writes benchmarks/results/cluster.md
    python -m benchmarks.cluster --quick    one round, to see that it works; prints the tables

One process with one thread, one with two, and two ranks with one thread each make the same steps, in turn. Needs
`pip install 'chainrule[mpi]'`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.cluster_worker import BATCH, SIZES
from benchmarks.harness import ROOT, Measured, Unavailable, command_line, progress
from benchmarks.report import Table, describe_machine, markdown, page

MPIEXEC = Path(sys.executable).with_name("mpiexec")
PROGRAMS: dict[str, tuple[int, int, tuple[str, ...]]] = {  # ranks, threads of each, options
    "1 process, 1 thread": (1, 1, ()),
    "1 process, 2 threads": (1, 2, ()),
    "2 ranks of 1 thread": (2, 1, ()),
    "2 ranks, gradients after backward": (2, 1, ("--whole",)),
    "2 ranks, optimizer sharded": (2, 1, ("--shard",)),
}
BASE = "1 process, 1 thread"


def worker(ranks: int, threads: int, *words: str) -> Any:
    """The answer of `benchmarks.cluster_worker`."""
    environment = {**os.environ, "CHAINRULE_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1"}
    launcher = [str(MPIEXEC), "-n", str(ranks)] if ranks > 1 else []
    command = [*launcher, sys.executable, "-m", "benchmarks.cluster_worker", *words]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout.splitlines()[-1])


def scaling(rounds: int, count: int) -> Table:
    """Steps of each program, in turn."""
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    last: dict[str, Any] = {}
    for number in range(rounds):
        progress(f"round {number + 1} of {rounds}")
        for name, (ranks, threads, options) in PROGRAMS.items():
            last[name] = worker(ranks, threads, "steps", str(count), *options)
            times[name] += last[name]["ms"]
    measured = {name: Measured(name, found) for name, found in times.items()}
    tokens = BATCH * SIZES["block_size"]
    rows: list[Sequence[str]] = []
    for name, found in measured.items():
        ranks, threads, _ = PROGRAMS[name]
        ratio = measured[BASE].median / found.median
        rows.append((
            name, f"{found.median:.0f} ms ({found.minimum:.0f} ms)", f"{1e3 * tokens / found.median:,.0f}",
            f"{ratio:.2f}", f"{ratio / (ranks * threads):.0%}", f"{last[name]['peak'] / 1e6:.0f} MB",
            f"{last[name]['state'] / 1e6:.0f} MB",
        ))  # fmt: skip
    size = f"{last[BASE]['parameters'] / 1e6:.1f} million parameters, {tokens:,} tokens a step"
    about = f"Median (minimum) of {rounds} x {count} steps in turn, of a GPT of {size}."
    header = (
        "", "step", "tokens/s", "speed-up", "of the cores", "peak memory of a rank", "optimizer's state of a rank"
    )  # fmt: skip
    return Table("Scaling over the cores of one machine", about, header, rows)


def link(count: int) -> list[str]:
    """The table of messages and sums, and what follows from it."""
    found = worker(2, 1, "link", str(count))
    ranks = found.pop("ranks")
    rows = []
    for size, seconds in found.items():
        ours, mpi = seconds["ours"], seconds["mpi"]
        speed = f"{int(size) / seconds['message'] / 1e9:.2f} GB/s"
        rows.append((
            f"{int(size):,}", f"{1e6 * seconds['message']:,.1f} µs", speed, f"{1e6 * ours:,.0f} µs",
            f"{1e6 * mpi:,.0f} µs", f"{ours / mpi:.2f}",
        ))  # fmt: skip
    header = ("bytes", "message", "speed", "sum in the order of ranks", "MPI's own sum", "ratio")
    large = [s["ours"] / s["mpi"] for size, s in found.items() if int(size) >= 1 << 20]
    cost = f"{statistics.median(large):.2f} times the time of MPI's own sum from a megabyte on"
    return [
        f"The link between {ranks} ranks of this machine (shared memory), the best of {count}:",
        markdown(header, rows),
        f"The fixed order of sums costs {cost}.",
    ]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds; the figures mean nothing")
    args = parser.parse_args()
    if not MPIEXEC.exists():
        raise SystemExit("cluster: mpiexec is not installed (pip install 'chainrule[mpi]')")
    table = scaling(1 if args.quick else 7, 1 if args.quick else 6)
    table.notes = link(5 if args.quick else 30)
    text = page("cluster", table, describe_machine(2), "python -m benchmarks.cluster")
    print(text)
    if not args.quick:
        path = ROOT / "benchmarks" / "results" / "cluster.md"
        path.write_text(text, encoding="utf-8")
        progress(f"written to {path}")


if __name__ == "__main__":
    main()
