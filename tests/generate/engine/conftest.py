"""Every number of threads that a decoder must give the same bits with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chainrule import native


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = native.get_threads()
    native.set_threads(request.param)
    yield request.param
    native.set_threads(before)
