"""One try: a command in a process of its own, with limits on memory and time, and what is wrong with its end.

Processes are forked from this one, in which the modules are loaded already: thousands of tries take minutes.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MEMORY = 1 << 30  # bytes of addresses beyond those of the parent
SECONDS = 20  # of CPU
WAIT = 120  # seconds by the clock, for a process that waits for something


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    code: int
    """Its exit code; minus the signal that ended it."""
    out: str
    err: str
    memory: int
    """Peak memory in bytes."""

    @property
    def problem(self) -> str:
        """What a user should never see; nothing if all is well."""
        if self.code < 0:
            what = {signal.SIGALRM: f"waits for ever, {WAIT} s", signal.SIGXCPU: f"takes over {SECONDS} s"}
            return what.get(signal.Signals(-self.code), f"killed by {signal.Signals(-self.code).name}")
        if "Traceback" in self.err:
            return f"traceback: {self.err.strip().splitlines()[-1]}"
        if "not enough memory" in self.err:
            return f"memory: {self.err.strip().splitlines()[-1]}"
        if self.code not in (0, 1, 2):
            return f"exit code {self.code}"
        lines = [line for line in self.err.splitlines() if line.startswith("error: ")]
        if self.code == 2 and len(lines) != 1:
            return f"exit code 2 with {len(lines)} lines of error"
        return ""


@dataclass
class Tally:
    """What a campaign found."""

    title: str
    tries: int = 0
    refused: int = 0
    memory: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, what: str, ended: Ended, problem: str = "") -> None:
        self.tries += 1
        self.refused += ended.code == 2
        self.memory = max(self.memory, ended.memory)
        if said := problem or ended.problem:
            self.problems.append(f"{what}: {said}")


def attempt(work: Callable[[], Any], folder: Path, scratch: Path) -> Ended:
    """Do something in a process of its own, in `folder`; what it prints goes to files in `scratch`."""
    out, err = scratch / "out.txt", scratch / "err.txt"
    child = os.fork()
    if child == 0:
        os._exit(_child(work, folder, out, err))
    _, status, used = os.wait4(child, 0)
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in (out, err))
    return Ended(os.waitstatus_to_exitcode(status), *texts, used.ru_maxrss * 1024)


def _child(work: Callable[[], Any], folder: Path, out: Path, err: Path) -> int:
    """In the new process: its exit code."""
    with contextlib.suppress(OSError):
        os.chdir(folder)
    for path, number in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    as_python_does = {"encoding": "utf-8", "errors": "backslashreplace", "closefd": False}
    sys.stdout, sys.stderr = (open(n, "w", **as_python_does) for n in (1, 2))  # noqa: SIM115
    addresses = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (addresses + MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(WAIT)
    code = 0
    try:
        work()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        traceback.print_exc()
        code = 3
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    return code


def command(words: Sequence[str]) -> Callable[[], None]:
    """A command line, as the entry of the program runs it."""
    from chainrule.cli import main

    return lambda: main(list(words))
