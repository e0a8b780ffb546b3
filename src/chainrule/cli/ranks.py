"""The command as one of several processes that `mpiexec` started: the first speaks for all, and ends all."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from chainrule.errors import ConfigError
from chainrule.machine import launched

SHARED = ("train", "tune")  # commands whose training several processes can share
POOLED = (
    "data build",
    "data dedup",
    "tokenize train",
    "ladder",
    "scale run",
)  # whose items they can share out
HEARD = 1.0  # seconds for `mpiexec` to pass on what a rank has said: an abort loses what it still holds


def together(name: str) -> None:
    """Let the first of several ranks speak for all. Only trainings and independent items can be shared."""
    if not launched():
        return
    if rank():
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if name.split()[0] not in SHARED and name not in POOLED:
        from chainrule.train.policy import COMMAND, WHY_ALONE
        from chainrule.train.share import not_alone

        if name == COMMAND:
            raise not_alone(name, WHY_ALONE)
        rule = f"must be one process: only {', '.join((*SHARED, *POOLED))} can be shared"
        raise ConfigError(f"{name}: started as several processes ({rule})")


@contextmanager
def at_work(name: str) -> Iterator[bool]:
    """Whether this process runs the command; of a command with independent items the other ranks work on those."""
    if name not in POOLED or not launched():
        yield True
        return
    from chainrule.distributed import ranks_as_workers

    with ranks_as_workers() as first:
        yield first


def rank() -> int:
    """Of this process among those that `mpiexec` started together; 0 if it is alone."""
    if not launched():
        return 0
    from chainrule.distributed import everyone

    try:
        return everyone().rank
    except ConfigError:  # without mpi4py each process is alone, and says so
        return 0


def stop_all(code: int) -> None:
    """End the processes that `mpiexec` started together with this one."""
    if launched():
        from chainrule.distributed import everyone

        with suppress(ConfigError):
            ranks = everyone()
            time.sleep(HEARD)
            ranks.stop(code)
