"""Memory of arrays and scratch: kept for the next step, given back on request, refused with an error."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule import native
from tests.test_native import python


def test_memory_is_kept_for_the_next_step_and_given_back_on_request() -> None:
    kernels = native.kernels()
    kernels.give_back()
    before = kernels.held_bytes()
    x = native.empty((1000, 1000))
    place = x.ctypes.data
    assert place % 64 == 0 and kernels.held_bytes() >= before + x.nbytes
    del x
    again = native.empty((1000, 1000))
    assert again.ctypes.data == place
    del again
    kernels.give_back()
    assert kernels.held_bytes() == before


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize(("size", "first", "rest"), [(100, 3, 1), ((1 << 22) + 77, 5, 9), (1 << 22, 0, 0)])
def test_clear_writes_zeros_and_nothing_beside_them(isa: str, size: int, first: int, rest: int) -> None:
    """Large arrays are cleared past the caches, a line at a time: their ends may lie anywhere in a line."""
    assert native.kernels().set_isa(isa)
    x = native.empty((first + size + rest,))
    x[...] = 1
    native.kernels().clear(x[first : first + size])
    assert np.count_nonzero(x) == first + rest and x[:first].all() and x[first + size :].all()


def test_too_little_memory_is_an_error_and_no_more() -> None:
    """A block of the pool that gets no memory: the caller sees MemoryError, and everything goes on."""
    result = python(
        """
import resource, numpy as np, chainrule as cr
from chainrule import native
cr.set_threads(2)
q, small = (np.ones((2, 4, n, 64), np.float32) for n in (8, 64))
k = np.broadcast_to(np.ones(64, np.float32), (2, 4, 400_000, 64))
want = cr.ops.attention(small, small, small).tobytes()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (150 << 20), -1))
for _ in range(3):
    try:
        cr.ops.attention(q, k, k)
    except MemoryError:
        print("no memory")
    assert cr.ops.attention(small, small, small).tobytes() == want
"""
    )
    assert (result.returncode, result.stdout) == (0, "no memory\n" * 3), result.stderr
