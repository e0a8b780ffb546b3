"""The C++ kernels against plain NumPy in float64; collected only where the extension was built."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from tests.test_native import python

ALL = (True, True, True)
THREADS = (1, 2, 3, 8)
extension = native.kernels()
native_forward, native_backward = cr.ops.layernorm.native


def inputs(*shape: int, offset: float = 0.0) -> tuple[np.ndarray, ...]:
    """x, gamma, beta, dy in float32"""
    rng = np.random.default_rng(shape)
    sizes = [shape, shape[-1:], shape[-1:], shape]
    x, gamma, beta, dy = (rng.normal(size=size).astype(np.float32) for size in sizes)
    return x + np.float32(offset), gamma, beta, dy


def exact(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, dy: np.ndarray, eps: float) -> list[np.ndarray]:
    """y, mean, rstd, dx, dgamma, dbeta in float64"""
    x, gamma, beta, dy = (a.astype(np.float64) for a in (x, gamma, beta, dy))
    mean = x.mean(-1, keepdims=True)
    rstd = 1 / np.sqrt(x.var(-1, keepdims=True) + eps)
    xhat, dxhat = (x - mean) * rstd, dy * gamma
    dx = rstd * (dxhat - dxhat.mean(-1, keepdims=True) - xhat * (dxhat * xhat).mean(-1, keepdims=True))
    lead = tuple(range(x.ndim - 1))
    return [xhat * gamma + beta, mean, rstd, dx, (dy * xhat).sum(lead), dy.sum(lead)]


def kernel(
    x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, dy: np.ndarray, eps: float
) -> list[np.ndarray]:
    y, saved = native_forward(x, gamma, beta, eps=eps)
    assert saved[0] is x and saved[1] is gamma and saved[2] is beta
    return [y, *saved[3:], *native_backward(dy, saved, ALL)]


def bits(arrays: list[np.ndarray]) -> list[bytes]:
    return [a.tobytes() for a in arrays]


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("C", [1, 7, 16, 65, 257])
@pytest.mark.parametrize("R", [1, 7, 65, 257])
def test_layernorm_equals_numpy(R: int, C: int, isa: str) -> None:
    assert extension.set_isa(isa)
    arrays = inputs(R, C)
    for got, want in zip(kernel(*arrays, eps=1e-5), exact(*arrays, eps=1e-5), strict=True):
        assert got.dtype == np.float32 and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6 * max(1.0, abs(want).max()))


def test_layernorm_takes_any_leading_axes_and_read_only_arrays() -> None:
    arrays = inputs(2, 3, 5, 33)
    for a in arrays:
        a.flags.writeable = False
    for got, want in zip(kernel(*arrays, eps=0.1), exact(*arrays, eps=0.1), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-5)


def test_layernorm_of_no_rows() -> None:
    y, mean, rstd, dx, dgamma, dbeta = kernel(*inputs(0, 7), eps=1e-5)
    assert y.shape == dx.shape == (0, 7) and mean.shape == rstd.shape == (0, 1)
    assert not dgamma.any() and not dbeta.any()


def test_a_large_mean_does_not_cancel() -> None:
    """One pass, E[x²] - E[x]², would lose two digits of the variance here."""
    arrays = inputs(65, 257, offset=1000.0)
    got, want = kernel(*arrays, eps=1e-5), exact(*arrays, eps=1e-5)
    np.testing.assert_allclose(got[2], want[2], rtol=1e-5)  # rstd
    np.testing.assert_allclose(got[0], want[0], atol=5e-4)  # x - mean keeps the rounding of a float32 mean


@pytest.mark.parametrize("needs", list(itertools.product([False, True], repeat=3)))
def test_needs_skips_and_changes_nothing(needs: tuple[bool, ...]) -> None:
    x, gamma, beta, dy = inputs(65, 33)
    _, saved = native_forward(x, gamma, beta)
    whole = native_backward(dy, saved, ALL)
    some = native_backward(dy, saved, needs)
    assert (some[0] is None) is not needs[0]
    for need, part, full in zip(needs, some, whole, strict=True):
        assert not need or part.tobytes() == full.tobytes()


def test_parameter_gradients_accumulate() -> None:
    x, gamma, beta, dy = inputs(65, 33)
    _, (_, _, _, mean, rstd) = native_forward(x, gamma, beta)
    dgamma, dbeta = np.ones((2, 33), np.float32)
    extension.layernorm_backward(None, dgamma, dbeta, x, gamma, mean, rstd, dy)
    _, _, _, _, want_dgamma, want_dbeta = exact(x, gamma, beta, dy, eps=1e-5)
    np.testing.assert_allclose(dgamma, 1 + want_dgamma, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(dbeta, 1 + want_dbeta, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(4096, 384), (1000, 65), (129, 1031)])
def test_the_same_bits_for_any_number_of_threads(shape: tuple[int, ...]) -> None:
    arrays = inputs(*shape)
    native.set_threads(1)
    want = bits(kernel(*arrays, eps=1e-5))
    for _, n in itertools.product(range(5), THREADS):
        native.set_threads(n)
        assert extension.get_threads() == n
        assert bits(kernel(*arrays, eps=1e-5)) == want, f"{n} threads"


@pytest.mark.parametrize("shape", [(257, 384), (65, 257), (7, 7)])
def test_the_same_bits_at_every_isa_with_fused_products(shape: tuple[int, ...]) -> None:
    arrays = inputs(*shape)
    results = []
    for isa in set(native.isas()) - {"baseline"}:
        assert extension.set_isa(isa) and native.isa() == isa
        results.append(bits(kernel(*arrays, eps=1e-5)))
    assert all(result == results[0] for result in results)


def test_callers_in_several_threads_do_not_disturb_each_other() -> None:
    native.set_threads(2)
    cases = [inputs(1000 + i, 65) for i in range(4)]
    want = [bits(kernel(*case, eps=1e-5)) for case in cases]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(10):
            assert list(pool.map(lambda case: bits(kernel(*case, eps=1e-5)), cases)) == want


def test_a_forked_child_computes_the_same_and_both_exit() -> None:
    result = python(
        """
import os, numpy as np, chainrule as cr
cr.set_threads(4)
native_forward, _ = cr.ops.layernorm.native
x, c = np.ones((4096, 64), np.float32), np.ones(64, np.float32)
x[:, ::2] = 3
before = native_forward(x, c, c)[0].tobytes()
child = os.fork()
same = native_forward(x, c, c)[0].tobytes() == before
if child == 0:
    os._exit(0 if same else 1)
assert same and os.waitpid(child, 0)[1] == 0
print("done")
"""
    )
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr


def test_arrays_are_never_converted_silently() -> None:
    x, gamma, beta, _ = inputs(4, 6)
    for wrong in (x.astype(np.float64), x.astype(np.float16)):
        with pytest.raises(TypeError):
            native_forward(wrong, gamma, beta)
    for wrong in (x.T, x[:, ::-1]):  # the op copies such slices, the kernel takes none
        R, C = wrong.shape
        y, mean, rstd, weight = (np.ones(shape, np.float32) for shape in ((R, C), R, R, C))
        with pytest.raises(TypeError):
            extension.layernorm_forward(y, mean, rstd, wrong, weight, weight, 1e-5)
        extension.layernorm_forward(y, mean, rstd, wrong.copy("C"), weight, weight, 1e-5)
    with pytest.raises(TypeError):
        native_forward(x, gamma.astype(np.float64), beta)


def test_the_extension_refuses_sizes_that_do_not_fit() -> None:
    x, gamma, beta, _ = inputs(4, 6)
    mean = np.empty(4, np.float32)
    with pytest.raises(ValueError, match="rstd has 3 elements, expected 4"):
        extension.layernorm_forward(np.empty_like(x), mean, mean[:3], x, gamma, beta, 1e-5)


def test_the_op_uses_the_kernel_for_float32_and_the_reference_otherwise() -> None:
    x, gamma, beta, _ = inputs(65, 33)
    by_kernel = native_forward(x, gamma, beta)[0].tobytes()
    assert cr.ops.layernorm(x, gamma, beta).tobytes() == by_kernel
    with cr.backend("reference"):
        reference = cr.ops.layernorm(x, gamma, beta)
    assert reference.tobytes() != by_kernel
    np.testing.assert_allclose(reference, cr.ops.layernorm(x, gamma, beta), rtol=1e-5, atol=1e-5)
    assert cr.ops.layernorm(x.astype(np.float64), *map(np.float64, (gamma, beta))).dtype == np.float64


def test_a_slice_has_the_bits_of_its_copy() -> None:
    """The rows behind a soft prompt, and the gradient of a part."""
    x, gamma, beta, dy = inputs(3, 7, 33)
    cut, slope = x[:, 2:], dy[:, 2:]
    y, saved = cr.ops.layernorm.run_forward([cut, gamma, beta], {})
    assert saved[0].flags.c_contiguous  # by the kernel
    found = [y, *cr.ops.layernorm.run_backward(slope, saved, (True, True, True))]
    y, saved = native_forward(cut.copy(), gamma, beta)
    wanted = [y, *native_backward(slope.copy(), saved, (True, True, True))]
    assert [a.tobytes() for a in found] == [a.tobytes() for a in wanted]
