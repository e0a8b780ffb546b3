"""Running a tokenizer as if the extension had not been built."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chainrule import native

needs_extension = pytest.mark.skipif(not native.available(), reason="the reference takes its time")


@contextmanager
def without_extension() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "available", lambda: False)
        yield
