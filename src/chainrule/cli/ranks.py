"""The command as one of several processes that `mpiexec` started: the first speaks for all, and ends all."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress

from chainrule.errors import ConfigError
from chainrule.machine import launched

SHARED = ("train", "tune")  # commands that several processes can work on
HEARD = 1.0  # seconds for `mpiexec` to pass on what a rank has said: an abort loses what it still holds


def together(name: str) -> None:
    """Let the first of several ranks speak for all. Only a training can be shared."""
    if not launched():
        return
    if rank():
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if name.split()[0] not in SHARED:
        rule = f"must be one process: only {' and '.join(SHARED)} can be shared"
        raise ConfigError(f"{name}: started as several processes ({rule})")


def rank() -> int:
    """Of this process among those that `mpiexec` started together; 0 if it is alone."""
    if not launched():
        return 0
    from chainrule.distributed import world

    try:
        return world().rank
    except ConfigError:  # without mpi4py each process is alone, and says so
        return 0


def stop_all(code: int) -> None:
    """End the processes that `mpiexec` started together with this one."""
    if launched():
        from chainrule.distributed import world

        with suppress(ConfigError):
            ranks = world()
            time.sleep(HEARD)
            ranks.stop(code)
