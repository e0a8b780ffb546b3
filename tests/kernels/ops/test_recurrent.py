"""The loops over time against the reference in float64, at every ISA and with any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.autograd import Op
from chainrule.autograd.types import Into

THREADS = (1, 2, 3, 8)
CASES = {  # op, gates, states, constants
    "rnn": (cr.ops.rnn_sequence, 1, 1, {}),
    "lstm": (cr.ops.lstm_sequence, 4, 2, {}),
    "gru": (cr.ops.gru_sequence, 3, 1, {}),
    "gru, reset after": (cr.ops.gru_sequence, 3, 1, {"reset_after": True}),
}
SIZES = [
    (1, 2, 1, 1),
    (7, 3, 5, 7),
    (2, 5, 33, 16),
    (65, 2, 7, 65),
    (3, 4, 16, 257),
    (9, 32, 5, 32),
]  # B, T, X, H
extension = native.kernels()


def inputs(case: str, B: int, T: int, X: int, H: int) -> tuple[list[Any], list[np.ndarray]]:
    """The arguments of the op and the gradients of its outputs, in float32"""
    _, gates, states, constants = CASES[case]
    rng = np.random.default_rng((B, T, X, H))
    n = gates * H
    shapes = [(B, T, X), *[(B, H)] * states, (n, X), (n, H), *[(n,)] * (1 + len(constants))]
    args = [rng.normal(size=s).astype(np.float32) for s in shapes]
    args[1 + states] /= np.float32(X**0.5)
    args[2 + states] /= np.float32(H**0.5)
    args += [None] * (CASES[case][0].arity - len(args))
    return args, [rng.normal(size=s).astype(np.float32) for s in ((B, T, H), *[(B, H)] * states)]


def run(forward: Any, backward: Any, case: str, args: list[Any], dy: list[np.ndarray]) -> list[np.ndarray]:
    """outputs, saved values, gradients"""
    outputs, saved = forward(*args, **CASES[case][3])
    grads = backward(tuple(dy), saved, tuple(arg is not None for arg in args))
    return [a for a in (*outputs, *saved, *grads) if a is not None]


def kernel(case: str, args: list[Any], dy: list[np.ndarray]) -> list[np.ndarray]:
    return run(*native_pair(case), case, args, dy)


def native_pair(case: str) -> Any:
    return CASES[case][0].native


def exact(case: str, args: list[Any], dy: list[np.ndarray]) -> list[np.ndarray]:
    op: Op = CASES[case][0]
    wide = [None if a is None else a.astype(np.float64) for a in args]
    return run(op.forward, op.backward, case, wide, [d.astype(np.float64) for d in dy])


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("case", CASES)
def test_equals_the_reference(case: str, sizes: tuple[int, ...], isa: str) -> None:
    assert extension.set_isa(isa)
    args, dy = inputs(case, *sizes)
    before = [None if a is None else a.copy() for a in (*args, *dy)]
    for got, want in zip(kernel(case, args, dy), exact(case, args, dy), strict=True):
        assert got.dtype == np.float32 and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-6 * max(1.0, abs(want).max()))
    for now, then in zip((*args, *dy), before, strict=True):
        assert now is None or np.array_equal(now, then), "changed an input"


@pytest.mark.parametrize("case", CASES)
def test_the_same_bits_for_any_number_of_threads(case: str) -> None:
    for sizes in ((33, 7, 20, 65), (5, 9, 16, 300)):
        args, dy = inputs(case, *sizes)
        results = []
        for n in THREADS * 2:
            native.set_threads(n)
            results.append([a.tobytes() for a in kernel(case, args, dy)])
        assert all(result == results[0] for result in results)


@pytest.mark.parametrize("case", CASES)
def test_a_sequence_does_not_depend_on_its_batch(case: str) -> None:
    args, _ = inputs(case, 13, 4, 8, 20)
    states = CASES[case][2]
    alone = [a[4:5] if i <= states else a for i, a in enumerate(args)]
    forward, _ = native_pair(case)
    constants = CASES[case][3]
    for whole, part in zip(forward(*args, **constants)[0], forward(*alone, **constants)[0], strict=True):
        np.testing.assert_allclose(whole[4:5], part, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_an_empty_batch(case: str) -> None:
    args, dy = inputs(case, 0, 3, 4, 5)
    for got, want in zip(kernel(case, args, dy), exact(case, args, dy), strict=True):
        assert got.shape == want.shape and not np.any(got - want)


@pytest.mark.parametrize("case", CASES)
def test_nan_stays_in_its_row_and_large_values_saturate(case: str) -> None:
    args, _ = inputs(case, 9, 4, 8, 20)
    args[0][3, 1, 2] = np.nan
    args[0][5] = 1e4
    args[0][6] = -1e4
    y = native_pair(case)[0](*args, **CASES[case][3])[0][0]
    assert np.isfinite(y[3, 0]).all() and np.isnan(y[3, 1:]).all()
    assert np.isfinite(np.delete(y, 3, axis=0)).all()
    assert abs(np.delete(y, 3, axis=0)).max() <= max(1.0, abs(args[1]).max())


@pytest.mark.parametrize("case", CASES)
def test_weight_gradients_are_added_where_they_belong(case: str) -> None:
    args, dy = inputs(case, 7, 3, 5, 17)
    forward, backward = native_pair(case)
    _, saved = forward(*args, **CASES[case][3])
    needs = [arg is not None for arg in args]
    plain = backward(tuple(dy), saved, tuple(needs))
    first = 1 + CASES[case][2]
    places: list[Any] = [
        Into(np.ones_like(args[i])) if i in (first, first + 1) else need for i, need in enumerate(needs)
    ]
    added = backward(tuple(dy), saved, tuple(places))
    for i in (first, first + 1):
        assert added[i] is places[i].array
        np.testing.assert_allclose(added[i], plain[i] + 1, rtol=1e-5, atol=1e-5)


def test_the_extension_refuses_sizes_that_do_not_fit() -> None:
    y, h, W = np.zeros((2, 3, 4), np.float32), np.zeros((2, 4), np.float32), np.zeros((4, 4), np.float32)
    extension.rnn_forward(y, h, W)
    with pytest.raises(ValueError, match="h has 4 elements, expected 8"):
        extension.rnn_forward(y, h[:1], W)
    with pytest.raises(ValueError, match="W has 12 elements, expected 16"):
        extension.rnn_forward(y, h, W[:3])
    with pytest.raises(ValueError, match="gates has 24 elements, expected 96"):
        extension.lstm_forward(y, y, y, h, h, W)
    with pytest.raises(TypeError):
        extension.rnn_forward(y.astype(np.float64), h, W)
    with pytest.raises(TypeError):
        extension.rnn_forward(y, h, W.T[::2])
