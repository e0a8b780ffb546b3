"""What a sample of a profile belongs to."""

from __future__ import annotations

import pytest
from benchmarks.lessons.profile import kind_of

EXTENSION = "/x/chainrule/_native.so"


@pytest.mark.parametrize(
    ("source", "name", "kind"),
    [
        ("gemm/macrokernel.hpp:16", "microkernel<14>", "GEMM"),
        ("gemm/gemm.isa.cpp:80", "pack<32ul>", "packing"),
        ("gemm/gemm.isa.cpp:162", "column_sums(float*)", "sums over rows"),
        ("ops/attention.isa.cpp:10", "forward", "attention"),
        ("ops/linear_cross_entropy.isa.cpp:10", "reduce", "loss"),
        ("runtime/pool.cpp:90", "help", "waiting"),
        ("runtime/pool.cpp:270", "add_blocks", "sums over rows"),
        ("ops/rotary.isa.cpp:9", "rotate_halves", "other kernels"),
    ],
)
def test_kernels_by_their_source(source: str, name: str, kind: str) -> None:
    assert kind_of(EXTENSION, (f"/home/gemm/native/{source}", name)) == kind


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("[kernel.kallsyms]", "system"),
        ("/lib/libc.so.6", "copies and clearing"),
        ("/x/numpy/_core/_multiarray_umath.so", "NumPy"),
        ("/lib/libpython3.11.so", "Python"),
        (EXTENSION, "other kernels"),
    ],
)
def test_the_rest_by_its_file(file: str, kind: str) -> None:
    assert kind_of(file, None) == kind


def test_a_place_outside_the_sources_is_not_a_kernel() -> None:
    assert kind_of(EXTENSION, ("/usr/include/c++/12/atomic:5", "load")) == "other kernels"
