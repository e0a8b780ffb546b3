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


def test_scratch_of_many_sizes_is_requested_once() -> None:
    """Each kernel finds the scratch it had before, although all sizes together are more than is used at a time."""
    result = python(
        """
import resource, numpy as np, chainrule as cr
from chainrule import native
cr.set_threads(1)
x, W, targets = np.ones((512, 16), np.float32), np.ones((20_000, 16), np.float32), np.zeros(512, np.int64)
factors = [np.ones((2, n, 600), np.float32) for n in range(600, 1600, 200)]
outs = [np.empty((len(a), len(a)), np.float32) for a, _ in factors]
def step():
    cr.ops.linear_cross_entropy(x, W, targets=targets)  # logits of 41 MB
    for (a, b), out in zip(factors, outs):
        native.matmul(a, b.T, out=out)
native.kernels().give_back()
for _ in range(2):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(3):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) < 300, "pages are touched for the first time in each step"


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
