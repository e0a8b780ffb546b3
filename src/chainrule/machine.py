"""Settings of the machine: keep freed memory, one thread for NumPy's BLAS; and its memory."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any

from chainrule.errors import ConfigError

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

# glibc's malloc.h
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
LARGE = 1 << 30
RETURNED = 1 << 20
LAUNCHERS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "MPI_LOCALNRANKS")  # what they tell a process


def launched() -> bool:
    """A launcher of MPI has started this process together with others."""
    sizes = (os.environ.get(name, "") for name in LAUNCHERS)
    return any(size.isdecimal() and int(size) > 1 for size in sizes)


def keep_freed_memory() -> bool:
    """Tell glibc to keep freed memory; True if it will.

    By default it returns large arrays to the system, and each step pays for fresh pages. On other systems nothing is
    changed.
    """
    return _set_malloc({M_MMAP_THRESHOLD: LARGE, M_TRIM_THRESHOLD: LARGE})


def return_freed_memory() -> bool:
    """Tell glibc to return large arrays to the system as soon as they are freed; True if it will.

    By itself it learns to keep them, so that weights that were moved into one block would be there twice.
    """
    return _set_malloc({M_MMAP_THRESHOLD: RETURNED, M_TRIM_THRESHOLD: RETURNED})


def _set_malloc(options: dict[int, int]) -> bool:
    if sys.platform != "linux":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # a C library other than glibc
        return False
    return all(mallopt(option, value) for option, value in options.items())


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limit NumPy's BLAS to one thread; the reference and ops without a kernel use it.

    Results then do not depend on the number of cores. Small matrices gain little from a second thread, and BLAS threads
    wait by spinning: beside another busy process two of them are several times slower than one.
    """
    return _libraries().limit(limits=1, user_api="blas")


@cache
def _libraries() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # searches all loaded libraries, so do it once


def check_memory(parameters: int) -> None:
    """Refuse a model too large to train here: values, gradients and two moments of the optimizer in float32."""
    needed, there = 16 * parameters, memory()
    if needed > there:
        least = "more than " if parameters == sys.maxsize else ""  # counted no further
        raise ConfigError(
            f"model: {least}{parameters:,} parameters take {least}{needed / 2**30:,.0f} GiB to train, this machine has "
            f"{there / 2**30:.0f} (make the model smaller)"
        )


def memory() -> int:
    """Memory of this machine in bytes, or what this process may take of it (`ulimit -v`, `ulimit -d`)."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    return min([there, *(limit for limit in limits if limit != resource.RLIM_INFINITY)])


def peak_memory() -> int:
    """Peak memory of this process in bytes."""
    if found := _status("VmHWM"):
        return found
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # on Linux that of the parent, if it was larger
    return peak if sys.platform == "darwin" else 1024 * peak


def resident_memory() -> int:
    """Memory that this process has now in bytes; its peak where the system does not tell."""
    return _status("VmRSS") or peak_memory()


def _status(name: str) -> int:
    """What Linux says of the memory of this process, in bytes; 0 elsewhere."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            return next((1024 * int(line.split()[1]) for line in file if line.startswith(f"{name}:")), 0)
    except OSError:
        return 0


def clock(seconds: float) -> str:
    """90 -> 1:30"""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
