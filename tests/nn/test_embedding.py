"""What an embedding is: a row of a table, which is a product with a one-hot vector, learned like any weight."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.models import GPT, GPTConfig, Word2VecConfig
from chainrule.nn import Embedding
from tests.vectors import vector


@pytest.mark.requirement("R-248")
def test_one_hot_vectors_know_no_similarity() -> None:
    rows = cr.ops.one_hot(np.arange(7), 7)
    assert rows.shape == (7, 7) and (rows.sum(axis=1) == 1).all() and np.count_nonzero(rows) == 7
    np.testing.assert_array_equal(rows @ rows.T, np.eye(7))
    distances = np.linalg.norm(rows[:, None] - rows[None], axis=-1)
    np.testing.assert_array_equal(distances[~np.eye(7, dtype=bool)], np.float32(np.sqrt(2)))


@pytest.mark.requirement("R-249")
def test_a_lookup_is_a_product_with_a_one_hot_vector() -> None:
    layer = Embedding(11, 6)
    table = layer.weight.array
    for i in range(11):
        one_hot = np.eye(11, dtype=np.float32)[i]
        np.testing.assert_array_equal(layer(np.array(i)).numpy(), table.T @ one_hot)


@pytest.mark.requirement("R-258")
@pytest.mark.parametrize("name", ["004-7.4.3-gpt2-embedding", "004-7.4.3-gpt3-embedding"])
def test_parameters_of_an_embedding(name: str) -> None:
    v = vector(name)
    V, d = v.inputs["V"], v.inputs["d"]
    v.check(Word2VecConfig(vocab_size=V, dim=d).n_params // 2)
    assert Embedding(V // 1000, d).count() == V // 1000 * d


@pytest.mark.requirement("R-259")
def test_only_tokens_that_are_present_learn_and_repeats_add_up() -> None:
    v = vector("der-embedding-scatter")
    grad = np.array(v.inputs["grad"])
    layer = Embedding(v.inputs["V"], grad.shape[1]).to(np.float64)
    layer(np.array(v.inputs["tokens"])).backward(grad)
    v.check(layer.weight.grad)


@pytest.mark.requirement("R-259")
def test_embeddings_are_trained_with_the_model() -> None:
    cr.seed(0)
    model = GPT(GPTConfig(n_layer=1, n_head=1, n_embd=8, block_size=4, vocab_size=10))
    model.wte.weight.array[...] = np.random.default_rng(0).normal(size=(10, 8))
    hidden = model.wte(np.array([[2, 0, 2]]))
    cr.ops.sum(hidden * hidden).backward()
    assert np.flatnonzero(model.wte.weight.grad.any(axis=1)).tolist() == [0, 2]
    before = model.wte.weight.array.copy()
    model.parameters().zero_grad()
    model.loss(np.array([[2, 0, 2]]), np.array([[0, 2, 5]])).backward()
    cr.optim.SGD(model.parameters(), lr=0.1).step()
    assert (model.wte.weight.array != before).any(axis=1)[[0, 2, 5]].all()


@pytest.mark.requirement("R-260")
def test_static_and_contextual() -> None:
    """The lookup of `bank` is the same by the river and at the counter; after attention it is not."""
    cr.seed(0)
    river, bank, account = range(3)
    model = GPT(GPTConfig(n_layer=1, n_head=2, n_embd=16, block_size=4, vocab_size=3)).eval()
    lookups = model.wte(np.array([[river, bank], [bank, account]]))  # (B, T, C), without positions
    outputs = model.h[0](lookups).numpy()
    np.testing.assert_array_equal(lookups.numpy()[0, 1], lookups.numpy()[1, 0])
    assert np.abs(outputs[0, 1] - outputs[1, 0]).max() > 1e-4
    alone = model.h[0](
        model.wte(np.array([[bank, bank]]))
    ).numpy()  # it is the other word that makes the difference
    np.testing.assert_allclose(alone[0, 1], outputs[1, 0], rtol=1e-5, atol=1e-6)


@pytest.mark.requirement("R-261")
def test_a_sequence_is_a_matrix_of_lookups() -> None:
    v = vector("004-7.6-shape")
    T, d = v.inputs["T"], v.inputs["d"]
    layer = Embedding(5, d)
    ids = np.array([4, 0, 3])
    X = layer(ids).numpy()
    v.check(list(X.shape))
    np.testing.assert_array_equal(X, np.stack([layer.weight.array[i] for i in ids]))
    assert len(ids) == T
