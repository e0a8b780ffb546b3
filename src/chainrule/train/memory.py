"""Memory that is freed in one step is used again in the next."""

from __future__ import annotations

import ctypes
import sys

# glibc's malloc.h
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
LARGE = 1 << 30


def keep_freed_memory() -> bool:
    """Tell glibc to keep freed memory; True if it will.

    By default it gives large arrays back to the system, and each step pays for the same fresh pages again: a
    quarter of the time of a small model. Other systems keep their ways.
    """
    if sys.platform != "linux":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # a C library other than glibc
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGE) and mallopt(M_TRIM_THRESHOLD, LARGE))
