"""Attention: the worked examples of the seeds, and what must hold for any input."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chainrule as cr
from chainrule.errors import ConfigError, ShapeError
from chainrule.ops import attention, attention_weights, causal_mask, linear
from chainrule.random import key
from tests.vectors import Vector, vector


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def project(v: Vector) -> list[np.ndarray]:
    """q, k, v of the worked example: X times its three matrices, stored (in, out)."""
    X = np.array(v.inputs["X"])
    return [linear(X, np.array(v.inputs[W]), layout="in_out") for W in ("WQ", "WK", "WV")]


def log_sum_exp(*args: Any, **kwargs: Any) -> np.ndarray:
    """What attention keeps of the scores, (..., T): the logarithm of the denominators."""
    return attention.forward(*args, **kwargs)[1][4]


# -- worked examples -----------------------------------------------------------------------------------------


@pytest.mark.requirement("R-281")
def test_one_query() -> None:
    scores = vector("004-8.4.1-scores")
    q, k, v = (np.array(scores.inputs[name], dtype=float) for name in "QKV")
    weights = attention_weights(q, k)[0]
    total = np.exp(log_sum_exp(q, k, v)[0])
    vector("004-8.4.1-exp").check({"exp": weights * total, "sum": total})
    scores.check({"scaled": np.log(weights * total), "raw": np.log(weights * total) * math.sqrt(3)})
    vector("004-8.4.1-weights").check(weights)
    vector("004-8.4.1-output").check(attention(q, k, v)[0])


@pytest.mark.requirement("R-285")
def test_self_attention() -> None:
    q, k, v = project(vector("004-9.3-qkv"))
    weights, total = attention_weights(q, k), np.exp(log_sum_exp(q, k, v))
    scores = np.log(weights * total[:, None])
    vector("004-9.3-qkv").check({"Q": q, "K": k, "V": v})
    vector("004-9.3-scores").check({"S": scores, "QKt": scores * math.sqrt(2)})
    vector("004-9.3-exp-row1").check({"exp": weights[0] * total[0], "sum": total[0]})
    vector("004-9.3-weights").check(weights)
    vector("004-9.3-output").check(attention(q, k, v))


@pytest.mark.requirement("R-286")
def test_cross_attention() -> None:
    v = vector("der-cross-attention")
    _, k, values = project(v)
    q = linear(np.array(v.inputs["Y"]), np.array(v.inputs["WQ"]), layout="in_out")
    v.check({"A": attention_weights(q, k), "H": attention(q, k, values)})


@pytest.mark.requirement("R-287")
def test_causal() -> None:
    v = vector("der-causal-attention")
    q, k, values = project(v)
    v.check({"A": attention_weights(q, k, causal=True), "O": attention(q, k, values, causal=True)})
    vector("004-9.10.3-mask").check(np.where(causal_mask(4), 0.0, -np.inf))


@pytest.mark.requirement("R-305")
def test_causal_edges() -> None:
    """Information flows from j to i for every j <= i: a directed graph with self-loops."""
    A = attention_weights(normal(5, 2), normal(5, 2, seed=1), causal=True)
    edges = {(j, i) for i, j in np.argwhere(A)}
    assert edges == {(j, i) for i in range(5) for j in range(5) if j <= i}


@pytest.mark.requirement("R-290")
def test_padding() -> None:
    v = vector("der-padding-mask")
    q, k, values = project(v)
    mask = ~np.array(v.inputs["key_padding"])  # True = may attend
    v.check({"A": attention_weights(q, k, mask=mask), "O": attention(q, k, values, mask=mask)})
    both = attention_weights(q, k, mask=mask, causal=True)
    np.testing.assert_array_equal(both != 0, causal_mask(3) & mask)
    np.testing.assert_allclose(both, attention_weights(q, k, mask=causal_mask(3) & mask), rtol=1e-15)


@pytest.mark.requirement("R-291")
def test_multi_head() -> None:
    v = vector("der-multi-head")
    X = np.array(v.inputs["X"])
    q, k, values = (
        np.stack([X @ np.array(head[W]) for head in v.inputs["heads"]])  # (H, T, D)
        for W in ("WQ", "WK", "WV")
    )
    concat = attention(q, k, values).transpose(1, 0, 2).reshape(3, 4)  # (T, H·D)
    v.check({"concat": concat, "Z": linear(concat, np.array(v.inputs["WO"]), layout="in_out")})

    dims = vector("004-10.2-dims")
    x = normal(3, dims.inputs["d_model"])
    split = x.reshape(3, dims.inputs["h"], -1).swapaxes(0, 1)  # (H, T, D)
    merged = attention(split, split, split).swapaxes(0, 1).reshape(3, -1)
    dims.check({"d_k": split.shape[-1], "concat": merged.shape[-1]})
    vector("004-10.2.2-WO").check(np.empty((merged.shape[-1], x.shape[-1])).size)


@pytest.mark.requirement("R-275", "R-276", "R-277", "R-278")
def test_averaging_is_attention_without_affinities() -> None:
    """Equal scores under a causal mask give running averages: loop, matrix and softmax of {0, -inf} agree."""
    v = vector("der-bow")
    X, zeros = np.array(v.inputs["X"]), np.zeros((3, 2))
    averages = attention_weights(zeros, zeros, causal=True)
    vector("002-bow-weights-T3").check(averages)
    wei = vector("002-wei-softmax-T3")
    wei.check(attention_weights(zeros, zeros, mask=np.array(wei.inputs["W"])))
    v.check([X[: t + 1].mean(axis=0) for t in range(3)])
    v.check(averages @ X)
    v.check(attention(zeros, zeros, X, causal=True))

    W_q, W_k = normal(2, 2), normal(2, 2, seed=1)
    np.testing.assert_array_equal(attention_weights(X @ (0 * W_q), X @ W_k, causal=True), averages)
    assert np.abs(attention_weights(X @ W_q, X @ W_k, causal=True) - averages).max() > 0.1


@pytest.mark.requirement("R-303")
def test_linear_in_the_values_not_in_the_input() -> None:
    doubled = vector("004-9.8-double-input")
    q, k, v = project(doubled)
    doubled.check(attention(q, k, v)[0])
    np.testing.assert_allclose(attention(q, k, 2 * v), 2 * attention(q, k, v), rtol=1e-15)
    half = attention(q / 2, k / 2, v / 2)
    assert abs(2 * half - attention(q, k, v)).max() > 0.5


@pytest.mark.requirement("R-299")
@pytest.mark.parametrize("causal", [False, True])
def test_rows_sum_to_1_and_the_matrix_is_not_symmetric(causal: bool) -> None:
    X, W = normal(6, 8), normal(2, 8, 8, seed=1)
    A = attention_weights(X @ W[0], X @ W[1], causal=causal)
    assert (A >= 0).all() and abs(A - A.T).max() > 0.1
    np.testing.assert_allclose(A.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.requirement("R-299")
def test_rows_of_a_printed_table() -> None:
    """A table of positive rows that sum to 1 is the softmax of its own logarithm, symmetric or not."""
    v = vector("004-9.5-rows")
    A = np.array(v.inputs["A"])
    got = attention_weights(np.zeros((3, 1)), np.zeros((3, 1)), mask=np.log(A))
    np.testing.assert_allclose(got, A, rtol=1e-14)
    v.check(got.sum(axis=1))
    assert (got >= 0).all() and abs(got - got.T).max() > 0.1


# -- why the scores are scaled -------------------------------------------------------------------------------


@pytest.mark.requirement("R-282")
def test_score_variance() -> None:
    v = vector("002-attention-variance")
    d, n = v.inputs["d"], 400
    q, k = normal(n, d), normal(n, d, seed=1)

    def variance(scale: float | None) -> float:
        total = log_sum_exp(q, k, k, scale=scale)[:, None]
        scores = np.log(attention_weights(q, k, scale=scale)) + total
        return float(scores.var())

    standard_error = math.sqrt(2 * 2 / (n * d))  # that of |q|² and |k|², averaged over n rows each
    assert variance(1.0) == pytest.approx(v.recomputed["unscaled"], rel=3 * standard_error)
    assert variance(None) == pytest.approx(v.recomputed["scaled"], rel=3 * standard_error)


@pytest.mark.requirement("R-283")
def test_unscaled_scores_saturate() -> None:
    q, k = normal(200, 512), normal(16, 512, seed=1)

    def sensitivity(scale: float | None) -> float:
        p = attention_weights(q, k, scale=scale)
        return float(np.abs(cr.ops.softmax_jacobian(p)).sum(axis=(1, 2)).mean())

    assert sensitivity(None) > 5 * sensitivity(1.0)


# -- what holds for any input --------------------------------------------------------------------------------


@pytest.mark.requirement("R-279", "R-301")
@given(*(st.integers(1, 6) for _ in range(4)), st.integers(0, 99))
def test_outputs_are_weighted_averages(T: int, S: int, D: int, Dv: int, seed: int) -> None:
    q, k, v = normal(T, D, seed=seed), normal(S, D, seed=seed + 100), normal(S, Dv, seed=seed + 200)
    A, o = attention_weights(q, k), attention(q, k, v)
    assert (A >= 0).all() and abs(A.sum(axis=1) - 1).max() < 1e-12
    for i in range(T):
        np.testing.assert_allclose(o[i], sum(A[i, j] * v[j] for j in range(S)), rtol=1e-12, atol=1e-14)
    equal = attention(np.zeros((T, D)), k, v)
    np.testing.assert_allclose(equal, np.broadcast_to(v.mean(axis=0), (T, Dv)), rtol=1e-12, atol=1e-14)


@pytest.mark.requirement("R-295")
def test_weights_of_every_head() -> None:
    A = attention_weights(normal(2, 3, 5, 4), normal(2, 3, 5, 4, seed=1), causal=True)
    assert A.shape == (2, 3, 5, 5)
    assert abs(A.sum(axis=-1) - 1).max() < 1e-12
    assert abs(A[:, 0] - A[:, 1]).max() > 0.1


@pytest.mark.requirement("R-297")
def test_differentiable_and_content_dependent() -> None:
    q, k, v = normal(2, 3, 4), normal(2, 5, 4, seed=1), normal(2, 5, 3, seed=2)
    assert cr.gradcheck(attention, q, k, v) < 1e-6
    assert abs(attention_weights(q, k) - attention_weights(q[::-1], k)).max() > 0.1


@pytest.mark.requirement("R-296")
def test_permutation() -> None:
    """Equivariant without a mask; two causal layers do depend on the order (E-004-29)."""
    X, W = normal(4, 3), normal(6, 3, 3, seed=1)
    order = [1, 0, 2, 3]

    def net(x: np.ndarray, causal: bool) -> np.ndarray:
        for a, b, c in (W[:3], W[3:]):
            x = x + attention(x @ a, x @ b, x @ c, causal=causal)
        return x

    np.testing.assert_allclose(net(X[order], False), net(X, False)[order], rtol=1e-12)
    assert abs(net(X[order], True)[3] - net(X, True)[3]).max() > 1e-3


@pytest.mark.requirement("R-289")
def test_bidirectional() -> None:
    x = normal(5, 4)
    changed = np.concatenate([x[:4], x[4:] + 1])
    assert (attention_weights(x, x) > 0).all()
    assert abs(attention(changed, changed, changed)[0] - attention(x, x, x)[0]).max() > 1e-3


@pytest.mark.requirement("R-288")
def test_no_information_from_the_future() -> None:
    """Through three blocks (attention, GELU, norm, residuals) earlier outputs keep every bit."""
    weights = normal(3, 4, 8, 8, seed=1)

    def stack(x: np.ndarray) -> np.ndarray:
        for W_q, W_k, W_v, W in weights:
            heads = [(x @ M).reshape(6, 2, 4).swapaxes(0, 1) for M in (W_q, W_k, W_v)]  # (H, T, D)
            x = x + attention(*heads, causal=True).swapaxes(0, 1).reshape(6, 8)
            x = cr.ops.layernorm(x + cr.ops.gelu(linear(x, W)), np.ones(8), np.zeros(8))
        return x

    x = normal(6, 8)
    for j in range(1, 6):
        changed = x.copy()
        changed[j] += 1
        np.testing.assert_array_equal(stack(changed)[:j], stack(x)[:j])
        assert (stack(changed)[j] != stack(x)[j]).any()


@pytest.mark.requirement("R-292", "R-293")
def test_heads_see_everything_and_w_o_mixes_them() -> None:
    X, W, W_o = normal(3, 4), normal(3, 2, 4, 2, seed=1), normal(4, 4, seed=2)

    def influence(head: int, feature: int, out: np.ndarray) -> np.ndarray:
        """d output[0, feature] / dX, where only one head of the two passes a gradient."""
        x = cr.Tensor(X, requires_grad=True)
        outputs = [np.zeros((3, 2)), np.zeros((3, 2))]
        outputs[head] = attention(*(x @ M[head] for M in W))  # (T, D)
        (cr.ops.concat(*outputs, axis=1) @ out)[0, feature].backward()
        assert x.grad is not None
        return x.grad

    for head in range(2):
        for feature in range(4):
            assert (influence(head, feature, W_o) != 0).all()  # every input dimension, every output feature
            alone = influence(head, feature, np.eye(4))  # without W_O: block-diagonal
            assert (alone != 0).all() if feature // 2 == head else (alone == 0).all()


@pytest.mark.requirement("R-298")
def test_any_length() -> None:
    W = normal(3, 4, 2, seed=1)
    for n in (3, 7):
        x = normal(n, 4)
        assert attention(*(x @ M for M in W)).shape == (n, 2)
    over_positions = normal(3, 3)  # a dense layer over positions has a weight for each of them
    with pytest.raises(ShapeError, match="linear: x has 7 features"):
        linear(normal(7, 4).T, over_positions)


@pytest.mark.requirement("R-302")
def test_dropout_of_weights() -> None:
    p, n = 0.1, 60
    q, k = normal(2, n, 4), normal(2, n, 4, seed=1)
    eye = np.broadcast_to(np.eye(n), (2, n, n))  # with these values the output is the weights themselves
    A = attention(q, k, eye)
    dropped = attention(q, k, eye, dropout=p, key=key("dropout", 1, seed=3))
    share = np.mean(dropped == 0)
    assert abs(share - p) < 3 * math.sqrt(p * (1 - p) / A.size)
    np.testing.assert_allclose(dropped[dropped != 0], A[dropped != 0] / (1 - p), rtol=1e-12)
    np.testing.assert_array_equal(dropped, attention(q, k, eye, dropout=p, key=key("dropout", 1, seed=3)))
    assert (dropped != attention(q, k, eye, dropout=p, key=key("dropout", 2, seed=3))).any()
    np.testing.assert_array_equal(A, attention(q, k, eye))


# -- masks and heads, more closely ---------------------------------------------------------------------------


@pytest.mark.requirement("R-290", "R-471")
@pytest.mark.parametrize("mask", [np.zeros((3, 4), bool), np.full((3, 4), -np.inf)], ids=["boolean", "float"])
def test_a_row_without_keys_is_zero(mask: np.ndarray) -> None:
    mask[0, 1] = True if mask.dtype == bool else 0.0
    q, k, v = (cr.Tensor(normal(n, 2, seed=n), requires_grad=True) for n in (3, 4, 4))
    with np.errstate(all="raise"):
        o = attention(q, k, v, mask=mask)
        o.backward(np.ones((3, 2)))
    np.testing.assert_array_equal(o.numpy(), [v.numpy()[1], [0, 0], [0, 0]])
    assert q.grad is not None and k.grad is not None and v.grad is not None
    np.testing.assert_array_equal(q.grad, 0)  # a softmax over one key has no slope
    np.testing.assert_array_equal(k.grad, 0)
    np.testing.assert_array_equal(v.grad, [[0, 0], [1, 1], [0, 0], [0, 0]])
    assert not attention_weights(q, k, mask=mask)[1:].any()


def test_no_keys_at_all() -> None:
    o = attention(normal(2, 3), np.empty((0, 3)), np.empty((0, 4)))
    np.testing.assert_array_equal(o, np.zeros((2, 4)))


def test_causal_is_aligned_at_the_end() -> None:
    """The last T queries against all S keys give the last T rows of the full pass: decoding with a cache."""
    q, k, v = normal(2, 6, 4), normal(2, 6, 4, seed=1), normal(2, 6, 4, seed=2)
    full = attention(q, k, v, causal=True)
    np.testing.assert_allclose(attention(q[:, 4:], k, v, causal=True), full[:, 4:], rtol=1e-13)
    np.testing.assert_allclose(attention(q[:, 5:], k, v), full[:, 5:], rtol=1e-13)


@given(groups=st.integers(1, 4), kv_heads=st.integers(1, 3), seed=st.integers(0, 99))
def test_grouped_heads_share_keys(groups: int, kv_heads: int, seed: int) -> None:
    q = normal(2, kv_heads * groups, 3, 4, seed=seed)
    k, v = normal(2, kv_heads, 5, 4, seed=seed + 1), normal(2, kv_heads, 5, 2, seed=seed + 2)
    repeated = (np.repeat(k, groups, axis=1), np.repeat(v, groups, axis=1))
    want = attention(q, *repeated, causal=True)
    np.testing.assert_allclose(attention(q, k, v, causal=True), want, rtol=1e-12)


def test_strided_inputs() -> None:
    """Heads split off by a transpose, batch and head axes in any memory order."""
    q, k, v = (normal(3, 2, 5, 4, seed=s).transpose(1, 0, 2, 3) for s in range(3))  # (B, H, T, D), H slowest
    mask = normal(2, 1, 5, 5, seed=3) > -1
    got = attention(q, k, v, causal=True, mask=mask)
    want = attention(*(np.ascontiguousarray(x) for x in (q, k, v)), causal=True, mask=mask)
    np.testing.assert_allclose(got, want, rtol=1e-13)


def test_scores_far_beyond_exp() -> None:
    q = np.array([[1e4, 0.0]])
    k = np.array([[1e4, 0.0], [-1e4, 0.0]])
    np.testing.assert_array_equal(attention(q, k, np.eye(2), scale=1.0), [[1.0, 0.0]])


@pytest.mark.parametrize(
    "shapes, options, message",
    [
        (((12, 2, 4), (8, 2, 4), (8, 2, 4)), {}, "attention: q has 12 heads, k has 8 (must divide)"),
        (((4, 2, 4), (2, 2, 4), (4, 2, 4)), {}, "attention: k has 2 heads, v has 4 (must be equal)"),
        (((2, 4), (2, 3), (2, 3)), {}, "attention: q has head size 4, k has 3 (must be equal, at least 1)"),
        (((2, 4), (7, 4), (5, 4)), {}, "attention: k has 7 positions, v has 5 (must be equal)"),
        (
            ((2, 1, 2, 4), (3, 1, 2, 4), (3, 1, 2, 4)),
            {},
            "attention: q has batch (2,), k (3,), v (3,) (must be equal)",
        ),
        (((2, 4), (1, 2, 4), (2, 4)), {}, "attention: q has 2 axes, k 3, v 2 (must be equal, 2 or more)"),
        (
            ((2, 3, 4), (2, 5, 4), (2, 5, 4)),
            {"mask": np.ones((5, 3), bool)},
            "attention: mask has shape (5, 3), scores (2, 3, 5) (must broadcast to it)",
        ),
    ],
)
def test_shape_errors(shapes: tuple[tuple[int, ...], ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError) as error:
        attention(*(np.zeros(shape) for shape in shapes), **options)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "options, message",
    [
        ({"mask": np.ones((2, 2), int)}, "mask has dtype int64"),
        ({"dropout": 1.0, "key": (0,) * 5}, "dropout is 1.0 (must be at least 0 and below 1)"),
        ({"dropout": 0.1}, "dropout is 0.1, key is None"),
    ],
)
def test_option_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        attention(*np.zeros((3, 2, 4)), **options)
    assert f"attention: {message}" in str(error.value)


@pytest.mark.requirement("R-306", declared="docs/understand/attention.md")
def test_efficient_variants_are_here_or_declared_out_of_scope() -> None:
    """Exact attention that never keeps the matrix of weights is here; the page says what is not."""
    T = 64
    q, k, v = (cr.Tensor(normal(T, 4, seed=seed), requires_grad=True) for seed in range(3))
    o = attention(q, k, v)
    assert o.record is not None
    assert all(x.size < T * T for x in o.record.saved if isinstance(x, np.ndarray))
    np.testing.assert_allclose(o.numpy(), attention.composed(q, k, v).numpy(), rtol=1e-12)
    page = (Path(__file__).parents[3] / "docs/understand/attention.md").read_text()
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| ")]
    said = {row[1].split()[0]: row[3] for row in rows}
    assert "yes" in said["FlashAttention"] and "mask" in said["sparse"] and "out of scope" in said["linear"]
