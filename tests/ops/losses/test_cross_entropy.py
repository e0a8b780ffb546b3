"""Softmax + cross-entropy: values, gradients, label smoothing, masks, extreme logits, bad targets."""

from __future__ import annotations

import importlib
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chainrule as cr
from chainrule.errors import ConfigError, DataError, ShapeError
from chainrule.ops import cross_entropy, diagonal_targets, smooth_labels, softmax
from tests.vectors import vector

INF = np.inf
TABLE_1 = ["zeros", "uniform01", "right-label", "wrong-label", "normal10", "normal100"]


def run(logits: Any, dtype: type = np.float64, **constants: Any) -> tuple[Any, np.ndarray]:
    """Loss and gradient of the (summed) loss."""
    x = cr.Tensor(np.array(logits, dtype=dtype), requires_grad=True)
    loss = cross_entropy(x, **constants)
    loss.backward(np.ones(loss.shape))
    return (loss.item() if loss.ndim == 0 else loss.data), x.grad


def random_case(N: int, V: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N, V)), rng.integers(0, V, size=N)


@pytest.mark.requirement("R-100", "R-101")
def test_one_position() -> None:
    v = vector("der-ce-logits")
    loss, grad = run(v.inputs["logits"], targets=v.inputs["label"])
    v.check({"loss": loss, "grad": grad})
    z = np.array(v.inputs["logits"])
    assert loss == pytest.approx(-z[2] + math.log(np.exp(z).sum()), rel=1e-14)


@pytest.mark.requirement("R-101", "R-103", "R-344")
def test_batch_mean() -> None:
    v = vector("der-ce-batch-mean")
    loss, grad = run(v.inputs["logits"], targets=v.inputs["labels"])
    v.check({"loss": loss, "grad": grad})
    P, onehot = softmax(np.array(v.inputs["logits"])), np.eye(4)[v.inputs["labels"]]
    np.testing.assert_allclose(grad, (P - onehot) / 2, rtol=1e-12)


@pytest.mark.requirement("R-101")
def test_gradient_is_predicted_minus_true() -> None:
    v = vector("004-3.10-gradient")
    v.check(run(np.log(v.inputs["p"]), targets=v.inputs["label"])[1])


@pytest.mark.requirement("R-099")
def test_ids_look_up_what_a_dense_target_multiplies() -> None:
    logits, ids = random_case(6, 5)
    for reduction in ("mean", "sum", "none"):
        loss, grad = run(logits, targets=ids, reduction=reduction)
        dense, dense_grad = run(logits, targets=np.eye(5)[ids], reduction=reduction)
        np.testing.assert_allclose(loss, dense, rtol=1e-14)
        np.testing.assert_allclose(grad, dense_grad, rtol=1e-13, atol=1e-16)
    _, saved = cross_entropy.forward(logits, targets=ids)
    wide = [s for s in saved if isinstance(s, np.ndarray) and s.size > 6]
    assert len(wide) == 1 and wide[0] is logits, "the logits are the only (N, V) array kept"


def test_the_gradient_is_dense() -> None:  # E-004-51
    assert (run(*random_case(1, 50)[:1], targets=[3])[1] != 0).all()


# -- Table 1 of seed 002: from hopeful to hopeless initial logits --------------------------------------------


@pytest.mark.requirement("R-100", "R-470")
@pytest.mark.parametrize("row", TABLE_1)
def test_table_1(row: str) -> None:
    v = vector(f"002-table1-{row}")
    logits = np.array(v.inputs["logits"], dtype=np.float64)
    v.check({"loss": run(logits, targets=v.inputs["label"])[0], "p": softmax(logits)})


def test_table_1_from_printed_probabilities() -> None:
    v = vector("002-table1-normal1")
    p, first = np.array(v.inputs["p"]), v.inputs["logits_surviving"][0]
    logits = np.log(p / p[0]) + first
    loss = cr.ops.cross_entropy_probs(p, targets=v.inputs["label"])
    v.check({"loss": loss, "logits_recovered": logits})


@pytest.mark.requirement("R-468", "R-470")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extreme_logits_are_nearly_free_or_very_costly(dtype: type) -> None:
    logits = vector("002-table1-normal100").inputs["logits"]
    losses = [run(logits, dtype, targets=label)[0] for label in range(3)]
    assert losses == pytest.approx([218.3792, 150.7286, 0.0], abs=1e-4)
    assert losses[2] < 1e-60


@pytest.mark.requirement("R-467")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logits_of_ten_thousand(dtype: type) -> None:
    shape = np.array([[1.0, 2.0, 0.5], [-3.0, 0.0, 0.25]])
    near, near_grad = run(shape, targets=[0, 1])
    for offset in (1e4, -1e4):
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            loss, grad = run(shape + offset, dtype, targets=[0, 1])
        assert loss == pytest.approx(near, rel=1e-6 if dtype is np.float32 else 1e-10)
        np.testing.assert_allclose(grad, near_grad, atol=1e-7 if dtype is np.float32 else 1e-10)
    loss, grad = run([[1e4, -1e4, 0.0]], dtype, targets=[1])
    assert loss == 2e4
    np.testing.assert_array_equal(grad, [[1, -1, 0]])


@pytest.mark.requirement("R-471")
def test_minus_infinity_off_the_target() -> None:
    for targets in (np.array([0]), np.array([[0.5, 0.0, 0.5]])):
        with np.errstate(all="raise"):
            loss, grad = run([[1.0, -INF, 1.0]], targets=targets)
        assert loss == pytest.approx(math.log(2))
        assert grad[0, 1] == 0 and np.isfinite(grad).all()


@pytest.mark.requirement("R-115")
def test_infinite_only_when_the_target_has_probability_0() -> None:
    assert run([[1.0, -INF, 1.0]], targets=[1])[0] == INF
    assert run([[-INF, -INF]], targets=[1])[0] == INF
    assert np.isfinite(run([[-INF, 3.0]], targets=[1])[1]).all()


# -- label smoothing -----------------------------------------------------------------------------------------


@pytest.mark.requirement("R-106")
def test_label_smoothing() -> None:
    v = vector("der-label-smoothing")
    logits, label, eps = (v.inputs[name] for name in ("logits", "label", "eps"))
    loss, grad = run(logits, targets=label, label_smoothing=eps)
    v.check({"target": smooth_labels(label, 5, eps), "loss": loss, "grad": grad})
    np.testing.assert_allclose(grad, softmax(np.array(logits)) - smooth_labels(label, 5, eps), rtol=1e-12)


@pytest.mark.requirement("R-107")
def test_label_smoothing_without_the_true_class() -> None:
    v = vector("004-glossary-label-smoothing")
    label, V, eps = (v.inputs[name] for name in ("label", "V", "eps"))
    v.check(smooth_labels(label, V, eps))
    other = smooth_labels(label, V, eps, exclude_true=True)
    np.testing.assert_allclose(other, [0.05, 0.9, 0.05], rtol=1e-15)
    logits = np.array([0.3, -1.0, 2.0])
    loss, grad = run(logits, targets=label, label_smoothing=eps, exclude_true=True)
    assert loss == pytest.approx(-(other * np.log(softmax(logits))).sum(), rel=1e-13)
    np.testing.assert_allclose(grad, softmax(logits) - other, rtol=1e-12)


@given(st.integers(1, 6), st.floats(0, 0.99), st.booleans(), st.integers(0, 99))
def test_smoothed_targets_are_distributions(V: int, eps: float, exclude_true: bool, seed: int) -> None:
    logits, ids = random_case(3, V, seed)
    t = smooth_labels(ids, V, eps, exclude_true=exclude_true)
    np.testing.assert_allclose(t.sum(axis=-1), 1, rtol=1e-12)
    loss = cross_entropy(logits, targets=ids, label_smoothing=eps, exclude_true=exclude_true)
    direct = -(t * np.log(softmax(logits))).sum(axis=-1).mean()
    np.testing.assert_allclose(loss, direct, rtol=1e-9, atol=1e-12)


# -- masks, weights, reductions ------------------------------------------------------------------------------


@pytest.mark.requirement("R-108")
def test_masked_positions_contribute_nothing() -> None:
    v = vector("der-instruction-mask")
    p, mask = np.array(v.inputs["p"]), np.array(v.inputs["mask"])
    logits = np.log(np.stack([p, 1 - p], axis=1))  # class 0 has probability p
    ids = np.zeros(4, int)
    total, _ = run(logits, targets=ids, weights=mask, reduction="sum")
    mean, grad = run(logits, targets=ids, weights=mask)
    v.check({"sum": total, "mean_over_response": mean})
    assert (grad[mask == 0] == 0).all() and (grad[mask == 1] != 0).all()
    ignored, same = run(logits, targets=np.where(mask, ids, -100), ignore_index=-100)
    assert ignored == mean
    np.testing.assert_array_equal(same, grad)


@pytest.mark.requirement("R-108")
def test_ignored_rows_may_hold_anything() -> None:
    logits, ids = random_case(4, 3)
    clean = run(logits[:2], targets=ids[:2])
    logits[2:] = [[INF, 0.0, -INF], [np.nan, 1.0, 2.0]]
    ids[2:] = 7
    with np.errstate(invalid="ignore"):
        loss, grad = run(logits, targets=ids, ignore_index=7)
        each, _ = run(logits, targets=ids, ignore_index=7, reduction="none")
    assert loss == pytest.approx(clean[0], rel=1e-15)
    np.testing.assert_array_equal(grad, np.vstack([clean[1], np.zeros((2, 3))]))
    np.testing.assert_array_equal(each[2:], 0)


@pytest.mark.parametrize("constants", [{"ignore_index": 0}, {"weights": np.zeros(4)}])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_nothing_counted_is_loss_0(constants: dict[str, Any], reduction: str) -> None:
    loss, grad = run(np.ones((4, 3)), targets=np.zeros(4, int), reduction=reduction, **constants)
    assert loss == 0
    np.testing.assert_array_equal(grad, np.zeros((4, 3)))
    assert run(np.ones((0, 3)), targets=np.zeros(0, int), reduction=reduction)[0] == 0


@pytest.mark.requirement("R-111")
@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 99))
def test_additive_over_positions_and_batches(B: int, T: int, seed: int) -> None:
    logits, ids = random_case(B * T, 5, seed)
    logits, ids = logits.reshape(B, T, 5), ids.reshape(B, T)
    each = cross_entropy(logits, targets=ids, reduction="none")
    assert each.shape == (B, T)
    total = cross_entropy(logits, targets=ids, reduction="sum")
    by_item = sum(cross_entropy(z, targets=t, reduction="sum") for z, t in zip(logits, ids, strict=True))
    np.testing.assert_allclose([by_item, each.sum()], total, rtol=1e-13)
    np.testing.assert_allclose(cross_entropy(logits, targets=ids), total / (B * T), rtol=1e-13)


def test_the_mean_is_weighted() -> None:
    logits, ids = random_case(3, 4)
    weights = np.array([0.5, 2.0, 0.0])
    each = cross_entropy(logits, targets=ids, reduction="none")
    np.testing.assert_allclose(cross_entropy(logits, targets=ids, weights=weights), each @ weights / 2.5)
    np.testing.assert_allclose(
        cross_entropy(logits, targets=ids, weights=-weights, reduction="sum"), -each @ weights
    )


def test_blocks_of_rows_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, ids = random_case(37, 11)
    whole = run(logits, np.float32, targets=ids, label_smoothing=0.1)
    for block in (1, 50, 200):
        monkeypatch.setattr(importlib.import_module("chainrule.ops.losses.cross_entropy"), "BLOCK", block)
        loss, grad = run(logits, np.float32, targets=ids, label_smoothing=0.1)
        assert loss == whole[0]
        np.testing.assert_array_equal(grad, whole[1])


def test_targets_may_be_tensors_lists_or_any_integers() -> None:
    logits, ids = random_case(4, 3)
    want = cross_entropy(logits, targets=ids)
    for targets in (ids.tolist(), cr.Tensor(ids), ids.astype(np.uint8), ids.astype(np.int16)):
        assert cross_entropy(logits, targets=targets) == want
    assert cross_entropy(logits.astype(np.float32), targets=np.eye(3)[ids]).dtype == np.float32


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "constants, error, message",
    [
        ({"targets": [0, 5, 9]}, DataError, "target 5 at position 1, V is 3 (must be from 0 to 2)"),
        ({"targets": [0, 1, -1]}, DataError, "target -1 at position 2, V is 3"),
        ({"targets": [0, 1]}, ShapeError, "target ids have shape (2,), logits (3, 3) (must be (3,))"),
        ({"targets": [0.0, 1.0, 1.0]}, ShapeError, "target distributions have shape (3,), logits (3, 3)"),
        ({"targets": np.eye(3) * 2}, DataError, "target row 0 has minimum 0 and sum 2"),
        ({"targets": np.eye(3) - 0.5 * np.eye(3, k=1)}, DataError, "target row 0 has minimum -0.5"),
        ({"targets": [True, False, True]}, DataError, "targets are bool"),
        ({"targets": [0, 1, 2], "weights": [1.0]}, ShapeError, "weights have shape (1,), logits (3, 3)"),
        ({"targets": [0, 1, 2], "weights": [1, 1, -1]}, DataError, "weight -1 (must not be negative"),
        ({"targets": [0, 1, 2], "reduction": "avg"}, ConfigError, "reduction is 'avg' (must be 'mean'"),
        ({"targets": [0, 1, 2], "label_smoothing": 1.0}, ConfigError, "label_smoothing: got 1.0"),
    ],
)
def test_bad_input(constants: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        cross_entropy(np.zeros((3, 3)), **constants)


def test_targets_changed_after_forward_do_not_change_the_gradient() -> None:
    targets = np.array([[0.2, 0.8]])
    logits = cr.Tensor(np.zeros((1, 2)), requires_grad=True)
    loss = cross_entropy(logits, targets=targets)
    targets[...] = [[0.9, 0.1]]
    loss.backward()
    np.testing.assert_allclose(logits.grad, [[0.3, -0.3]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_count_only_where_targets_do(dtype: type) -> None:
    """A row that is ignored has no weight in the mean either; float32 runs in C++ where it is built."""
    rng = np.random.default_rng(0)
    logits, targets = rng.normal(size=(4, 5)), np.array([1, -1, 3, 0])
    weights = np.array([2.0, 100.0, 0.5, 0.0])
    loss, grad = run(logits, dtype, targets=targets, weights=weights, ignore_index=-1)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    assert loss == pytest.approx(-(2.0 * log_p[0, 1] + 0.5 * log_p[2, 3]) / 2.5, rel=1e-6)
    expected = np.exp(log_p)
    expected[0, 1] -= 1
    expected[2, 3] -= 1
    expected *= np.array([2.0, 0.0, 0.5, 0.0])[:, None] / 2.5
    np.testing.assert_allclose(grad, expected, rtol=1e-5, atol=1e-7)


def test_right_answers_on_the_diagonal() -> None:
    assert diagonal_targets(np.array([0, 0, -1, 5]), -1).tolist() == [0, 1, -1, 3]
