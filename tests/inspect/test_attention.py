"""The maps of attention and their patterns."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule.errors import ShapeError
from chainrule.inspect import maps, pattern, patterns
from chainrule.models import GPT, GPTConfig, Llama, LlamaConfig


def noisy(A: np.ndarray, causal: bool, seed: int) -> np.ndarray:
    """A with 15% of the weight spread at random, and only what comes before if causal."""
    rng = np.random.default_rng(seed)
    noise = rng.random(A.shape)
    A = 0.85 * A / A.sum(1, keepdims=True) + 0.15 * noise / noise.sum(1, keepdims=True)
    if causal:
        A = np.tril(A)
    return A / A.sum(1, keepdims=True)


def planted(kind: str, T: int, rng: np.random.Generator) -> np.ndarray:
    A = np.zeros((T, T))
    if kind == "diagonal":
        return np.eye(T) + 0.3 * np.eye(T, k=-1)
    if kind == "stripe":
        A[:, rng.integers(T // 4)] = 1
        return A
    if kind == "block":
        cuts = [0, T // 3, 2 * T // 3, T]
        for a, b in pairwise(cuts):
            A[a:b, a:b] = 1
        return A
    A[np.arange(T), np.roll(rng.permutation(T), 1)] = 1  # one-hot
    return A


@pytest.mark.requirement("R-227")
@pytest.mark.parametrize(
    ("kind", "name"),
    [("diagonal", "diagonal"), ("stripe", "stripe"), ("block", "block"), ("one-hot", "sparse")],
)
@settings(max_examples=15)
@given(T=st.integers(12, 30), seed=st.integers(0, 1000), clean=st.booleans())
def test_planted_patterns_are_named(kind: str, name: str, T: int, seed: int, clean: bool) -> None:
    A = planted(kind, T, np.random.default_rng(seed))
    A = A / A.sum(1, keepdims=True) if clean else noisy(A, False, seed)
    found = pattern(A)
    assert found.kind == name
    assert found.row_sum_error < 1e-12 and 0 <= found.asymmetry <= 1
    if kind == "block":
        assert found.groups == (0, T // 3, 2 * T // 3)
    if kind == "stripe":
        assert found.column == A.sum(0).argmax()


@pytest.mark.parametrize("kind", ["diagonal", "stripe", "block"])
def test_causal_patterns(kind: str) -> None:
    for seed in range(5):
        assert pattern(noisy(planted(kind, 18, np.random.default_rng(seed)), True, seed)).kind == kind


def test_uniform_attention_is_no_pattern() -> None:
    for A in (np.ones((9, 9)), np.tri(9)):
        found = pattern(A / A.sum(1, keepdims=True))
        assert found.kind == "spread" and abs(found.sparsity) < 1e-9
    assert pattern(np.ones((9, 9)) / 9).asymmetry == 0
    with pytest.raises(ShapeError, match="must be square"):
        pattern(np.ones((2, 3)))


@pytest.mark.parametrize(
    "model",
    [
        GPT(GPTConfig(n_layer=2, n_head=2, n_embd=16, block_size=12, vocab_size=9)),
        Llama(
            LlamaConfig(n_layer=2, n_head=4, n_kv_head=2, n_embd=16, n_hidden=20, block_size=12, vocab_size=9)
        ),
    ],
    ids=["GPT", "Llama"],
)
def test_the_maps_of_any_model(model: cr.models.LanguageModel) -> None:
    ids = np.arange(24).reshape(2, 12) % 9
    found = maps(model, ids)
    assert len(found) == 2
    for A in found.values():
        assert A.shape == (2, model.config.n_head, 12, 12)
        assert np.allclose(A.sum(-1), 1, atol=1e-5) and not np.triu(A, 1).any()
    assert {p.kind for heads in patterns(model, ids).values() for p in heads} == {"spread"}  # untrained


def test_maps_of_attention_with_distances() -> None:
    """With queries and keys of 0, each query looks where the bias says."""
    cr.seed(0)
    sizes = {"n_layer": 1, "n_head": 2, "n_embd": 8, "block_size": 6, "vocab_size": 9, "relative_buckets": 8}
    body = cr.models.BERT(cr.models.BERTConfig(**sizes))
    body.encoder.layer[0].attention.self.query.weight.data[:] = 0
    body.encoder.relative_attention_bias.weight.data[:] = 0
    body.encoder.relative_attention_bias.weight.data[1, 0] = 50  # one position before, in head 0
    (found,) = maps(body, np.array([[1, 2, 3, 4]])).values()
    np.testing.assert_allclose(found[0, 0, 1:], np.eye(4)[:3], atol=1e-6)
    np.testing.assert_allclose(found[0, 1], np.full((4, 4), 0.25), atol=1e-6)


def test_maps_of_an_encoder_decoder() -> None:
    model = cr.models.make("t5", n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    found = maps(model, ([1, 2, 3, 4], [5, 6]))
    assert [A.shape for A in found.values()] == [(1, 2, 4, 4), (1, 2, 2, 2), (1, 2, 2, 4)]
    for A in found.values():
        assert np.allclose(A.sum(-1), 1, atol=1e-5)
