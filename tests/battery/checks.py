"""The battery: what every op must survive, whoever wrote it. It asks nothing of an op but its own examples.

Each check takes one op and one example and raises `AssertionError` or `GradientError` when the op fails it.
`test_ops.py` runs all of them over all ops, and over ops planted with mistakes that must be caught.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import chainrule as cr
from chainrule import native
from chainrule.autograd import Example, Op, Tensor, backend, backward, gradcheck
from chainrule.autograd.gradcheck import slope
from chainrule.autograd.recording import Input, Recording
from chainrule.autograd.types import Array

RTOL = 1e-6  # of the float64 gradient check

# Functions that leave the range of float32 at 1e4 by their very definition.
UNBOUNDED = {"exp": "e^10000", "pow": "10000^p", "prod": "10000^n"}
IDS = ("ids", "targets")  # constants that change from step to step
CASTS = {"cast": "its dtype is asked for by name"}


def examples(op: Op) -> list[Example]:
    """The op's own examples, the same ones every time; omitted optional arguments are None."""
    found = op.example(np.random.default_rng(0))
    return [Example(e.args + (None,) * (op.arity - len(e.args)), e.kwargs) for e in found]


def is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.floating) and np.asarray(value).dtype.kind == "f"


def float_positions(example: Example) -> tuple[int, ...]:
    return tuple(i for i, arg in enumerate(example.args) if is_float(arg))


def as_float32(example: Example) -> tuple[Any, ...]:
    return tuple(np.asarray(a, dtype=np.float32) if is_float(a) else a for a in example.args)


def outputs(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def run(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], seeds: list[Array] | None = None
):
    """Forward and backward with Tensors: (values, gradients by position, the seeds used)."""
    tensors = [Tensor(a, requires_grad=True) if is_float(a) else a for a in args]
    ys = outputs(fn(*tensors, **kwargs))
    if seeds is None:
        rng = np.random.default_rng(1)
        seeds = [rng.normal(size=y.shape).astype(y.dtype) for y in ys]
    live = [(y, v) for y, v in zip(ys, seeds, strict=True) if y.requires_grad]
    for k, (y, v) in enumerate(live):
        y.backward(v, retain=k < len(live) - 1)
    return [y.data for y in ys], {i: t.grad for i, t in enumerate(tensors) if isinstance(t, Tensor)}, seeds


def distance(got: Array, want: Array) -> float:
    """Largest difference relative to the size of the wanted array (at least 1)."""
    assert got.shape == want.shape, f"shape {got.shape}, wanted {want.shape}"
    if got.size == 0:
        return 0.0
    same = (got == want) | (np.isnan(got) & np.isnan(want))  # equal infinities have no difference
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0, np.abs(got.astype(np.float64) - want))
    return float(gap.max() / max(1.0, float(np.abs(np.where(np.isfinite(want), want, 0)).max())))


def check_gradient(op: Op, example: Example) -> float:
    """The backward pass agrees with central differences in float64."""
    return gradcheck(lambda *args: op(*args, **example.kwargs), *example.args, rtol=RTOL)


def check_dtype_and_shape(op: Op, example: Example) -> None:
    """float32 in, float32 out; gradients look like their inputs; arrays in give arrays out with the same values."""
    args = as_float32(example)
    values, grads, _ = run(op, args, example.kwargs)
    for y in values:
        assert y.dtype != np.float64 or op.name in CASTS, f"{op.name}: float32 inputs gave a float64 output"
    for i, grad in grads.items():
        assert grad is not None, f"{op.name}: no gradient for input {i}"
        assert (grad.shape, grad.dtype) == (args[i].shape, args[i].dtype), (
            f"{op.name}: gradient {i} is {grad.dtype}"
        )
    raw = outputs(op(*args, **example.kwargs))
    for y, plain in zip(values, raw, strict=True):
        assert isinstance(plain, np.ndarray)
        assert np.array_equal(y, plain, equal_nan=True), (
            f"{op.name}: arrays and Tensors give different values"
        )


def check_backward_keeps_float32(op: Op, example: Example) -> None:
    """The reference backward itself computes in float32 (the tape would hide an upcast by casting)."""
    args = as_float32(example)
    y, saved = op.forward(*args, **example.kwargs)
    needs = tuple(is_float(a) for a in example.args)
    dy = tuple(np.ones_like(v) for v in y) if isinstance(y, tuple) else np.ones_like(y)
    for i, grad in enumerate(op.backward(dy, saved, needs)):
        assert grad is None or grad.dtype == np.float32, (
            f"{op.name}: gradient {i} was computed in {grad.dtype}"
        )


def check_inputs_untouched(op: Op, example: Example) -> None:
    """Neither pass writes into its inputs, its saved values or the incoming gradient."""
    args = tuple(np.array(a) if is_float(a) else a for a in example.args)
    before = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
    y, saved = op.forward(*args, **example.kwargs)
    kept = [np.array(s) if isinstance(s, np.ndarray) else s for s in saved]
    dy = tuple(np.ones_like(v) for v in y) if isinstance(y, tuple) else np.ones_like(y)
    op.backward(dy, saved, tuple(is_float(a) for a in args))
    for what, now, then in [("input", args, before), ("saved value", saved, kept)]:
        for i, (a, b) in enumerate(zip(now, then, strict=True)):
            if isinstance(a, np.ndarray):
                assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), f"{op.name}: changed {what} {i}"
    for g in dy if isinstance(dy, tuple) else (dy,):
        assert (g == 1).all(), f"{op.name}: changed the incoming gradient"


def check_needs(op: Op, example: Example) -> None:
    """Asking for one gradient only gives the same gradient and does not disturb the others."""
    args = tuple(np.array(a, dtype=np.float64) if is_float(a) else a for a in example.args)
    positions = float_positions(example)
    y, saved = op.forward(*args, **example.kwargs)
    rng = np.random.default_rng(2)
    dy = tuple(rng.normal(size=v.shape) for v in y) if isinstance(y, tuple) else rng.normal(size=np.shape(y))
    every = op.backward(dy, saved, tuple(i in positions for i in range(len(args))))
    for only in positions:
        some = op.backward(dy, saved, tuple(i == only for i in range(len(args))))
        assert some[only] is not None, f"{op.name}: needs only {only}, got no gradient"
        np.testing.assert_allclose(some[only], every[only], rtol=1e-12, atol=1e-300, err_msg=op.name)


def check_composed(op: Op, example: Example) -> None:
    """A fused op gives the values and gradients of its composition from small ops."""
    if op.composed is None:
        return
    args = tuple(np.array(a, dtype=np.float64) if is_float(a) else a for a in example.args)
    values, grads, seeds = run(op, args, example.kwargs)
    expected, expected_grads, _ = run(op.composed, args, example.kwargs, seeds)
    for y, e in zip(values, expected, strict=True):
        assert distance(y, e) < 1e-10, f"{op.name}: fused and composed outputs differ"
    for i, grad in grads.items():
        want = np.zeros_like(args[i]) if expected_grads[i] is None else expected_grads[i]
        assert distance(grad, want) < 1e-9, f"{op.name}: fused and composed gradients of input {i} differ"


def check_native(op: Op, example: Example) -> None:
    """The native pair gives what the reference gives, with the same saved values."""
    if op.native is None or not native.available():
        return
    args = as_float32(example)
    with backend("reference"):
        expected, expected_grads, seeds = run(op, args, example.kwargs)
        _, saved_reference = op.run_forward(args, example.kwargs)
    values, grads, _ = run(op, args, example.kwargs, seeds)
    _, saved = op.run_forward(args, example.kwargs)
    for what, got, want in [("output", values, expected), ("saved value", saved, saved_reference)]:
        for i, (a, b) in enumerate(zip(got, want, strict=True)):
            if isinstance(b, np.ndarray):
                assert distance(a, b) < 2e-6, f"{op.name}: native {what} {i} differs"
    for i, grad in grads.items():
        assert distance(grad, expected_grads[i]) < 5e-6, f"{op.name}: native gradient {i} differs"


def check_native_gradient(op: Op, example: Example) -> None:
    """The native backward pass itself agrees with central differences of the float64 reference forward."""
    if op.native is None or not native.available():
        return
    args, rng = as_float32(example), np.random.default_rng(3)
    _, grads, seeds = run(op, args, example.kwargs)
    exact = [np.asarray(a, np.float64) if is_float(a) else a for a in args]
    for i, grad in grads.items():
        for _ in range(2):
            direction = rng.normal(size=grad.shape)
            direction /= max(float(np.linalg.norm(direction)), 1e-300)

            def along(h: float, i: int = i, u: Array = direction) -> float:
                moved = [a + h * u if j == i else a for j, a in enumerate(exact)]
                return projected(op, moved, example.kwargs, seeds)

            with backend("reference"):
                want = slope(along)
            size = float(np.linalg.norm(grad)) / max(1, grad.size) ** 0.5
            error = abs(float(np.sum(grad * direction, dtype=np.float64)) - want) / max(abs(want), size, 1.0)
            assert error < 1e-5, (
                f"{op.name}: native gradient {i} is off by {error:.1e} of the central difference"
            )


def projected(op: Op, args: list[Any], kwargs: dict[str, Any], seeds: list[Array]) -> float:
    """Σ seed · output over the outputs that have a gradient."""
    tensors = [Tensor(a, requires_grad=True) if is_float(a) else a for a in args]
    ys = outputs(op(*tensors, **kwargs))
    return sum(float(np.sum(v * y.data)) for y, v in zip(ys, seeds, strict=True) if y.requires_grad)


def check_again(op: Op, example: Example) -> None:
    """An output that is computed again is the same to the bit, from what was saved alone."""
    if op.recompute is None:
        return
    for args in (example.args, as_float32(example)):
        y, saved = op.run_forward(args, example.kwargs)
        second, _ = op.run_forward(op.recompute(saved), example.kwargs)
        assert second.tobytes() == y.tobytes(), f"{op.name}: computed again, the output differs"


def check_extremes(op: Op, example: Example) -> None:
    """Inputs of ±1e4 in float32 give finite values and gradients, or a clear refusal of values outside the domain."""
    if op.name in UNBOUNDED:
        return
    args = tuple(np.sign(a) * np.float32(1e4) if is_float(a) else a for a in as_float32(example))
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            values, grads, _ = run(op, args, example.kwargs)
    except cr.ChainruleError:
        return
    for y in values:
        assert np.isfinite(y).all() or y.dtype.kind != "f", f"{op.name}: not finite at 1e4"
    for i, grad in grads.items():
        assert np.isfinite(grad).all(), f"{op.name}: gradient {i} not finite at 1e4"


def check_replay(op: Op, example: Example) -> None:
    """Recorded on one input and replayed on another, the native pair gives the bits of a fresh run, or it says no."""
    if op.native is None or not native.available():
        return
    answer = replayed(op, example)
    assert answer in ("", "broken"), f"{op.name}: {answer}"


def replayed(op: Op, example: Example) -> str:
    """ "broken" if the op cannot be recorded, "" if its replay is right, else what is wrong."""
    args = [a.copy() if is_float(a) else a for a in as_float32(example)]
    ids = {k: np.array(v, np.int64) for k, v in example.kwargs.items() if k in IDS and _is_ids(v)}
    constants = {k: v for k, v in example.kwargs.items() if k not in ids}
    seeds = run(op, tuple(args), example.kwargs)[2]
    inputs = [x for x in (*args, *ids.values(), *seeds) if isinstance(x, np.ndarray)]

    def both_passes(given: dict[str, Any]) -> list[Array]:
        leaves = [Tensor.wrap(a) if is_float(a) else a for a in args]
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        for tensor in tensors:
            tensor.requires_grad = True
        ys = outputs(op(*leaves, **constants, **given))
        backward([(y, v) for y, v in zip(ys, seeds, strict=True) if y.requires_grad])
        return [y.array for y in ys] + [tensor.grad for tensor in tensors]

    recording = Recording()
    recording.know(*inputs)
    with recording.recorded():
        results = both_passes({k: Input(v) for k, v in ids.items()})
    if recording.broken or not all(map(recording.knows, results)):
        return "broken"
    for array in inputs:  # other values, of the same kind
        array[...] = np.roll(array.reshape(-1), 1).reshape(array.shape) * (
            1 if array.dtype.kind == "i" else 0.9
        )
    recording.replay()
    fresh = both_passes(ids)
    same = all(a.tobytes() == b.tobytes() for a, b in zip(results, fresh, strict=True))
    return "" if same else "its replay repeats an old value"


def _is_ids(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "iu"


CHECKS = (
    check_gradient,
    check_dtype_and_shape,
    check_backward_keeps_float32,
    check_inputs_untouched,
    check_needs,
    check_composed,
    check_native,
    check_native_gradient,
    check_again,
    check_replay,
    check_extremes,
)


def failures(op: Op) -> Iterator[str]:
    """The names of the checks an op fails on any of its examples."""
    for check in CHECKS:
        try:
            for example in examples(op):
                check(op, example)
        except (AssertionError, cr.ChainruleError, FloatingPointError):
            yield check.__name__
