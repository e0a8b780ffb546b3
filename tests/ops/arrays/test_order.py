"""Sorting and choosing along an axis."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr

x = cr.Tensor([[3.0, 1.0, 3.0], [0.0, 5.0, -1.0]], requires_grad=True)


def test_equal_values_keep_their_order() -> None:
    assert x.sort()[1].tolist() == [[1, 0, 2], [2, 0, 1]]
    assert x.sort(descending=True)[1].tolist() == [[0, 2, 1], [1, 0, 2]]
    assert x.topk(2)[1].tolist() == [[0, 2], [1, 0]]
    assert x.argmax(axis=1).tolist() == [0, 1] and x.argmin().item() == 5


def test_without_an_axis_the_last_one_is_sorted() -> None:
    assert cr.ops.sort(x)[1].tolist() == [[1, 0, 2], [2, 0, 1]]
    assert cr.ops.topk(x, 2)[1].tolist() == [[0, 2], [1, 0]]


def test_arrays_give_arrays() -> None:
    values, ids = cr.ops.sort(np.array([2.0, 1.0]))
    assert isinstance(values, np.ndarray) and isinstance(ids, np.ndarray)


def test_an_element_read_twice_gets_both_gradients() -> None:
    y = cr.Tensor([1.0, 2.0], requires_grad=True)
    cr.ops.take_along_axis(y, ids=[1, 1, 0]).backward(np.array([1.0, 2.0, 4.0]))
    assert y.grad is not None and y.grad.tolist() == [4.0, 3.0]


def test_ids_broadcast_along_the_other_axes() -> None:
    y = cr.Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    found = cr.ops.take_along_axis(y, ids=[[1]])
    found.sum().backward()
    assert found.tolist() == [[2.0], [4.0]]
    assert y.grad is not None and y.grad.tolist() == [[0.0, 1.0], [0.0, 1.0]]


def test_sort_and_topk_pass_the_gradient_check() -> None:
    data = np.random.default_rng(0).normal(size=(3, 4))
    cr.gradcheck(lambda t: t.sort(axis=0)[0] * cr.Tensor(np.arange(4.0)), data)
    cr.gradcheck(lambda t: t.topk(2)[0], data)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: x.topk(9), "topk: k is 9"),
        (lambda: x.sort(axis=2), "axis 2 for shape"),
        (lambda: cr.ops.take_along_axis(x, ids=[[3], [0]]), "id 3 along axis 1"),
        (lambda: cr.ops.argmax(np.ones((0, 2)), axis=0), "must have an element"),
    ],
)
def test_errors(call, message: str) -> None:
    with pytest.raises(cr.ShapeError, match=message):
        call()
