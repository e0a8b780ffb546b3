"""Every test of a kernel may choose the ISA and the number of threads; afterwards they are what they were."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chainrule import native


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    isa, threads = native.isa(), native.get_threads()
    yield
    assert native.kernels().set_isa(isa)
    native.set_threads(threads)
