"""Losses of numbers and probabilities: worked examples, edges, and two small experiments."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chainrule as cr
from chainrule import ops
from chainrule.errors import ConfigError, DataError, ShapeError
from chainrule.foundations.information import perplexity
from tests.vectors import vector

INF = np.inf


def run(op: Callable[..., Any], *args: Any, **constants: Any) -> tuple[Any, ...]:
    """Loss, then the gradient for each argument."""
    tensors = [cr.Tensor(np.array(a, dtype=np.float64), requires_grad=True) for a in args]
    loss = op(*tensors, **constants)
    loss.backward(np.ones(loss.shape))
    return (loss.item() if loss.ndim == 0 else loss.data), *(t.grad for t in tensors)


def descend(params: list[cr.Tensor], loss: Callable[[], cr.Tensor], steps: int, lr: float) -> None:
    for _ in range(steps):
        loss().backward()
        for p in params:
            p.data -= lr * p.grad
            p.zero_grad()


# -- numbers -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-097")
def test_mse() -> None:
    v = vector("004-5.3.1-mse")
    pred, target = np.array(v.inputs["pred"]), np.array(v.inputs["target"])
    v.check({"sum": ops.mse(pred, target, reduction="sum"), "mse": ops.mse(pred, target)})
    v = vector("der-mse-grad")
    loss, dpred, dtarget = run(ops.mse, pred, target)
    v.check({"loss": loss, "grad": dpred})
    np.testing.assert_array_equal(dtarget, -dpred)
    assert run(ops.mse, target, pred)[0] == loss


@pytest.mark.requirement("R-097")
def test_mse_with_one_half() -> None:
    a, b = np.array([0.8, 0.3, 0.9]), np.array([1.0, 0.0, 1.0])
    loss, da, _ = run(ops.mse, a, b, half=True, reduction="sum")
    assert loss == pytest.approx(0.07)
    np.testing.assert_array_equal(da, a - b)
    assert run(ops.mse, a, b, half=True)[0] == pytest.approx(0.5 * run(ops.mse, a, b)[0])


def test_mae_and_its_kink() -> None:
    loss, da, db = run(ops.mae, [1.0, 2.0, -3.0], [1.0, 0.0, 1.0], reduction="sum")
    assert loss == 6
    np.testing.assert_array_equal(da, [0, 1, -1])
    np.testing.assert_array_equal(db, [0, -1, 1])


def test_huber_joins_the_two() -> None:
    d = np.array([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0])
    loss, da, _ = run(ops.huber, d, np.zeros(7), reduction="none")
    np.testing.assert_allclose(loss, [2.5, 0.5, 0.125, 0, 0.125, 0.5, 2.5])
    np.testing.assert_array_equal(da, [-1, -1, -0.5, 0, 0.5, 1, 1])
    wide = ops.huber(d, np.zeros(7), delta=100.0)
    assert wide == pytest.approx(ops.mse(d, np.zeros(7), half=True), rel=1e-15)
    with pytest.raises(ConfigError, match=r"huber: delta is 0 \(must be above 0\)"):
        ops.huber(d, d, delta=0)


def test_losses_do_not_broadcast() -> None:
    for op in (ops.mse, ops.mae, ops.huber):
        with pytest.raises(ShapeError, match=re.escape(f"{op.name}: pred has shape (3, 1), target (3,)")):
            op(np.zeros((3, 1)), np.zeros(3))


def test_integer_targets_keep_float32() -> None:
    pred = np.array([0.5, 2.0], np.float32)
    for op in (ops.mse, ops.mae, ops.huber):
        assert op(pred, np.array([1, 2]), reduction="none").dtype == np.float32


@pytest.mark.requirement("R-113")
def test_pull_to_reference_weights() -> None:
    v = vector("der-pull-to-pretrained")
    theta, reference, lam = (v.inputs[name] for name in ("theta", "theta_pre", "lambda"))
    penalty, grad = run(lambda t: ops.l2_to_reference(t, np.array(reference), lam), theta)
    v.check({"penalty": penalty, "grad": grad})
    assert ops.l2_to_reference(np.array(theta), np.array(reference), lam) == pytest.approx(0.125)


# -- probabilities -------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-098")
def test_cross_entropy_of_probabilities() -> None:
    v = vector("der-ce-prob-grad")
    A, P = np.array(v.inputs["A"], dtype=float), v.inputs["P"]
    loss, grad = run(ops.cross_entropy_probs, P, targets=A)
    v.check(grad)
    assert loss == pytest.approx(math.log(2))
    A = np.array([0.2, 0.5, 0.3])
    loss, grad = run(ops.cross_entropy_probs, P, targets=A)
    assert loss == pytest.approx(-(A * np.log(P)).sum())
    np.testing.assert_allclose(grad, -A / P)
    v = vector("004-3.11-selfentropy")
    v.check(ops.cross_entropy_probs(np.array(v.inputs["q"]), targets=v.inputs["p"]))


@pytest.mark.requirement("R-099", "R-110")
def test_loss_of_a_confidence() -> None:
    """Only the probability of the true class matters: dear at 1 %, hardly cheaper from 90 % to 99 %."""

    def loss(p: Any) -> Any:
        p = np.asarray(p, dtype=np.float64)
        return ops.cross_entropy_probs(
            np.stack([1 - p, p], axis=-1), targets=np.ones(p.shape, int), reduction="none"
        )

    for id in ["dog", *(f"table-{p}" for p in (1, 10, 25, 50, 70, 90, 99)), "story"]:
        v = vector(f"004-3.10-{id}")
        v.check(loss(v.inputs["p"]))
    v = vector("004-3.10-gaps")
    v.check([loss(a) - loss(b) for a, b in v.inputs["pairs"]])
    v = vector("004-13.9.1.3-losses")
    v.check(loss(v.inputs["p"]))
    v = vector("004-13.9.1.5-losses")
    good, bad = loss(v.inputs["p"])
    v.check({"loss": [good, bad], "ratio": bad / good})


def test_zero_times_log_zero_is_zero() -> None:
    P = [[0.0, 1.0, 0.0]]
    for targets in (np.array([1]), np.array([[0.0, 1.0, 0.0]])):
        with np.errstate(all="raise"):
            loss, grad = run(ops.cross_entropy_probs, P, targets=targets)
        assert loss == 0
        np.testing.assert_array_equal(grad, [[0, -1, 0]])


@pytest.mark.requirement("R-102")
def test_binary_cross_entropy() -> None:
    v = vector("004-5.3.2-bce")
    p, t = np.array(v.inputs["pred"]), v.inputs["target"]
    each = ops.binary_cross_entropy(p, targets=t, reduction="none")
    total = ops.binary_cross_entropy(p, targets=t, reduction="sum")
    v.check({"logs": -each, "sum": total, "mean": ops.binary_cross_entropy(p, targets=t)})


@pytest.mark.requirement("R-102")
def test_binary_cross_entropy_from_logits() -> None:
    v = vector("der-bce-logit")
    z, t = np.array(v.inputs["z"]), np.array(v.inputs["y"])
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        each, grad = run(ops.binary_cross_entropy_with_logits, z, targets=t, reduction="none")
    v.check(each)
    np.testing.assert_allclose(grad, [1 / (1 + math.exp(-0.2)) - 1, 1, -1], rtol=1e-12)
    z = np.linspace(-5, 5, 7)
    soft = np.linspace(0, 1, 7)
    np.testing.assert_allclose(
        ops.binary_cross_entropy_with_logits(z, targets=soft),
        ops.binary_cross_entropy(1 / (1 + np.exp(-z)), targets=soft),
        rtol=1e-12,
    )


def test_binary_edges() -> None:
    with np.errstate(all="raise"):
        loss, grad = run(ops.binary_cross_entropy, [0.0, 1.0], targets=[0, 1], reduction="none")
    np.testing.assert_array_equal(loss, [0, 0])
    np.testing.assert_array_equal(grad, [1, -1])
    assert ops.binary_cross_entropy(np.array([1.0]), targets=[0]) == INF


def test_kl_divergence() -> None:
    v = vector("004-3.11-kl")
    p, q = np.array(v.inputs["p"]), np.array(v.inputs["q"])
    cross = ops.cross_entropy_probs(q, targets=p)
    v.check({"H": ops.cross_entropy_probs(p, targets=p), "CE": cross, "KL": ops.kl_divergence(p, q)})
    np.testing.assert_allclose(ops.kl_divergence_logits(np.log(p), np.log(q) + 7), ops.kl_divergence(p, q))


def test_kl_divergence_edges() -> None:
    p, q = [0.0, 1.0, 0.0], [0.25, 0.5, 0.25]
    with np.errstate(all="raise"):
        loss, dp, dq = run(ops.kl_divergence, p, q)
    assert loss == pytest.approx(math.log(2))
    np.testing.assert_allclose(dp, [0, math.log(2) + 1, 0])
    np.testing.assert_allclose(dq, [0, -2, 0])
    assert ops.kl_divergence(np.array(q), np.array(p)) == INF
    with np.errstate(all="raise"):
        masked, da, db = run(ops.kl_divergence_logits, [0.0, 1.0, -INF], [1.0, 0.0, -INF])
    assert masked > 0 and da[2] == db[2] == 0 and np.isfinite([*da, *db]).all()
    far = ops.kl_divergence_logits(np.array([0.0, 1e4]), np.array([1e4, 0.0]))
    assert far == 1e4, "in logarithms nothing is lost, where q itself is 0"


@given(st.integers(0, 999))
def test_kl_from_logits_and_from_probabilities(seed: int) -> None:
    a, b = np.random.default_rng(seed).normal(size=(2, 3, 4))
    loss, da, db = run(ops.kl_divergence_logits, a, b)
    other, *grads = run(lambda x, y: ops.kl_divergence(ops.softmax(x), ops.softmax(y)), a, b)
    np.testing.assert_allclose(loss, other, rtol=1e-9)
    np.testing.assert_allclose([da, db], grads, atol=1e-12)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: ops.cross_entropy_probs(np.array([2.0, -1.0]), targets=0), DataError, "values from -1 to 2"),
        (lambda: ops.binary_cross_entropy(np.array([1.5]), targets=[1]), DataError, "values from 1.5 to 1.5"),
        (lambda: ops.binary_cross_entropy(np.array([0.5]), targets=[3]), DataError, "values from 3 to 3"),
        (lambda: ops.binary_cross_entropy(np.array([0.5]), targets=[0, 1]), ShapeError, "shape (2,)"),
        (lambda: ops.kl_divergence(np.ones(2), np.ones(3)), ShapeError, "p has shape (2,), q has (3,)"),
        (lambda: ops.kl_divergence(np.ones(2), -np.ones(2)), DataError, "kl_divergence: q: values from -1"),
        (lambda: ops.kl_divergence_logits(np.ones(()), np.ones(())), ShapeError, "at least one axis"),
        (lambda: ops.mse(np.ones(2), np.ones(2), reduction="total"), ConfigError, "reduction is 'total'"),
    ],
)
def test_bad_input(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        call()


# -- what a loss is ------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-115")
@given(st.integers(0, 10_000), st.floats(0.01, 50))
def test_every_loss_is_one_number_of_at_least_0(seed: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    a, b = size * rng.normal(size=(2, 3, 4))
    p, q = ops.softmax(a), ops.softmax(b)
    ids, binary = rng.integers(0, 4, size=3), rng.integers(0, 2, size=(3, 4))
    losses = [
        ops.mse(a, b),
        ops.mae(a, b),
        ops.huber(a, b),
        ops.cross_entropy(a, targets=ids),
        ops.cross_entropy(a, targets=q, label_smoothing=0.1),
        ops.cross_entropy_probs(p, targets=ids),
        ops.cross_entropy_probs(p, targets=q),
        ops.binary_cross_entropy(p, targets=binary),
        ops.binary_cross_entropy_with_logits(a, targets=binary),
        ops.kl_divergence(p, q),
        ops.kl_divergence_logits(a, b),
        ops.l2_to_reference(a, b, 0.1),
    ]
    for loss in losses:
        assert loss.shape == () and loss >= -1e-12
    certain = [p[np.arange(3), ids].min(), p[q > 0].min(), np.where(binary, p, 1 - p).min(), q[p > 0].min()]
    for loss, smallest in zip([losses[5], losses[6], losses[7], losses[9]], certain, strict=True):
        assert np.isfinite(loss) == (smallest > 0), "infinite only where a target has probability 0"
    assert np.isfinite([*losses[:5], losses[8], *losses[10:]]).all()


@pytest.mark.requirement("R-104")
def test_negative_log_likelihood() -> None:
    v = vector("der-emma-mle-nll")
    counts = np.array(v.inputs["counts"], dtype=np.float64)
    ids = [".aem".index(c) for c in v.inputs["word"]]
    got: dict[str, Any] = {}
    for smoothing, suffix in ((0, ""), (1, "_smoothed_1")):
        P = (counts + smoothing) / (counts + smoothing).sum(axis=1, keepdims=True)
        nll = {r: ops.cross_entropy_probs(P[ids[:-1]], targets=ids[1:], reduction=r) for r in ("sum", "mean")}
        got |= {f"P{suffix}": P, f"nll_sum{suffix}": nll["sum"], f"nll_mean{suffix}": nll["mean"]}
        likelihood = P[ids[:-1], ids[1:]].prod()
        assert math.exp(-nll["sum"]) == pytest.approx(likelihood, rel=1e-12)
    v.check(got)


@pytest.mark.requirement("R-105")
def test_minimal_cross_entropy_is_maximal_likelihood() -> None:
    """A loaded die: both criteria choose the same model, and descent on the logits finds the frequencies."""
    rng = np.random.default_rng(0)
    throws = rng.choice(3, size=200, p=[0.5, 0.3, 0.2])
    shares = np.linspace(0.02, 0.96, 48)
    grid = np.array([(a, b, 1 - a - b) for a in shares for b in shares if a + b < 0.99])
    log_likelihood = np.log(grid[:, throws]).sum(axis=1)
    loss = [ops.cross_entropy_probs(np.tile(p, (200, 1)), targets=throws) for p in grid]
    assert np.argmin(loss) == np.argmax(log_likelihood)

    logits = cr.Tensor(np.zeros(3), requires_grad=True)
    spread = np.zeros((200, 1))
    descend([logits], lambda: ops.cross_entropy(logits + spread, targets=throws), steps=200, lr=2.0)
    frequencies = np.bincount(throws) / 200
    np.testing.assert_allclose(ops.softmax(logits.data), frequencies, atol=1e-9)


@pytest.mark.requirement("R-114")
def test_regression_wants_squared_error() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 3))
    y = x @ [[1.0], [-2.0], [0.5]] + 0.7 + 0.3 * rng.normal(size=(200, 1))
    W, b = (cr.Tensor(np.zeros(s), requires_grad=True) for s in ((1, 3), (1,)))
    descend([W, b], lambda: ops.mse(ops.linear(x[:100], W, b), y[:100]), steps=100, lr=0.1)
    held_out = ops.mse(ops.linear(x[100:], W, b).data, y[100:])
    predict_the_mean = ops.mse(np.full((100, 1), y[:100].mean()), y[100:])
    assert held_out < 0.1 * predict_the_mean


@pytest.mark.requirement("R-114")
def test_classification_wants_cross_entropy() -> None:
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 3, size=200)
    x = rng.normal(size=(200, 2)) + 2 * np.array([[0, 1], [1, -1], [-1, -1]])[labels]
    W, b = (cr.Tensor(np.zeros(s), requires_grad=True) for s in ((3, 2), (3,)))
    descend(
        [W, b], lambda: ops.cross_entropy(ops.linear(x[:100], W, b), targets=labels[:100]), steps=100, lr=0.5
    )
    held_out = ops.cross_entropy(ops.linear(x[100:], W, b).data, targets=labels[100:])
    uniform = ops.cross_entropy(np.zeros((100, 3)), targets=labels[100:])
    assert uniform == pytest.approx(math.log(3))
    assert held_out < 0.5 * uniform


# -- what is reported ----------------------------------------------------------------------------------------


@pytest.mark.requirement("R-109")
def test_perplexity() -> None:
    v = vector("der-perplexity")
    logits = np.log([[p, 1 - p] for p in v.inputs["p"]])
    mean = ops.cross_entropy(logits, targets=np.zeros(4, int))
    total = ops.cross_entropy(logits, targets=np.zeros(4, int), reduction="sum")
    v.check({"sum": total, "mean": mean, "ppl": perplexity(mean)})
    v = vector("004-13.1.3-ppl10")
    v.check(perplexity(-np.log(v.inputs["p"]).mean()))
    assert perplexity(0.0) == 1
