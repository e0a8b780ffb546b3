"""Indexing, embedding, gather and one-hot: what is read twice gets the sum; bad ids are named."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, basic_indices, integer_array_indices

import chainrule as cr
from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import DataError, ShapeError
from tests.vectors import vector


def gradient(x: Array, index: Any, dy: Array) -> Array:
    leaf = Tensor(x, requires_grad=True)
    y = leaf[index]
    np.testing.assert_array_equal(y.data, x[index])
    y.backward(dy)
    return leaf.grad


def by_counting(shape: tuple[int, ...], index: Any, dy: Array) -> Array:
    """The definition: every copy sends its gradient to the flat place it was read from."""
    dx = np.zeros(int(np.prod(shape)))
    for place, g in zip(np.arange(dx.size).reshape(shape)[index].ravel(), dy.ravel(), strict=True):
        dx[place] += g
    return dx.reshape(shape)


@given(shape=array_shapes(max_dims=3, max_side=4), data=st.data())
def test_any_index(shape: tuple[int, ...], data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    index = data.draw(
        st.one_of(
            basic_indices(shape, allow_newaxis=True),
            integer_array_indices(shape),
            integer_array_indices(shape).map(lambda parts: parts[0]),
            st.just(rng.random(shape) < 0.5),
            st.just(rng.random(shape[0]) < 0.5),
            st.lists(st.integers(-shape[0], shape[0] - 1), max_size=5),
        )
    )
    x = rng.normal(size=shape)
    dy = rng.normal(size=x[index].shape)
    np.testing.assert_allclose(gradient(x, index, dy), by_counting(shape, index, dy), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "index",
    [
        (slice(None), [0, 0, 2]),
        ([1, 1], slice(None), [[0], [0]]),
        (np.array([True, False, True]), slice(0, 3, 2)),
        (Ellipsis, np.array([3, 3, -1])),
        (None, 1, slice(None), [2, 2]),
    ],
)
def test_slices_and_arrays_together(index: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 4, 4))
    dy = rng.normal(size=x[index].shape)
    expected = by_counting(x.shape, index, dy)
    np.testing.assert_allclose(gradient(x, index, dy), expected, rtol=1e-12, atol=1e-15)


def test_small_integer_types_do_not_wrap_around() -> None:
    x, ids, dy = np.ones((200, 3)), np.array([150, 199, 150], dtype=np.uint8), np.ones((3, 3))
    np.testing.assert_array_equal(gradient(x, ids, dy), by_counting(x.shape, ids, dy))


def test_index_may_be_a_tensor_and_is_copied() -> None:
    x, ids = Tensor(np.eye(3), requires_grad=True), np.array([0, 0, 2])
    y = x[Tensor(ids)] + x[ids]
    ids[:] = 1
    y.backward(np.ones((3, 3)))
    np.testing.assert_array_equal(x.grad, np.array([[4.0], [0.0], [2.0]]) * np.ones(3))


@pytest.mark.requirement("R-191")
def test_one_hot() -> None:
    v = vector("002-one-hot")
    v.check(ops.one_hot(v.inputs["indices"], v.inputs["depth"]))
    assert ops.one_hot([[0, 1]], 2, np.float64).shape == (1, 2, 2)
    assert ops.one_hot(1, 2).tolist() == [0.0, 1.0]


@pytest.mark.requirement("R-191")
def test_lookup_is_a_product_with_one_hot_rows() -> None:
    v = vector("002-one-hot-lookup")
    W, ids = np.array(v.inputs["W"]), v.inputs["indices"]
    v.check(ops.embedding(W, ids=ids))
    v.check(ops.matmul(ops.one_hot(ids, len(W), W.dtype), W))


@pytest.mark.requirement("R-192", "R-193")
def test_ngram_logits_by_einsum_and_by_lookup() -> None:
    v = vector("der-ngram-einsum")
    W, XS = np.array(v.inputs["W"]), np.array(v.inputs["XS"])
    V = W.shape[1]
    X = ops.one_hot(XS, V, W.dtype)
    v.check(np.einsum("mnv,nvw->mw", X, W))
    leaf = Tensor(W, requires_grad=True)
    v.check(leaf[np.arange(W.shape[0]), XS].sum(axis=1))
    assert X.size == V * XS.size, "the one-hot form stores |V| numbers where the lookup stores one"


@pytest.mark.requirement("R-357", "R-259")
def test_embedding_gradient_accumulates_repeats() -> None:
    v = vector("der-embedding-scatter")
    dy = np.array(v.inputs["grad"])
    W = Tensor(np.ones((v.inputs["V"], 2)), requires_grad=True)
    ops.embedding(W, ids=v.inputs["tokens"]).backward(dy)
    v.check(W.grad)


@given(st.integers(1, 6), st.integers(0, 4), array_shapes(min_dims=0, min_side=0, max_side=4))
def test_embedding_of_any_ids(V: int, C: int, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    ids = rng.integers(0, V, size=shape).astype(rng.choice([np.int64, np.int32, np.uint16, np.uint8]))
    W, dy = rng.normal(size=(V, C)), rng.normal(size=(*shape, C))
    leaf = Tensor(W, requires_grad=True)
    y = ops.embedding(leaf, ids=ids)
    np.testing.assert_array_equal(y.data, W[ids])
    y.backward(dy)
    np.testing.assert_allclose(leaf.grad, by_counting(W.shape, (ids,), dy), rtol=1e-12, atol=1e-15)


def test_scatter_add_gives_the_same_bits_every_time() -> None:
    rng = np.random.default_rng(0)
    ids, dy = rng.integers(0, 5, size=4000), rng.normal(size=(4000, 3)).astype(np.float32)

    def grad() -> bytes:
        W = Tensor(np.zeros((5, 3), np.float32), requires_grad=True)
        ops.embedding(W, ids=ids).backward(dy)
        return W.grad.tobytes()

    in_order = np.zeros((5, 3), np.float32)
    for i, g in zip(ids, dy, strict=True):
        in_order[i] += g
    assert grad() == grad() == in_order.tobytes()


BAD_IDS = {
    "embedding: id 9 at position (1, 0), vocabulary size is 5 (must be an integer from 0 to 4)": [
        [0, 4],
        [9, 7],
    ],
    "embedding: id 5 at position (1,), vocabulary size is 5": [0, 5],
    "embedding: id -1 at position (1,), vocabulary size is 5": [3, -1],
    "embedding: id 1.5 is of type float64, vocabulary size is 5 (must be an integer from 0 to 4)": [1.5, 2.0],
    "embedding: id True is of type bool": [True, False],
    "embedding: id a is of type <U1": ["a"],
}


@pytest.mark.parametrize("message", BAD_IDS)
def test_bad_ids_are_named(message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        ops.embedding(np.ones((5, 2)), ids=BAD_IDS[message])


def test_gather_picks_one_entry_per_row() -> None:
    rng = np.random.default_rng(0)
    x, ids, dy = rng.normal(size=(2, 3, 4)), rng.integers(0, 4, size=(2, 3)), rng.normal(size=(2, 3))
    leaf = Tensor(x, requires_grad=True)
    y = ops.gather(leaf, ids=ids)
    y.backward(dy)
    for i, j in np.ndindex(2, 3):
        assert y.data[i, j] == x[i, j, ids[i, j]]
        np.testing.assert_array_equal(leaf.grad[i, j], dy[i, j] * np.eye(4)[ids[i, j]])


def test_errors_of_the_others() -> None:
    with pytest.raises(DataError, match=r"gather: id 3 at position \(1,\), vocabulary size is 3"):
        ops.gather(np.ones((2, 3)), ids=[0, 3])
    with pytest.raises(DataError, match=r"one_hot: id 2 at position \(1,\), vocabulary size is 2"):
        ops.one_hot([0, 2], 2)
    with pytest.raises(ShapeError, match=r"gather: ids are \(1,\), x is \(2, 3\) \(ids must be \(2,\)\)"):
        ops.gather(np.ones((2, 3)), ids=[0])
    with pytest.raises(
        ShapeError, match=r"embedding: W has shape \(3,\) \(must be \(vocabulary, channels\)\)"
    ):
        ops.embedding(np.ones(3), ids=[0])
    with pytest.raises(ShapeError, match=r"getitem: .*\(3, 4\).*index 5 is out of bounds for axis 0"):
        Tensor(np.ones((3, 4)))[5]


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_a_row_that_weighs_nothing_counts_for_nothing(backend: str) -> None:
    table = np.array([[np.nan, np.inf], [1, 2], [3, 4]], np.float32)
    with cr.backend(backend):
        bag = ops.embedding_bag(table, ids=[[0, 1, 2], [1, 1, 0]], weights=[[0, 2, 1], [1, 1, 0]])
    np.testing.assert_array_equal(bag, [[5, 8], [2, 4]])


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_weights_of_a_bag_may_lie_anywhere(backend: str) -> None:
    table, ids = np.arange(8, dtype=np.float32).reshape(4, 2), np.array([[0, 1], [2, 3], [1, 1]])
    turned = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(3, 2))
    turned.setflags(write=False)
    for weights in (turned, np.broadcast_to(np.float32(0.5), (3, 2))):
        with cr.backend(backend):
            found = ops.embedding_bag(table, ids=ids, weights=weights)
        np.testing.assert_array_equal(found, (table[ids] * weights[..., None]).sum(1))


def test_bad_ids_of_a_bag_are_named() -> None:
    with pytest.raises(DataError, match=r"^embedding_bag: id 7 at position \(0, 1\)"):
        ops.embedding_bag(np.ones((4, 2), np.float32), ids=[[0, 7]])


def test_rows_that_are_not_in_their_places_are_refused() -> None:
    table, rows = np.zeros((3, 2), np.float32), np.ones((1, 2), np.float32)
    with pytest.raises(DataError, match="put_rows: the rows are not in W"):
        ops.put_rows(table, rows, ids=[1], placed=True)
    table[1] = 1
    np.testing.assert_array_equal(ops.put_rows(table, rows, ids=[1], placed=True), table)
