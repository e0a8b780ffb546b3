"""The door to the C++ kernels, open or shut."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

import chainrule as cr
from chainrule import native

HIDE_EXTENSION = "import sys; sys.modules['chainrule._native'] = None\n"  # makes its import fail


def python(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", code], env=os.environ | env, capture_output=True, text=True, timeout=60
    )


@pytest.fixture
def threads() -> Iterator[None]:
    before = native.get_threads()
    yield
    native.set_threads(before)


def test_everything_works_without_the_extension() -> None:
    result = python(
        HIDE_EXTENSION
        + """
import numpy as np, chainrule as cr
from chainrule import native
assert not native.available() and "not built" in native.why_missing()
assert native.isa() is None and native.isas() == ()
cr.set_threads(3)
assert cr.get_threads() == 3
x = cr.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3), requires_grad=True)
y = cr.ops.layernorm(x, np.ones(3, np.float32), np.zeros(3, np.float32))
(y * y).sum().backward()
assert np.allclose(y.numpy(), [[-1.2247, 0, 1.2247]] * 2, atol=1e-4) and x.grad.shape == (2, 3)
try:
    cr.ops.layernorm.native[0](x.numpy(), np.ones(3, np.float32), np.zeros(3, np.float32))
except cr.ConfigError as error:
    assert "backend 'reference'" in str(error)
else:
    raise AssertionError("a kernel ran without the extension")
"""
    )
    assert result.returncode == 0, result.stderr


def test_a_broken_extension_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> ModuleType:
        raise ImportError(f"{name}: invalid ELF header")

    monkeypatch.setattr(importlib, "import_module", broken)
    extension, reason = native._load.__wrapped__()
    assert extension is None
    assert reason == "the extension cannot be loaded: chainrule._native: invalid ELF header"


@pytest.mark.parametrize("n", [0, -1, 1025, 2.0, True, "2", None])
def test_set_threads_refuses(n: object) -> None:
    with pytest.raises(cr.ConfigError, match=r"set_threads: got .* \(must be an integer from 1 to 1024\)"):
        cr.set_threads(n)


def test_set_threads(threads: None) -> None:
    for n in (1, 5, np.int64(2)):
        cr.set_threads(n)
        assert cr.get_threads() == n


def test_threads_come_from_the_environment() -> None:
    show = "from chainrule import native; print(native.get_threads())"
    assert python(show, CHAINRULE_THREADS="7").stdout == "7\n"
    assert int(python(show, CHAINRULE_THREADS="").stdout) >= 1
    for bad in ("0", "many", "-2", "1.5", "1025"):
        error = python(show, CHAINRULE_THREADS=bad).stderr
        assert f"ConfigError: CHAINRULE_THREADS: got '{bad}' (must be an integer from 1 to 1024)" in error


def test_the_layernorm_kernel_refuses_wrong_shapes() -> None:
    native_forward, _ = cr.ops.layernorm.native
    x, c3, c4 = (np.zeros(shape, np.float32) for shape in [(2, 3), (3,), (4,)])
    for gamma, beta in [(c4, c3), (c3, c4), (c3[None], c3)]:
        with pytest.raises(cr.ShapeError, match=r"layernorm: x \(2, 3\), gamma .* size of x's last axis"):
            native_forward(x, gamma, beta)
    with pytest.raises(cr.ShapeError, match=r"layernorm: x \(\)"):
        native_forward(x[0, 0], c3, c3)


def test_zeros_begin_on_a_line() -> None:
    for size, dtype in ((1, np.float32), (5, np.float32), (100_000, np.float64)):
        x = native.zeros(size, dtype)
        assert x.shape == (size,) and x.dtype == dtype and not x.any()
        assert x.ctypes.data % 64 == 0 and x.flags.writeable
