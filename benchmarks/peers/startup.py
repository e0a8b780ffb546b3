"""Importing the package beside importing PyTorch, in turn, and the size of what is installed.

make bench ONLY=startup
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys

from benchmarks.harness import Measured, progress
from benchmarks.report import Row, Table, bold, middle_and_best, milliseconds

MODULES = {"Chainrule": "chainrule", "PyTorch": "torch", "NumPy": "numpy"}
CODE = (
    "import json, time; began = time.perf_counter(); import {0}; ms = (time.perf_counter() - began) * 1e3; "
    "from benchmarks.harness import resident_mb; print(json.dumps([ms, resident_mb()]))"
)


def measure(threads: int, quick: bool) -> Table:
    times: dict[str, list[float]] = {name: [] for name in MODULES}
    memory: dict[str, float] = {}
    rounds = 2 if quick else 10
    progress(f"imports, {rounds} rounds")
    for _ in range(rounds):
        for name, module in MODULES.items():
            command = [sys.executable, "-c", CODE.format(module)]
            ms, memory[name] = json.loads(subprocess.check_output(command, text=True))
            times[name].append(ms)
    found = {name: Measured(name, ms) for name, ms in times.items()}
    ours, torch = found["Chainrule"], found["PyTorch"]
    table = Table(
        "Import and size",
        f"Median (minimum) of {rounds} imports in turn, memory after it, and the files of the package alone; "
        "Chainrule's time and memory include NumPy's.",
        ["", "import", "memory", "installed", "ratio of imports to Chainrule's"],
    )
    for name, measured in found.items():
        table.rows.append(
            (
                name,
                middle_and_best(measured),
                f"{memory[name]:.0f} MB",
                installed(MODULES[name]),
                bold(measured.median / ours.median),
            )
        )
    table.headlines.append(
        Row(
            "import",
            milliseconds(ours.median),
            f"PyTorch {milliseconds(torch.median)}",
            f"{torch.median / ours.median:.1f}",
        )
    )
    return table


def installed(package: str) -> str:
    """Megabytes of a package's files; nothing for one that runs from its sources."""
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        return "–"
    size = sum(path.stat().st_size for path in (file.locate() for file in files) if path.exists())
    return f"{size / 1e6:.1f} MB"
