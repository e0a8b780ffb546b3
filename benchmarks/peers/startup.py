"""From nothing to a first gradient beside PyTorch, in turn, and the size of what is installed.

    make bench ONLY=startup

Not the import alone: ours loads its parts when they are first used.
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys

from benchmarks.harness import ROOT, Measured, progress
from benchmarks.report import Row, Table, bold, middle_and_best, milliseconds

PACKAGES = {"Chainrule": "chainrule", "PyTorch": "torch", "NumPy": "numpy"}
FIRST_GRADIENT = {
    "Chainrule": "import chainrule as cr; cr.ops.softmax(cr.Tensor([1.0, 2.0], requires_grad=True)).sum().backward()",
    "PyTorch": "import torch; torch.tensor([1.0, 2.0], requires_grad=True).softmax(-1).sum().backward()",
    "NumPy": "import numpy",
}
CODE = """
import json, time
began = time.perf_counter()
{0}
ms = (time.perf_counter() - began) * 1e3
from benchmarks.harness import resident_mb
print(json.dumps([ms, resident_mb()]))
"""


def measure(threads: int, quick: bool) -> Table:
    times: dict[str, list[float]] = {name: [] for name in PACKAGES}
    memory: dict[str, float] = {}
    rounds = 2 if quick else 10
    progress(f"first gradients, {rounds} rounds")
    for _ in range(rounds):
        for name, code in FIRST_GRADIENT.items():
            command = [sys.executable, "-c", CODE.format(code)]
            ms, memory[name] = json.loads(subprocess.check_output(command, text=True, cwd=ROOT))
            times[name].append(ms)
    found = {name: Measured(name, ms) for name, ms in times.items()}
    ours, torch = found["Chainrule"], found["PyTorch"]
    table = Table(
        "Start and size",
        f"Median (minimum) of {rounds} in turn: import, and the gradient of a softmax (of NumPy: import alone, which "
        "Chainrule's time includes); memory after it; the files of the package alone.",
        ["", "first gradient", "memory", "installed", "ratio to Chainrule"],
    )
    for name, measured in found.items():
        table.rows.append(
            (
                name,
                middle_and_best(measured),
                f"{memory[name]:.0f} MB",
                installed(PACKAGES[name]),
                bold(measured.median / ours.median),
            )
        )
    table.headlines.append(
        Row(
            "start: import and a first gradient",
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
