"""The matrix product of the kernels against NumPy in float64; collected only where the extension was built."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import chainrule as cr
from chainrule import native

extension = native.kernels()
PAIRS = 3  # the precision bf16 with two terms in a word


def matrix(rng: np.random.Generator, n: int, m: int, transposed: bool) -> np.ndarray:
    return (
        rng.normal(size=(m, n)).astype(np.float32).T
        if transposed
        else rng.normal(size=(n, m)).astype(np.float32)
    )


def assert_close(got: np.ndarray, want: np.ndarray, K: int) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=6e-6 * max(K, 1) ** 0.5)


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize(("ta", "tb"), list(itertools.product([False, True], repeat=2)))
def test_every_size_and_transpose(isa: str, ta: bool, tb: bool) -> None:
    assert extension.set_isa(isa)
    rng = np.random.default_rng(0)
    for M, N, K in itertools.product(
        [1, 2, 5, 6, 7, 14, 65, 257], [1, 7, 16, 33, 65, 257], [1, 7, 65, 257, 600]
    ):
        a, b = matrix(rng, M, K, ta), matrix(rng, K, N, tb)
        assert_close(native.matmul(a, b), a.astype(np.float64) @ b.astype(np.float64), K)


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize(
    "shape", [(5, 32, 1), (15, 64, 600), (97, 96, 1100), (513, 64, 600), (20, 2080, 40), (64, 64, 40000)]
)
def test_the_same_bits_wherever_the_factors_lie(
    isa: str, accumulate: bool, ta: bool, shape: tuple[int, int, int]
) -> None:
    """Read in place, or packed because rows 4 KB apart share sets of the cache, or because columns are contiguous."""
    assert extension.set_isa(isa)
    (M, N, K), rng = shape, np.random.default_rng(11)
    a, b, bias = matrix(rng, M, K, ta), matrix(rng, K, N, False), rng.normal(size=N).astype(np.float32)
    start = rng.normal(size=(M, N)).astype(np.float32)

    def inside(x: np.ndarray, row: int) -> np.ndarray:
        """The same numbers in an array of NaN whose rows are a multiple of `row` floats apart"""
        wide = np.full((len(x) + 2, -(-(x.shape[1] + 8) // row) * row), np.nan, np.float32)
        wide[1:-1, 5 : 5 + x.shape[1]] = x
        return wide[1:-1, 5 : 5 + x.shape[1]]

    def turned(x: np.ndarray, row: int) -> np.ndarray:
        return inside(x.T, row).T if ta else inside(x, row)

    places = [(a, b), (turned(a, 1024), inside(b, 1024)), (turned(a, 1), inside(b, 1)), (a, b.T.copy().T)]
    places.append((a, b[::-1].copy()[::-1]))  # rows that run backwards
    results = []
    for threads, (left, right) in itertools.product((1, 2, 3), places):
        cr.set_threads(threads)
        out = start.copy()
        results.append(native.matmul(left, right, bias=bias, out=out, accumulate=accumulate))
    for found in results[1:]:
        np.testing.assert_array_equal(found, results[0])
    want = accumulate * start.astype(np.float64) + a.astype(np.float64) @ b.astype(np.float64) + bias
    assert_close(results[0], want, K)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("shape", [(3, 40, 30), (70, 130, 600), (400, 5000, 40)])
def test_bias_and_accumulation(shape: tuple[int, int, int], accumulate: bool) -> None:
    M, N, K = shape
    rng = np.random.default_rng(1)
    a, b, bias = matrix(rng, M, K, False), matrix(rng, K, N, True), rng.normal(size=N).astype(np.float32)
    out = rng.normal(size=(M, N)).astype(np.float32)
    want = accumulate * out.astype(np.float64) + a.astype(np.float64) @ b.astype(np.float64) + bias
    assert native.matmul(a, b, bias=bias, out=out, accumulate=accumulate) is out
    assert_close(out, want, K)


def test_rows_of_the_result_may_lie_apart() -> None:
    rng = np.random.default_rng(2)
    wide = np.zeros((9, 40), np.float32)
    a, b = matrix(rng, 9, 20, False), matrix(rng, 20, 17, False)
    native.matmul(a, b, out=wide[:, 3:20])
    assert_close(wide[:, 3:20], a.astype(np.float64) @ b, 20)
    assert not wide[:, :3].any() and not wide[:, 20:].any()


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_batches_with_any_strides(batch: int) -> None:
    rng = np.random.default_rng(3)
    a = rng.normal(size=(33, batch, 20)).astype(np.float32).transpose(1, 0, 2)
    b = np.broadcast_to(rng.normal(size=(20, 18)).astype(np.float32)[:, ::2], (batch, 20, 9))
    assert_close(native.matmul(a, b), a.astype(np.float64) @ b.astype(np.float64), 20)


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_views_that_run_backwards_repeat_or_overlap(isa: str, precision: str) -> None:
    assert extension.set_isa(isa)
    rng = np.random.default_rng(10)
    x, b = rng.normal(size=(100, 6)).astype(np.float32), rng.normal(size=(100, 9)).astype(np.float32)
    line = rng.normal(size=300).astype(np.float32)
    views = [
        x[::-1].T,  # rows of a step of -1
        np.broadcast_to(x[:1], (100, 6)).T,  # steps of 0
        np.lib.stride_tricks.sliding_window_view(line, 100)[:7],  # both steps 1
        x[:, :1].T,
        x[:, ::-2].T,
    ]
    for a in views:
        want = native.matmul(np.ascontiguousarray(a), b, precision=precision)
        np.testing.assert_allclose(native.matmul(a, b, precision=precision), want, rtol=1e-5, atol=1e-5)
        got = native.matmul(b.T, a.T, precision=precision)
        np.testing.assert_allclose(got, want.T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("M", "N", "K"), [(0, 5, 3), (5, 0, 3), (5, 3, 0)])
def test_nothing_to_do(M: int, N: int, K: int) -> None:
    a, b = np.ones((M, K), np.float32), np.ones((K, N), np.float32)
    np.testing.assert_array_equal(native.matmul(a, b), np.zeros((M, N), np.float32))


@pytest.mark.parametrize(
    ("M", "N", "K"), [(4096, 384, 96), (97, 5000, 300), (3, 700, 600), (513, 65, 1000), (200, 130, 2048)]
)
def test_the_same_bits_for_any_number_of_threads(M: int, N: int, K: int) -> None:
    rng = np.random.default_rng(4)
    a, b = matrix(rng, M, K, False), matrix(rng, K, N, True)
    at, bt = np.asfortranarray(a), np.ascontiguousarray(b)
    native.set_threads(1)
    want = native.matmul(a, b).tobytes(), native.matmul(at, bt).tobytes()
    for n in (2, 3, 8):
        native.set_threads(n)
        assert (native.matmul(a, b).tobytes(), native.matmul(at, bt).tobytes()) == want, f"{n} threads"


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("K", [1024, 3072])
def test_rows_that_share_cache_sets_give_the_same_bits(isa: str, K: int) -> None:
    """Rows a multiple of 4 KB apart are copied first; a step of one more float, and they are read in place."""
    assert extension.set_isa(isa)
    rng = np.random.default_rng(11)
    b, old = matrix(rng, K, 70, True), rng.normal(size=(117, 70)).astype(np.float32)
    apart = np.zeros((117, K + 1), np.float32)
    apart[:, :K] = matrix(rng, 117, K, False)
    for first in (0, 5):  # also a part of each row
        a = apart[:, first:K]
        same = np.zeros((117, K), np.float32)
        same[:, first:] = a
        got = native.matmul(same[:, first:], b[first:], out=old.copy(), accumulate=True)
        assert got.tobytes() == native.matmul(a, b[first:], out=old.copy(), accumulate=True).tobytes()


def test_a_row_does_not_depend_on_its_neighbors() -> None:
    """The same row in a larger product gives the same bits: batching changes nothing."""
    rng = np.random.default_rng(5)
    a, b = matrix(rng, 100, 300, False), matrix(rng, 300, 50, False)
    whole = native.matmul(a, b)
    for first, last in ((0, 7), (11, 60), (94, 100)):
        assert native.matmul(a[first:last].copy(), b).tobytes() == whole[first:last].tobytes()


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e4])
def test_special_values_stay_in_their_row(value: float) -> None:
    rng = np.random.default_rng(6)
    a, b = matrix(rng, 20, 65, False), matrix(rng, 65, 33, True)
    clean = native.matmul(a, b)
    a[7, 3] = value
    got = native.matmul(a, b)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(
            got[7], (a[7].astype(np.float64) @ b.astype(np.float64)), rtol=1e-4, atol=1e-2
        )
    assert np.delete(got, 7, 0).tobytes() == np.delete(clean, 7, 0).tobytes()


def test_shapes_that_do_not_fit_are_refused() -> None:
    x = np.zeros((3, 4), np.float32)
    with pytest.raises(ValueError, match="shapes of c, a and b do not fit"):
        native.matmul(x, x)
    with pytest.raises(ValueError, match="bias has 3 elements, expected 4"):
        native.matmul(x, np.zeros((4, 4), np.float32), bias=np.zeros(3, np.float32))
    with pytest.raises(TypeError):
        native.matmul(x.astype(np.float64), np.zeros((4, 4), np.float32))


def test_a_parameter_takes_its_gradient_in_place() -> None:
    """linear adds into the flat block itself; twice the loss gives twice the gradient."""
    layer = cr.nn.Linear(20, 30)
    parameters = layer.parameters()
    x = np.random.default_rng(7).normal(size=(9, 20)).astype(np.float32)
    layer(x).sum().backward()
    once = parameters.grad.copy()
    layer(x).sum().backward()
    np.testing.assert_array_equal(parameters.grad, 2 * once)
    with cr.backend("reference"):
        parameters.zero_grad()
        layer(x).sum().backward()
    np.testing.assert_allclose(parameters.grad, once, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize(("ta", "tb"), list(itertools.product([False, True], repeat=2)))
def test_factors_are_rounded_and_sums_are_not(isa: str, precision: str, ta: bool, tb: bool) -> None:
    assert extension.set_isa(isa)
    rng = np.random.default_rng(8)
    for M, N, K in ((1, 5, 7), (1, 5, 200), (7, 33, 65), (100, 40, 600), (65, 1, 130)):
        a, b = matrix(rng, M, K, ta), matrix(rng, K, N, tb)
        rounded = [_factor(x, precision).astype(np.float64) for x in (a, b)]
        assert_close(native.matmul(a, b, precision=precision), rounded[0] @ rounded[1], K)


def _factor(x: np.ndarray, precision: str) -> np.ndarray:
    """Every factor as it is multiplied: the product with the identity, by the reference."""
    with cr.backend("reference"), cr.precision(precision):
        return cr.ops.matmul(np.ascontiguousarray(x), np.eye(x.shape[1], dtype=np.float32))


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize(("ta", "tb"), list(itertools.product([False, True], repeat=2)))
def test_pairs_of_bf16_give_the_same_products(isa: str, ta: bool, tb: bool) -> None:
    """What CPUs with an instruction for two products of bf16 do; the others can do it too, for this test."""
    assert extension.set_isa(isa)
    rng = np.random.default_rng(8)
    bias = rng.normal(size=600).astype(np.float32)
    for M, N, K in itertools.product([1, 6, 7, 65, 200], [1, 33, 600], [1, 2, 7, 65, 1201]):
        a, b = matrix(rng, M, K, ta), matrix(rng, K, N, tb)
        want = native.matmul(a, b, bias=bias[:N], precision="bf16")
        out = np.empty((1, M, N), np.float32)
        try:
            extension.gemm(out, a[None], b[None], bias[:N], False, PAIRS)
        except ValueError:
            assert isa == "avx512"  # of a CPU without that instruction
            continue
        assert_close(out[0], want, K)


def test_pairs_keep_infinities_and_nan() -> None:
    faint = np.array([0x7F800001], np.uint32).view(np.float32)[0]  # a NaN by its last bit alone
    a = np.array([[np.inf, 1.0, 3.4e38], [np.nan, 1.0, 0.0], [-1.0, 0.0, 1.0], [faint, 0.0, 0.0]], np.float32)
    out = np.empty((1, 4, 1), np.float32)
    extension.gemm(out, a[None], np.ones((1, 3, 1), np.float32), None, False, PAIRS)
    np.testing.assert_array_equal(out[0, :, 0], [np.inf, np.nan, 0.0, np.nan])


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_rounding_is_to_the_nearest_even(precision: str, isa: str) -> None:
    """All the edges: ties, subnormal numbers, overflow, infinity, NaN; and a million numbers of every size.

    VDPBF16PS takes subnormal numbers as zero, so with AVX-512 and bf16 they may all come out as zeros.
    """
    assert extension.set_isa(isa)
    u = np.random.default_rng(9).integers(0, 2**32, 1_000_000, dtype=np.uint32)
    u[:3000] = (
        np.arange(3000, dtype=np.uint32) * 0x8000 + 0x33000000
    )  # halfway between two of the kept numbers
    x = u.view(np.float32)
    x[3000:3008] = [0, -0.0, np.inf, -np.inf, np.nan, 65519.99, 65520, 2**-25]
    got = native.matmul(x[:, None], np.ones((1, 1), np.float32), precision=precision)[:, 0]
    with np.errstate(all="ignore"):
        if precision == "fp16":
            want = x.astype(np.float16).astype(np.float32)
        else:
            exact = x.astype(np.float64)
            step = np.exp2(np.floor(np.log2(np.abs(np.where(np.isfinite(x) & (x != 0), exact, 1)))) - 7)
            want = (np.rint(exact / np.maximum(step, 2.0**-133)) * np.maximum(step, 2.0**-133)).astype(
                np.float32
            )
            want[~np.isfinite(x)] = x[~np.isfinite(x)]
        subnormal = (np.abs(want) < 2.0**-126) & (want != 0)
        if (precision, isa) == ("bf16", "avx512") and not got[subnormal].any():
            want[subnormal] = 0
        np.testing.assert_array_equal(got, want)
