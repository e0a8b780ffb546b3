"""Every test of a kernel may choose the CPU level and the number of threads; afterwards they are what they were."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chainrule import native


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    level, threads = native.cpu_level(), native.get_threads()
    yield
    assert native.kernels().set_cpu_level(level)
    native.set_threads(threads)
