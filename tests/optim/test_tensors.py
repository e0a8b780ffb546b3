"""Optimizers of lists of tensors and of groups: the same numbers as on the flat block, settings of their own."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn, optim


def model() -> nn.Sequential:
    cr.seed(5)
    return nn.Sequential(nn.Linear(3, 4), cr.ops.tanh, nn.Linear(4, 2))


def trained(make, clip: bool = True) -> list[bytes]:
    net = model()
    optimizer = make(net)
    for step in range(4):
        optimizer.zero_grad()
        x = cr.Tensor(np.random.default_rng(step).normal(size=(8, 3)).astype(np.float32))
        cr.ops.mse(net(x), x[:, :2]).backward()
        if clip:
            optim.clip_global_norm(optimizer.params, 0.1)
        optimizer.step()
    return [p.data.tobytes() for p in net.parameters()]


KINDS = [
    optim.AdamW,
    optim.Lion,
    lambda p: optim.SGD(p, 0.1, weight_decay=0.1),
    lambda p: optim.Momentum(p, 0.1),
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_gives_the_bits_of_the_block(kind) -> None:
    block = trained(lambda net: kind(net.parameters()), clip=False)
    assert trained(lambda net: kind(list(net.parameters())), clip=False) == block
    assert trained(lambda net: kind([{"params": list(net.parameters())}]), clip=False) == block


def test_groups_have_rates_and_decays_of_their_own() -> None:
    w, b = cr.ones(2, 2, requires_grad=True), cr.ones(2, requires_grad=True)
    optimizer = optim.SGD([{"params": [w], "lr": 1.0}, {"params": b, "weight_decay": 0.5}], lr=0.1)
    (w.sum() + b.sum()).backward()
    optimizer.step()
    assert w.data.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    np.testing.assert_allclose(b.data, 1 - 0.1 * 1.5)
    optimizer.step(lr=0.05)  # half the rate for all groups
    np.testing.assert_allclose(w.data, -0.5)
    assert optimizer.weight_decay == 0.0


def test_a_tensor_without_a_gradient_stays() -> None:
    a, b = cr.ones(2, requires_grad=True), cr.ones(2, requires_grad=True)
    optimizer = optim.Adam([a, b])
    a.sum().backward()
    optimizer.step()
    assert b.data.tolist() == [1.0, 1.0] and (a.data < 1).all()
    optimizer.zero_grad()
    assert a.grad is None


def test_state_comes_back() -> None:
    a = cr.ones(2, requires_grad=True)
    optimizer = optim.Adam([a])
    a.sum().backward()
    optimizer.step()
    again = optim.Adam([a])
    again.load_state_dict(optimizer.state_dict())
    assert again.steps == 1 and again.state_dict()["m.0"].tolist() == optimizer.state_dict()["m.0"].tolist()


@pytest.mark.parametrize(
    "params, message",
    [
        ([], "got no parameters"),
        ([3], "got a int among the parameters"),
        ([{"lr": 1.0}], "has no 'params'"),
        ([{"params": [cr.ones(1, requires_grad=True)], "lrr": 1.0}], "did you mean lr"),
        ([{"params": [cr.ones(1, requires_grad=True)], "lr": -1.0}], "at least 0"),
        ([cr.ones(1, requires_grad=True) * 2], "must be a leaf"),
        ([cr.ones(1, requires_grad=True), cr.ones(1, dtype=np.float64, requires_grad=True)], "dtypes"),
    ],
)
def test_wrong_parameters_are_refused(params, message: str) -> None:
    with pytest.raises(cr.ConfigError, match=message):
        optim.AdamW(params)


def test_a_group_takes_no_decay_where_the_optimizer_has_none() -> None:
    with pytest.raises(cr.ConfigError, match="'weight_decay' in a group"):
        optim.Adam([{"params": [cr.ones(1, requires_grad=True)], "weight_decay": 0.1}])
