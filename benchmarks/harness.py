"""Timing in turn. Programs take turns in every round, so that whatever else the machine does slows all of them alike;
ratios of their medians then hold, while single times drift from run to run.

A worker is a module that prepares its work and calls `serve`; a `Program` is that worker in a process of its own, asked
for a number of times of a case.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).parents[1]

# glibc gives freed memory back to the system, and each step pays for the same pages again. Our trainer tells it not to
# (`keep_freed_memory`); with these settings a peer's process has the same advantage.
KEEP_PAGES = {
    "MALLOC_TRIM_THRESHOLD_": "1000000000",
    "MALLOC_MMAP_THRESHOLD_": "1000000000",
    "MALLOC_TOP_PAD_": str(64 << 20),
}

# Libraries that choose their kernels by the CPU let variables choose others; a machine on which somebody has set
# OPENBLAS_CORETYPE=Haswell would race half an OpenBLAS. Without them each library takes what it thinks best.
CHOOSE_KERNELS = ("OPENBLAS_", "MKL_", "ATEN_", "ONEDNN_", "DNNL_", "XLA_", "GGML_")
HARMLESS = ("_NUM_THREADS",)

# Helper threads wait for more work by spinning, OpenBLAS's for 0.1 s, and would take a core from the next program.
SETTLE = 0.05  # seconds for which nobody has used a core
LONGEST = 5.0  # seconds that are waited for that

OURS = "Chainrule"


class Unavailable(Exception):
    """A peer that is not installed or does not start; the message says why."""


def command_line(description: str | None) -> argparse.ArgumentParser:
    """A parser whose --help shows a module's docstring as it is written."""
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def progress(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Measured:
    """The times of one program, in milliseconds."""

    name: str
    ms: Sequence[float]

    @property
    def median(self) -> float:
        return statistics.median(self.ms)

    @property
    def minimum(self) -> float:
        return min(self.ms)

    @property
    def spread(self) -> float:
        """From the 20th to the 80th percentile, as a fraction of the median."""
        ordered, last = sorted(self.ms), len(self.ms) - 1
        return (ordered[round(0.8 * last)] - ordered[round(0.2 * last)]) / self.median


def faster(peers: Iterable[Measured]) -> Measured:
    """The peer to compare with: the one with the lowest median."""
    return min(peers, key=lambda peer: peer.median)


def timed(
    call: Callable[[], object], count: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Milliseconds of each of `count` calls."""
    times = []
    for _ in range(count):
        began = clock()
        call()
        times.append((clock() - began) * 1e3)
    return times


def fastest(
    call: Callable[[], object], seconds: float = 0.5, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Milliseconds of the fastest call among those that fit into `seconds`, at least three, after a first one."""
    call()
    times = timed(call, 3, clock)
    while sum(times) < seconds * 1e3:
        times += timed(call, 1, clock)
    return min(times)


def in_turn(runs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Measured]:
    """Each run once in every round, in this process."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name] += timed(run, 1)
    return {name: Measured(name, ms) for name, ms in times.items()}


class Program:
    """A worker in a process of its own; `keep_pages` runs it with malloc tuned as our trainer tunes it.

    With `path` it imports from these folders only, and not from what is installed for editing. `variables` are added to
    its environment.
    """

    def __init__(
        self,
        name: str,
        module: str,
        *arguments: object,
        keep_pages: bool = False,
        path: Sequence[Path | str] = (),
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.name = name
        self.ms: dict[str, list[float]] = {}
        self.worker = subprocess.Popen(
            [sys.executable, *(["-S"] if path else []), "-m", module, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment()
            | (KEEP_PAGES if keep_pages else {})
            | ({"PYTHONPATH": os.pathsep.join(map(str, path))} if path else {})
            | dict(variables),
        )
        self.info = self._answer()
        if "unavailable" in self.info:
            raise Unavailable(self.info["unavailable"])

    def ask(self, case: str, count: int) -> None:
        """Time `count` runs of a case; the times are kept in `ms`."""
        assert self.worker.stdin is not None
        print(json.dumps([case, count]), file=self.worker.stdin, flush=True)
        reply = self._answer()
        self.ms.setdefault(case, []).extend(reply.pop("ms"))
        self.info |= reply

    def measured(self, case: str) -> Measured:
        return Measured(self.name, self.ms[case])

    def cpu_ticks(self) -> int:
        """What all its threads have used, in ticks of the system's clock; 0 where that is not known."""
        try:
            fields = Path(f"/proc/{self.worker.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # not Linux
            return 0
        return int(fields[11]) + int(fields[12])  # as user and in the system

    def close(self) -> None:
        assert self.worker.stdin is not None
        self.worker.stdin.close()
        self.worker.wait()

    def _answer(self) -> dict[str, Any]:
        assert self.worker.stdout is not None
        line = self.worker.stdout.readline()
        if not line:
            kind = RuntimeError if self.name == OURS else Unavailable  # our own program is never missing
            raise kind(f"{self.name} stopped with exit code {self.worker.wait()}")
        return json.loads(line)


def environment() -> dict[str, str]:
    """That of this process, without what keeps libraries from the kernels they would choose."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(CHOOSE_KERNELS) or name.endswith(HARMLESS)
    }


def started(programs: Iterable[Callable[[], Program]]) -> tuple[list[Program], set[str]]:
    """Those that start, and why the others do not."""
    running, reasons = [], set()
    for start in programs:
        try:
            running.append(start())
        except Unavailable as reason:
            reasons.add(str(reason))
    return running, reasons


def race(programs: Sequence[Program], case: str, rounds: int, count: int) -> list[Measured]:
    """`rounds` times `count` runs of a case by each program, in turn."""
    for _ in range(rounds):
        for program in programs:
            settle(programs)
            program.ask(case, count)
    return [program.measured(case) for program in programs]


def settle(programs: Iterable[Program]) -> None:
    """Wait until none of them uses a core any more, for `LONGEST` at most; other programs are not watched."""
    running, end = list(programs), time.monotonic() + LONGEST
    while time.monotonic() < end:
        before = [program.cpu_ticks() for program in running]
        time.sleep(SETTLE)
        if [program.cpu_ticks() for program in running] == before:
            return


def serve(
    run: Callable[[str, int], list[float]],
    imported_mb: float,
    peak: Callable[[], float] | None = None,
    **info: object,
) -> None:
    """The worker's side: `run(case, count)` gives the milliseconds of each run, `peak()` its memory in MB."""
    print(json.dumps({"imported_mb": imported_mb, **info}), flush=True)
    for line in sys.stdin:
        case, count = json.loads(line)
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        ms = run(case, count)
        faults = (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults) // max(1, count)
        print(json.dumps({"ms": ms, "peak_mb": (peak or peak_mb)(), "page_faults": faults}), flush=True)


def serve_unavailable(reason: str) -> None:
    print(json.dumps({"unavailable": reason}), flush=True)


def memory_mb(field: str, pid: int | str = "self") -> float:
    """VmRSS, resident now, or VmHWM, the most there was. `getrusage` would count the parent's memory before exec."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(field))
    except (OSError, StopIteration):  # not Linux, or the process has ended
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20) if pid == "self" else 0.0


def resident_mb() -> float:
    return memory_mb("VmRSS")


def peak_mb() -> float:
    return memory_mb("VmHWM")
