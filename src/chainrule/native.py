"""Access to the C++ kernels. Without the extension everything runs on the NumPy reference, more slowly.

Environment variables, read when the extension is first used:

    CHAINRULE_THREADS   how many threads the kernels use (default: the cores this process may run on)
    CHAINRULE_ISA       baseline, avx2 or avx512: the instruction set to use (default: the highest the CPU supports);
                        CHAINRULE_CPU is its older name

The number of threads never changes a result: work and sums are split into fixed blocks. All instruction sets add in the
same order, but avx2 and avx512 round differently from baseline, which lacks a fused multiply-add.
"""

from __future__ import annotations

import importlib
import math
import os
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from chainrule.errors import ConfigError
from chainrule.types import Array

MOST_THREADS = 1024
LINE = 64  # bytes of a cache line
PRECISIONS = ("fp32", "bf16", "fp16")


def available() -> bool:
    """True if the C++ kernels can be used."""
    return _extension() is not None


def why_missing() -> str | None:
    """Why the kernels cannot be used; None if they can."""
    return None if available() else _load()[1]


def isa() -> str | None:
    """The instruction set the kernels use (baseline, avx2 or avx512); None without the extension."""
    extension = _extension()
    return None if extension is None else str(extension.isa())


def isas() -> tuple[str, ...]:
    """The instruction sets this CPU supports, lowest first; empty without the extension."""
    extension = _extension()
    return () if extension is None else tuple(extension.isas())


def built_from() -> str | None:
    """A hash of the C++ sources the extension was built from; None without the extension."""
    extension = _extension()
    return None if extension is None else str(getattr(extension, "sources", ""))


def set_threads(n: int) -> None:
    """Set the number of threads of the kernels. Results are the same, to the bit, for every `n`.

    The reference leaves matmuls to NumPy, whose BLAS has its own setting (OPENBLAS_NUM_THREADS).

    >>> import chainrule as cr
    >>> cr.set_threads(2)
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 1 <= n <= MOST_THREADS:
        raise ConfigError(f"set_threads: got {n!r} (must be an integer from 1 to {MOST_THREADS})")
    global _threads
    _threads = int(n)
    if (extension := _extension()) is not None:
        extension.set_threads(_threads)


def get_threads() -> int:
    """The number of threads of the kernels."""
    return _threads or _default_threads()


def kernels() -> Any:
    """The extension module; an error says why if it is missing."""
    extension = _extension()
    if extension is None:
        raise ConfigError(f"native kernels: {why_missing()} (use backend 'reference')")
    return extension


def empty(shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    """An array in memory that suits the kernels: 64-byte aligned, in huge pages, reused from step to step."""
    dtype = np.dtype(dtype)
    bytes = math.prod(shape) * dtype.itemsize
    try:
        return np.ndarray(shape, dtype, kernels().Block(bytes))
    except MemoryError:
        raise MemoryError(f"cannot allocate {bytes / 2**30:.1f} GiB for an array of shape {shape}") from None


def cleared(shape: tuple[int, ...]) -> Array:
    """float32 zeros in the memory of `empty`, written by all threads."""
    x = empty(shape)
    kernels().clear(x)
    return x


def empty_like(x: Array) -> Array:
    """A C-contiguous array of the shape and dtype of x, from `empty`."""
    return empty(x.shape, x.dtype)


def zeros(size: int, dtype: Any) -> Array:
    """`size` zeros, 64-byte aligned, which NumPy's are not. Needs no extension."""
    dtype = np.dtype(dtype)
    memory = np.zeros(size * dtype.itemsize + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + size * dtype.itemsize].view(dtype)


def matmul(
    a: Array,
    b: Array,
    *,
    bias: Array | None = None,
    out: Array | None = None,
    accumulate: bool = False,
    precision: str = "fp32",
) -> Array:
    """a (n, k) @ b (k, m) + bias (m,), or the same for batches (B, n, k), (B, k, m), all float32 with any strides.

    `out` has contiguous rows, shares no memory with a and b, and is overwritten, or added to with `accumulate`. a and b
    are rounded to `precision` before multiplying; sums are float32.
    """
    if out is None:
        out = empty((*a.shape[:-1], b.shape[-1]))
    batch = (out[None], a[None], b[None]) if a.ndim == 2 else (out, a, b)
    kernels().gemm(*batch, bias, accumulate, PRECISIONS.index(precision))
    return out


_threads = 0  # the argument of `set_threads`; 0 before it is called


@cache
def _load() -> tuple[ModuleType | None, str]:
    """The extension module, or None and the reason."""
    try:
        return importlib.import_module("chainrule._native"), ""
    except ModuleNotFoundError:
        return None, "the extension was not built: no C++ compiler at installation, or CHAINRULE_NATIVE=OFF"
    except ImportError as error:
        return None, f"the extension cannot be loaded: {error}"


@cache
def _extension() -> ModuleType | None:
    """The extension, configured by the environment."""
    extension = _load()[0]
    if extension is not None:
        _choose_isa(extension)
        extension.set_threads(get_threads())
    return extension


def _choose_isa(extension: ModuleType) -> None:
    variable = "CHAINRULE_ISA" if os.environ.get("CHAINRULE_ISA") else "CHAINRULE_CPU"
    name = os.environ.get(variable, "")
    if name and not extension.set_isa(name):
        raise ConfigError(f"{variable}: got {name!r}, this machine supports {', '.join(extension.isas())}")


def _default_threads() -> int:
    if value := os.environ.get("CHAINRULE_THREADS", ""):
        if not value.isdecimal() or not 1 <= int(value) <= MOST_THREADS:
            rule = f"must be an integer from 1 to {MOST_THREADS}"
            raise ConfigError(f"CHAINRULE_THREADS: got {value!r} ({rule})")
        return int(value)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_THREADS)
