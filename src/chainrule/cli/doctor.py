"""`chainrule doctor`"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import numpy as np

import chainrule
from chainrule import native


@dataclass(frozen=True)
class Command:
    """Describe this machine as Chainrule sees it: CPU, threads, native kernels, versions.

    Example: chainrule doctor
    """

    def run(self) -> None:
        for name, value in report().items():
            print(f"{name:<12}{value}")


def report() -> dict[str, str]:
    """What there is, by name."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    on = f"on, CPU level {native.cpu_level()} (of {', '.join(native.cpu_levels())})"
    return {
        "chainrule": chainrule.__version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": platform.platform(),
        "cpu": _cpu(),
        "threads": f"{native.get_threads()} of {os.cpu_count()} (set with CHAINRULE_THREADS)",
        "native": on if native.available() else f"off, NumPy does the work: {native.why_missing()}",
        "blas": f"{blas.get('name')} {blas.get('version')}",
        **{name: _version(name) for name in ("numpy", "safetensors", "tyro", "rich", "matplotlib")},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _cpu() -> str:
    """The name of the processor; Linux keeps it in a file, elsewhere platform knows it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
