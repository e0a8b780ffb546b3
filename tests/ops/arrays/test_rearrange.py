"""Functions made of the shape ops: values as NumPy's, gradients by gradcheck, errors that name shapes and rule."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import ops

data = np.random.default_rng(0).normal(size=(2, 3, 4))

FUNCTIONS = {
    "stack": lambda x: ops.stack(x, x * 2, axis=1),
    "split": lambda x: x.split(2, axis=1)[1],
    "chunk": lambda x: x.chunk(3, axis=-1)[0],
    "squeeze": lambda x: x[:1].squeeze(),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "flatten": lambda x: x.flatten(0, 1),
    "swapaxes": lambda x: x.swapaxes(0, 2),
    "expand": lambda x: x[:1].expand(5, -1, 4),
    "repeat": lambda x: x.repeat(1, 2, 3),
    "pad": lambda x: x.pad(((0, 0), (1, 2), (0, 1)), value=3.0),
    "masked_fill": lambda x: x.masked_fill(x > 0, 9.0),
    "tril": lambda x: x.tril(),
    "triu": lambda x: x.triu(1),
    "clone": lambda x: x.clone(),
    "astype": lambda x: x.astype(np.float64),
    "outer": lambda x: ops.outer(x[0, 0], x[1, 1]),
    "var": lambda x: x.var(axis=1, correction=1),
    "std": lambda x: x.std(),
    "rsqrt": lambda x: (x * x + 1).rsqrt(),
    "einsum": lambda x: ops.einsum("bij,bkj->bik", x, x),
    "groupnorm": lambda x: ops.groupnorm(x, x[0, 0], x[1, 1], groups=2),
    "l2_to_reference": lambda x: ops.l2_to_reference(x, x * 2, 0.1),
}
NO_GRADIENT = {"argmax", "argmin", "argsort"}


def test_every_function_made_of_ops_is_checked_here_or_with_the_order() -> None:
    assert {*FUNCTIONS} | NO_GRADIENT | {"sort", "topk"} == {*ops.compositions()}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient(name: str) -> None:
    cr.gradcheck(FUNCTIONS[name], data)


def test_values_are_those_of_numpy() -> None:
    x = cr.Tensor(data)
    same = np.testing.assert_array_equal
    same(ops.stack([data, data], axis=-1), np.stack([data, data], axis=-1))
    same(x.repeat(2, 1, 2).numpy(), np.tile(data, (2, 1, 2)))
    same(x.pad((1, 2)).numpy(), np.pad(data, ((0, 0), (0, 0), (1, 2))))
    same(x.tril(-1).numpy(), np.tril(data, -1))
    same(x.triu(1).numpy(), np.triu(data, 1))
    np.testing.assert_allclose(x.var(axis=(0, 2)).numpy(), data.var(axis=(0, 2)))
    np.testing.assert_allclose(x.std(correction=1).item(), data.std(ddof=1))
    for subscripts in ("aij,akj->aik", "abc->", "abc->cab", "...i,...i->...", "aij,bij->ab"):
        xs = [data] * len(subscripts.split("->")[0].split(","))
        np.testing.assert_allclose(ops.einsum(subscripts, *xs), np.einsum(subscripts, *xs), rtol=1e-12)
    np.testing.assert_allclose(ops.einsum("ij,jk", data[0], data[0].T), data[0] @ data[0].T)


def test_integers_are_filled_with_what_is_asked_for() -> None:
    ids, mask = np.array([[1, 2], [3, 4]]), np.array([[True, False], [False, False]])
    for y in (ops.masked_fill(ids, mask, 7), ops.tril(ids), ops.pad(ids, (1, 0), value=7)):
        assert y.dtype == ids.dtype
    assert ops.pad(ids[0], (1, 0), value=0.5).tolist() == [0.5, 1.0, 2.0]


def test_std_of_equal_numbers_has_gradient_0() -> None:
    x = cr.ones(3, requires_grad=True)
    x.std().backward()
    assert x.grad is not None and x.grad.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: ops.stack(x, x[0]), r"stack: \(2, 3, 4\) and \(3, 4\)"),
        (lambda x: x.split([1, 1], axis=1), "must add up to 3"),
        (lambda x: x.repeat(2), "one for each axis"),
        (lambda x: x.pad((1, 2, 3)), "must be pairs"),
        (lambda x: x.pad(((1, 2),)), "1 pairs for shape .* one per axis"),
        (lambda x: x.var(correction=24), "24 elements, correction 24"),
        (lambda x: ops.einsum("ij,jk->ik", x, x), "'ij' for an array of 3 axes"),
        (lambda x: ops.einsum("aij,ajk->ik", x, x), "axis 'j' must have one size"),
        (lambda x: ops.einsum("aij->a", x, x), r"einsum: subscripts 'aij->a' for 2 arrays \(must be letters"),
        (lambda x: ops.einsum("ai1->a", x), r"einsum: subscripts 'ai1->a' for 1 arrays \(must be letters"),
        (lambda x: ops.einsum(3, x), r"einsum: subscripts 3 \(must be letters"),
        (lambda x: x[0, 0].tril(), "at least two axes"),
        (lambda x: x.transpose(1, 2), r"swapaxes\(1, 2\) swaps two"),
    ],
)
def test_errors(call, message: str) -> None:
    with pytest.raises(cr.ShapeError, match=message):
        call(cr.Tensor(data))


def test_a_triangle_keeps_the_diagonal() -> None:
    square = np.arange(1.0, 10.0).reshape(3, 3)
    for ours, theirs in ((ops.tril, np.tril), (ops.triu, np.triu)):
        np.testing.assert_array_equal(ours(square), theirs(square))
        for k in (-1, 1):
            np.testing.assert_array_equal(ours(square, k), theirs(square, k))
