"""Normalisation at the level of layers: modes, running statistics, folding, depth."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn, ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, ShapeError
from chainrule.nn.init import kaiming_normal, normal
from chainrule.optim import Adam
from tests.vectors import vector

RNG = np.random.default_rng(0)


def batchnorm_of_the_vector(momentum: float = 0.1) -> tuple[nn.Linear, nn.BatchNorm, Array, Array]:
    """The linear layer and the batch norm of `der-batchnorm`, its input and upstream gradient."""
    v = vector("der-batchnorm").inputs
    W = np.array(v["W"]).T  # printed (in, out)
    linear, norm = (
        nn.Linear(2, 2).to(np.float64),
        nn.BatchNorm(2, eps=v["eps"], momentum=momentum).to(np.float64),
    )
    linear.load({"weight": W, "bias": np.array(v["b"])})
    norm.weight.data, norm.bias.data = v["gamma"], v["beta"]
    return linear, norm, np.array(v["X"]), np.array(v["grad"])


@pytest.mark.requirement("R-155")
def test_batch_norm_vector_and_the_zero_gradient_of_a_bias_before_it() -> None:
    v = vector("der-batchnorm")
    linear, norm, X, grad = batchnorm_of_the_vector()
    hidden = linear(X)
    hidden.retain_grad()
    Y = norm(hidden)
    Y.backward(grad)
    v.check(
        {
            "Y": Y,
            "dH": hidden.grad,
            "dgamma": norm.weight.grad,
            "dbeta": norm.bias.grad,
            "db": linear.bias.grad,
        },
        keys=["Y", "dH", "dgamma", "dbeta", "db"],
    )


@pytest.mark.requirement("R-155")
def test_an_mlp_with_batch_norm_has_no_biases_before_it() -> None:
    net = nn.MLP([3, 4, 4, 2], norm="batch")
    assert [layer.bias is None for layer in net.layers] == [True, True, False]


@pytest.mark.requirement("R-158")
def test_running_statistics_vector() -> None:
    v = vector("der-batchnorm-running")
    linear, norm, X, _ = batchnorm_of_the_vector(v.inputs["momentum"])
    norm(linear(X))
    v.check({"running_mean": norm.running_mean, "running_var": norm.running_var})


@pytest.mark.requirement("R-158")
def test_running_statistics_follow_the_data_and_rest_in_evaluation() -> None:
    norm = nn.BatchNorm(2)
    for step in range(300):
        batch = np.random.default_rng(step).normal([3.0, -1.0], [2.0, 0.5], size=(64, 2))
        norm(batch.astype(np.float32))
    np.testing.assert_allclose(norm.running_mean, [3.0, -1.0], atol=0.2)
    np.testing.assert_allclose(norm.running_var, [4.0, 0.25], rtol=0.15)
    before = norm.state()
    norm.eval()(np.full((5, 2), 100.0, np.float32))
    for name, value in norm.state().items():
        np.testing.assert_array_equal(value, before[name])


@pytest.mark.requirement("R-157")
def test_one_example_depends_on_its_batch_in_training_only() -> None:
    norm = nn.BatchNorm(3)
    x = RNG.normal(size=(8, 3)).astype(np.float32)
    others = RNG.normal(size=(8, 3)).astype(np.float32)
    mixed = np.concatenate([x[:1], others[1:]])
    order = np.random.default_rng(1).permutation(8)

    assert np.abs(norm(x).numpy()[0] - norm(mixed).numpy()[0]).max() > 1e-3
    np.testing.assert_allclose(norm(x[order]).numpy(), norm(x).numpy()[order], rtol=1e-5, atol=1e-6)

    norm.eval()
    np.testing.assert_array_equal(norm(x).numpy()[0], norm(mixed).numpy()[0])
    np.testing.assert_array_equal(norm(x[order]).numpy(), norm(x).numpy()[order])
    np.testing.assert_array_equal(norm(x[:1]).numpy(), norm(x).numpy()[:1])  # a single example


def test_the_noise_of_the_batch_reaches_every_example() -> None:
    norm = nn.BatchNorm(3)
    data = RNG.normal(size=(100, 3)).astype(np.float32)
    outputs = []
    for step in range(2):  # the batch is a pure function of (seed, step): it can be drawn again
        rows = cr.random.generator("rows", step, seed=0).choice(np.arange(1, 100), 15, replace=False)
        again = cr.random.generator("rows", step, seed=0).choice(np.arange(1, 100), 15, replace=False)
        np.testing.assert_array_equal(rows, again)
        outputs.append(norm(data[[0, *rows]]).numpy()[0])
    assert np.abs(outputs[0] - outputs[1]).max() > 1e-2


@pytest.mark.requirement("R-160")
def test_folding_vector() -> None:
    v = vector("der-batchnorm-fold")
    linear, norm, X, _ = batchnorm_of_the_vector(v.inputs["momentum"])
    norm(linear(X))
    folded = norm.eval().fold_into(linear)
    v.check({"W_new": folded.weight.data.T, "b_new": folded.bias.data, "Y": folded(X)})
    np.testing.assert_allclose(folded(X).numpy(), norm(linear(X)).numpy(), rtol=1e-12)


@pytest.mark.requirement("R-160")
def test_folding_a_layer_without_bias() -> None:
    linear, norm = nn.Linear(3, 4, bias=False), nn.BatchNorm(4)
    x = RNG.normal(size=(20, 3)).astype(np.float32)
    norm(linear(x))
    folded = norm.eval().fold_into(linear)
    assert folded.weight.dtype == np.float32
    np.testing.assert_allclose(folded(x).numpy(), norm(linear(x)).numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.requirement("R-161")
class TestGroupAndInstance:
    x = RNG.normal(size=(3, 7, 6)) * 5 + 2

    def test_group_norm_normalises_each_group_of_each_example(self) -> None:
        y = nn.GroupNorm(2, 6).to(np.float64)(self.x).numpy().reshape(3, 7, 2, 3)
        np.testing.assert_allclose(y.mean(axis=(1, 3)), 0, atol=1e-12)
        np.testing.assert_allclose(y.var(axis=(1, 3)), 1, atol=1e-5)
        assert np.abs(y.mean(axis=1)).max() > 0.01  # not each feature

    def test_one_group_of_one_position_is_layer_norm(self) -> None:
        x = self.x[:, 0]
        got, want = (layer.to(np.float64)(x).numpy() for layer in (nn.GroupNorm(1, 6), nn.LayerNorm(6)))
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)

    def test_instance_norm_normalises_each_feature_over_its_positions(self) -> None:
        y = nn.InstanceNorm(6).to(np.float64)(self.x).numpy()
        np.testing.assert_allclose(y.mean(axis=1), 0, atol=1e-12)
        np.testing.assert_allclose(y.var(axis=1), 1, atol=1e-5)

    def test_the_affine_part_is_learned(self) -> None:
        layer = nn.InstanceNorm(6).to(np.float64)
        layer.weight.data, layer.bias.data = np.full(6, 3.0), np.full(6, -1.0)
        y = layer(self.x).numpy()
        np.testing.assert_allclose(y.mean(axis=1), -1, atol=1e-12)

    @pytest.mark.parametrize("kind", ["native", "reference"])
    def test_a_constant_group_gives_0_and_an_overflow_is_not_hidden(self, kind: str) -> None:
        x = np.full((2, 40, 60), 123456.7, np.float32)
        x[1] = np.geomspace(1e18, 1e30, 2400, dtype=np.float32).reshape(40, 60)
        with cr.backend(kind):
            y = nn.GroupNorm(2, 60)(x).numpy()
        assert (y[0] == 0).all() and np.isnan(y[1]).all()

    def test_bad_groups_are_refused(self) -> None:
        with pytest.raises(ConfigError, match=r"GroupNorm: 6 features in 4 groups \(must divide\)"):
            nn.GroupNorm(4, 6)


@pytest.mark.requirement("R-163")
def test_layer_norm_has_no_running_statistics_and_sees_one_row_only() -> None:
    norm = nn.LayerNorm(5)
    assert {name: value.shape for name, value in norm.state().items()} == {"weight": (5,), "bias": (5,)}
    x = RNG.normal(size=(3, 5)).astype(np.float32)
    changed = x.copy()
    changed[1:] = 9
    np.testing.assert_array_equal(norm(x).numpy()[0], norm(changed).numpy()[0])


def test_wrong_sizes_and_settings_are_refused() -> None:
    for layer in (nn.LayerNorm(4), nn.RMSNorm(4), nn.BatchNorm(4), nn.GroupNorm(2, 4)):
        with pytest.raises(ShapeError):
            layer(np.ones((2, 6), np.float32))
    with pytest.raises(ConfigError, match=r"BatchNorm: momentum is 1\.5"):
        nn.BatchNorm(3, momentum=1.5)


@pytest.mark.requirement("R-169")
def test_without_normalisation_activations_drift_over_depth() -> None:
    """50 residual ReLU layers of width 64."""
    x = np.random.default_rng(2).normal(size=(32, 64)).astype(np.float32)
    cr.seed(3)
    plain = normed = Tensor(x)
    for _ in range(50):
        layer, norm = nn.Linear(64, 64, init=kaiming_normal), nn.LayerNorm(64)
        plain = plain + ops.relu(layer(plain))
        normed = norm(normed + ops.relu(layer(normed)))
    assert plain.numpy().std() > 1000 * x.std()
    assert 0.5 <= normed.numpy().std() <= 2


TEXT = "to be or not to be that is the question whether tis nobler in the mind to suffer "
SYMBOLS = sorted(set(TEXT))


class TinyLM(nn.Layer):
    """A character model of two blocks; pre-norm ends in one more norm."""

    def __init__(self, norm: str) -> None:
        small = partial(normal, std=0.1)
        self.wte = nn.Embedding(len(SYMBOLS), 16, init=small)
        self.wpe = nn.LearnedPositions(16, 16, init=small)
        self.h = [nn.TransformerBlock(16, 2, norm=norm, causal=True, activation="gelu") for _ in range(2)]
        self.ln_f = nn.LayerNorm(16) if norm == "pre" else None
        self.head = nn.Linear(16, len(SYMBOLS))

    def forward(self, ids: Array, targets: Array) -> Tensor:
        hidden = self.wpe(self.wte(ids))
        for block in self.h:
            hidden = block(hidden)
        return ops.cross_entropy(
            self.head(hidden if self.ln_f is None else self.ln_f(hidden)), targets=targets
        )


@pytest.mark.requirement("R-168")
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_both_placements_pass_the_gradient_check_and_train(norm: str) -> None:
    ids = np.array([SYMBOLS.index(c) for c in TEXT])
    windows = np.stack([ids[i : i + 17] for i in range(0, 64, 8)])  # (B, T + 1)
    batch = windows[:, :-1], windows[:, 1:]
    cr.seed(4)
    model = TinyLM(norm).to(np.float64)
    cr.gradcheck_model(model.parameters(), lambda: model(batch[0][:2, :5], batch[1][:2, :5]))
    model.to(np.float32)
    optimizer = Adam(model.parameters(), 0.01)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = model(*batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]


def test_unknown_placement_is_refused() -> None:
    with pytest.raises(ConfigError, match="norm 'middle'"):
        nn.TransformerBlock(4, 2, norm="middle")
