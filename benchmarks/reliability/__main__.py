"""How the program takes what goes wrong, thousands of times; writes benchmarks/results/reliability.md.

Example: python -m benchmarks.reliability
         python -m benchmarks.reliability --quick --only commands
"""

from __future__ import annotations

import datetime
import importlib
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("CHAINRULE_THREADS", "1")  # processes are forked, which threads do not survive
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmarks.harness import ROOT, command_line, progress
from benchmarks.reliability.tries import MEMORY, SECONDS, Tally
from benchmarks.report import markdown

COUNTS = {"kills": 200, "damage": 1000, "inputs": 5000, "commands": 500}
QUICK = {"kills": 3, "damage": 15, "inputs": 45, "commands": 20}
HEADER = ["what", "tries", "refused", "peak memory", "minutes", "problems"]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--quick", action="store_true", help="few tries, nothing is written")
    parser.add_argument(
        "--only", nargs="+", choices=COUNTS, default=list(COUNTS), metavar="NAME", help="of %(choices)s"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder to work in, kept afterwards")
    args = parser.parse_args()
    rows, problems = [], []
    for name in args.only:
        count = (QUICK if args.quick else COUNTS)[name]
        progress(f"{name}: {count} tries")
        began = time.monotonic()
        tally = run(name, count, args.seed, args.keep)
        minutes = (time.monotonic() - began) / 60
        memory = f"{tally.memory / 2**20:,.0f} MiB" if tally.memory else ""
        found = str(len(tally.problems))
        rows.append([tally.title, f"{tally.tries:,}", f"{tally.refused:,}", memory, f"{minutes:.1f}", found])
        problems += tally.problems
    print(markdown(HEADER, rows))
    for problem in problems:
        print(f"- {problem}")
    if not args.quick and args.only == list(COUNTS):
        path = ROOT / "benchmarks" / "results" / "reliability.md"
        path.write_text(_page(rows, problems, args.seed), encoding="utf-8")
        progress(f"written to {path}")
    sys.exit(1 if problems else 0)


def run(name: str, count: int, seed: int = 0, keep: Path | None = None) -> Tally:
    """One campaign."""
    campaign = importlib.import_module(f"benchmarks.reliability.{name}").campaign
    memory = Path("/dev/shm")  # a disk would wait for thousands of flushes
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as made:
        folder = Path(made) if keep is None else keep / name
        folder.mkdir(parents=True, exist_ok=True)
        return campaign(count, seed, folder)


def _page(rows: list[list[str]], problems: list[str], seed: int) -> str:
    about = (
        f"Written by `make reliability` on {datetime.date.today()}, seed {seed}; a new run replaces this file. Each "
        f"try is a process of its own with {MEMORY // 2**20:,} MiB of memory and {SECONDS} seconds of CPU. A problem "
        "is a traceback, more than one line of error, a limit that is reached, other bits after a kill, or wrong "
        "weights that load."
    )
    found = [f"- {problem}" for problem in problems] or ["No problems."]
    return "\n\n".join(["# Reliability", about, markdown(HEADER, rows), "\n".join(found)]) + "\n"


if __name__ == "__main__":
    main()
