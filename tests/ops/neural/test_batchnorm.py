"""Batch normalization: training, evaluation, running statistics, folding."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import ops
from chainrule.errors import ConfigError, DataError, ShapeError
from chainrule.ops import batchnorm, batchnorm_eval, fold_batchnorm, groupnorm, update_running
from chainrule.ops.neural.batchnorm import update_running_in_place
from chainrule.random import generator
from tests.vectors import vector


def inputs(id: str) -> tuple[np.ndarray, ...]:
    v = vector(id).inputs
    return tuple(np.array(v[name]) for name in ("X", "W", "b", "gamma", "beta", "grad"))


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.requirement("R-154", "R-155", "R-156", "R-359")
def test_after_a_linear_layer() -> None:
    v = vector("der-batchnorm")
    X, *arrays, grad = inputs(v.id)
    W, b, gamma, beta = (cr.Tensor(a, requires_grad=True) for a in arrays)
    H = ops.linear(X, W, b, layout="in_out")
    H.retain_grad()
    Y, mean, var = batchnorm(H, gamma, beta, eps=v.inputs["eps"])
    Y.backward(grad)
    v.check(
        {
            "Y": Y,
            "mean": mean.data,
            "var_biased": var.data,
            "dH": H.grad,
            "dgamma": gamma.grad,
            "dbeta": beta.grad,
            "db": b.grad,
        }
    )


@pytest.mark.requirement("R-155")
@pytest.mark.parametrize("eps", [0.0, 1e-5, 1.0])
def test_a_bias_before_it_changes_nothing(eps: float) -> None:
    X, W, gamma, beta = normal(8, 3), normal(2, 3, seed=1), normal(2, seed=2), normal(2, seed=3)
    b = cr.Tensor(normal(2, seed=4), requires_grad=True)
    y, _, _ = batchnorm(ops.linear(X, W, b), gamma, beta, eps=eps)
    y.backward(normal(8, 2, seed=5))
    np.testing.assert_allclose(b.grad, 0, atol=1e-13)
    np.testing.assert_allclose(y.data, batchnorm(ops.linear(X, W), gamma, beta, eps=eps)[0], rtol=1e-12)


@pytest.mark.requirement("R-154")
def test_each_feature_has_mean_beta_and_deviation_gamma() -> None:
    gamma, beta = np.array([1.5, -0.8, 2.0]), np.array([0.2, -0.1, 3.0])
    x = 5 + 3 * normal(4, 6, 3)
    y, mean, var = batchnorm(x, gamma, beta, eps=0.0)
    np.testing.assert_allclose(y.mean(axis=(0, 1)), beta, rtol=1e-12)
    np.testing.assert_allclose(y.std(axis=(0, 1)), np.abs(gamma), rtol=1e-12)
    np.testing.assert_allclose(mean, x.mean(axis=(0, 1)), rtol=1e-13)
    np.testing.assert_allclose(var, x.var(axis=(0, 1)), rtol=1e-12)


@pytest.mark.requirement("R-157")
def test_training_depends_on_the_batch_and_evaluation_does_not() -> None:
    x, gamma, beta = normal(6, 3), np.ones(3), np.zeros(3)
    statistics = {"mean": normal(3, seed=1), "var": np.array([0.5, 1.0, 2.0])}
    trained, evaluated = batchnorm(x, gamma, beta)[0], batchnorm_eval(x, gamma, beta, **statistics)

    order = np.array([3, 1, 5, 0, 2, 4])
    np.testing.assert_allclose(batchnorm(x[order], gamma, beta)[0], trained[order], rtol=1e-12)
    np.testing.assert_array_equal(batchnorm_eval(x[order], gamma, beta, **statistics), evaluated[order])

    other = np.vstack([x[:1], 10 * normal(5, 3, seed=2)])  # the same first example among others
    assert np.abs(batchnorm(other, gamma, beta)[0][0] - trained[0]).min() > 0.01
    np.testing.assert_array_equal(batchnorm_eval(other, gamma, beta, **statistics)[0], evaluated[0])
    np.testing.assert_array_equal(batchnorm_eval(x[:1], gamma, beta, **statistics)[0], evaluated[0])
    np.testing.assert_array_equal(batchnorm_eval(x[0], gamma, beta, **statistics), evaluated[0])


@pytest.mark.requirement("R-159")
def test_the_noise_of_the_batch_is_repeatable() -> None:
    """One example differs between two random batches; seed and ids of a batch bring its output back."""
    data, gamma, beta = normal(100, 3), np.ones(3), np.zeros(3)

    def output_of_example_0(seed: int, step: int) -> tuple[list[int], np.ndarray]:
        mates = generator("batches", step, seed=seed).choice(np.arange(1, 100), size=7, replace=False)
        ids = [0, *mates.tolist()]
        return ids, batchnorm(data[ids], gamma, beta)[0][0]

    ids, first = output_of_example_0(seed=5, step=1)
    _, second = output_of_example_0(seed=5, step=2)
    assert np.abs(first - second).min() > 1e-3
    np.testing.assert_array_equal(output_of_example_0(seed=5, step=1)[1], first)
    np.testing.assert_array_equal(batchnorm(data[ids], gamma, beta)[0][0], first)


@pytest.mark.requirement("R-158")
def test_running_statistics() -> None:
    v = vector("der-batchnorm-running")
    X, W, b, gamma, beta, _ = inputs(v.id)
    _, mean, var = batchnorm(X @ W + b, gamma, beta, eps=v.inputs["eps"])
    running = update_running(np.zeros(2), np.ones(2), mean, var, momentum=v.inputs["momentum"])
    v.check(dict(zip(("running_mean", "running_var"), running, strict=True)))
    assert update_running.__kwdefaults__["momentum"] == v.inputs["momentum"]


@pytest.mark.requirement("R-158")
def test_running_statistics_converge_to_those_of_the_data() -> None:
    rng = np.random.default_rng(0)
    mean, var = np.zeros(2, np.float32), np.ones(2, np.float32)
    for _ in range(300):
        x = (rng.normal(size=(64, 2)) * [2.0, 0.5] + [3.0, -1.0]).astype(np.float32)
        _, m, v = batchnorm(x, np.ones(2, np.float32), np.zeros(2, np.float32))
        mean, var = update_running(mean, var, m, v, unbiased_rows=64)
    np.testing.assert_allclose(mean, [3, -1], atol=0.2)
    np.testing.assert_allclose(var, [4, 0.25], rtol=0.2)
    assert mean.dtype == var.dtype == np.float32


def test_unbiased_variance() -> None:
    x = normal(5, 3)
    _, mean, var = batchnorm(x, np.ones(3), np.zeros(3))
    _, unbiased = update_running(mean, var, mean, var, momentum=1.0, unbiased_rows=5)
    np.testing.assert_allclose(unbiased, x.var(axis=0, ddof=1), rtol=1e-12)


@pytest.mark.requirement("R-160")
def test_folding_into_the_linear_layer() -> None:
    v = vector("der-batchnorm-fold")
    X, W, b, gamma, beta, _ = inputs(v.id)
    eps = v.inputs["eps"]
    _, m, s = batchnorm(X @ W + b, gamma, beta, eps=eps)
    mean, var = update_running(np.zeros(2), np.ones(2), m, s, momentum=v.inputs["momentum"])
    W_new, b_new = fold_batchnorm(W.T, b, gamma, beta, mean, var, eps)
    Y = ops.linear(X, W_new, b_new)
    v.check({"W_new": W_new.T, "b_new": b_new, "Y": Y})
    np.testing.assert_allclose(
        Y, batchnorm_eval(X @ W + b, gamma, beta, mean=mean, var=var, eps=eps), rtol=1e-12
    )


@pytest.mark.requirement("R-160")
def test_folding_without_a_bias() -> None:
    X, W, gamma, beta, mean = (normal(*s, seed=i) for i, s in enumerate([(5, 4), (3, 4), (3,), (3,), (3,)]))
    var = np.array([0.5, 1.0, 4.0])
    folded = ops.linear(X, *fold_batchnorm(W, None, gamma, beta, mean, var))
    np.testing.assert_allclose(folded, batchnorm_eval(X @ W.T, gamma, beta, mean=mean, var=var), rtol=1e-12)


def test_a_batch_of_one_gives_beta() -> None:
    y, _, var = batchnorm(normal(1, 3), np.ones(3), np.arange(3.0))
    np.testing.assert_array_equal(y, [[0, 1, 2]])
    np.testing.assert_array_equal(var, 0)


@pytest.mark.requirement("R-161")
def test_group_and_instance_normalization() -> None:
    x, gamma, beta = normal(2, 5, 6), normal(6, seed=1), normal(6, seed=2)
    y = groupnorm(x, gamma, beta, groups=3, eps=0.1)
    part = x[1, :, 2:4]  # second example, second group: normalized by itself
    want = (part - part.mean()) / np.sqrt(part.var() + 0.1) * gamma[2:4] + beta[2:4]
    np.testing.assert_allclose(y[1, :, 2:4], want, rtol=1e-12)
    instance = groupnorm(x, gamma, beta, groups=6)
    channel = x[0, :, 4]
    want = (channel - channel.mean()) / np.sqrt(channel.var() + 1e-5) * gamma[4] + beta[4]
    np.testing.assert_allclose(instance[0, :, 4], want, rtol=1e-12)
    cr.gradcheck(lambda *args: groupnorm(*args, groups=2), x, gamma, beta)
    one_position = groupnorm(x[:, 0], gamma, beta, groups=1)
    np.testing.assert_allclose(one_position, ops.layernorm(x[:, 0], gamma, beta), rtol=1e-12)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: batchnorm(x, np.ones(2), np.ones(3)), ShapeError, "batchnorm: x (4, 3), gamma (2,)"),
        (lambda x: batchnorm(x[:0], np.ones(3), np.ones(3)), DataError, "batchnorm: x has shape (0, 3)"),
        (
            lambda x: batchnorm(x, np.ones(3), np.ones(3), rows=np.array([5])),
            DataError,
            "batchnorm: rows is 5 (must be from 1 to 4)",
        ),
        (
            lambda x: batchnorm(x, np.ones(3), np.ones(3), rows=2),
            ConfigError,
            "batchnorm: rows have shape () and dtype int64 (must be one integer, of shape (1,))",
        ),
        (
            lambda x: batchnorm_eval(x, np.ones(3), np.ones(3), mean=np.ones(2), var=np.ones(3)),
            ShapeError,
            "batchnorm_eval: x (4, 3), gamma (3,), beta (3,), mean (2,), var (3,) (mean must",
        ),
        (lambda x: update_running(0, 1, 0, 1, momentum=2), ConfigError, "momentum is 2 (must be from 0"),
        (lambda x: update_running(0, 1, 0, 1, unbiased_rows=1), DataError, "1 rows have no unbiased"),
        (lambda x: groupnorm(x, np.ones(3), np.ones(3), groups=2), ShapeError, "3 channels in 2 groups"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        call(np.ones((4, 3)))


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_rows_after_the_batch_count_nothing(backend: str) -> None:
    """Of whatever is in them, also of what is not finite."""
    x, dy = normal(7, 5).astype(np.float32), normal(7, 5, seed=1).astype(np.float32)
    x[4:], dy[4:] = np.nan, np.inf
    gamma, beta = normal(2, 5, seed=2).astype(np.float32)
    found = []
    with cr.backend(backend):
        for rows, n in ((np.array([4]), 7), (None, 4)):
            inputs = [cr.Tensor(a, requires_grad=True) for a in (x[:n], gamma, beta)]
            y, mean, var = batchnorm(*inputs, rows=rows)
            y.backward(dy[:n])
            found.append([y.numpy(), mean.numpy(), var.numpy(), *(np.asarray(each.grad) for each in inputs)])
    for whole, alone in zip(*found, strict=True):
        assert np.array_equal(whole[: len(alone)], alone) and not whole[len(alone) :].any()


def test_running_statistics_in_place() -> None:
    """The kernel has the bits of the formula."""
    mean, var, seen_mean, seen_var = normal(4, 37).astype(np.float32)
    expected = update_running(mean, var, seen_mean, seen_var, momentum=0.3)
    update_running_in_place(mean, var, seen_mean, seen_var, momentum=0.3)
    assert np.array_equal(mean, expected[0]) and np.array_equal(var, expected[1])
