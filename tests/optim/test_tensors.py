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


def turned() -> cr.Tensor:
    """A leaf whose rows are columns in memory, with such a gradient too."""
    leaf = cr.Tensor(np.arange(6.0).reshape(2, 3)).T
    leaf.requires_grad = True
    (leaf.T * np.ones((2, 3), np.float32)).sum().backward()
    assert not leaf.array.flags.c_contiguous
    return leaf


def test_a_leaf_in_another_order_of_memory_moves() -> None:
    leaf = turned()
    before = leaf.array.copy()
    optim.SGD([leaf], 0.5).step()
    np.testing.assert_array_equal(leaf.data, before - 0.5)


def test_gradients_in_another_order_of_memory_are_clipped() -> None:
    leaf = cr.Tensor(np.ones((2, 3)), requires_grad=True)
    leaf.grad = np.ones((3, 2)).T
    assert not leaf.grad.flags.c_contiguous
    assert optim.clip_global_norm([leaf], 1.0) == pytest.approx(6**0.5)
    assert np.linalg.norm(leaf.grad) == pytest.approx(1.0)
    optim.clip_value([leaf], 0.1)
    assert leaf.grad.max() == pytest.approx(0.1)


def test_a_list_is_clipped_like_the_block() -> None:
    def clipped(make) -> np.ndarray:
        return np.concatenate([np.frombuffer(x, np.float32) for x in trained(make)])

    block = clipped(lambda net: optim.SGD(net.parameters(), 0.1))
    np.testing.assert_allclose(clipped(lambda net: optim.SGD(list(net.parameters()), 0.1)), block, rtol=1e-6)


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


def test_the_state_of_tensors_with_one_name_is_kept_apart() -> None:
    a, b = nn.Linear(2, 3), nn.Linear(4, 3)
    for layer in (a, b):
        layer(cr.ones(1, layer.weight.shape[1])).sum().backward()
    optimizer = optim.Adam([*a.parameters(), *b.parameters()])
    optimizer.step()
    state = optimizer.state()
    assert len(state) == 1 + 2 * 4
    again = optim.Adam([*a.parameters(), *b.parameters()])
    again.load(state)
    for slot, flat in optimizer.arrays.items():
        np.testing.assert_array_equal(again.arrays[slot], flat)


def test_a_group_with_the_rate_of_all_takes_exactly_that_rate() -> None:
    w = cr.zeros(1, dtype=np.float64, requires_grad=True)
    w.sum().backward()
    optim.SGD([{"params": w, "weight_decay": 0.0}], 0.7).step(lr=0.1)  # 0.1 * 0.7 / 0.7 is less than 0.1
    assert w.item() == -0.1


@pytest.mark.parametrize(
    "params, message",
    [
        ([], "got no parameters"),
        (nn.Linear(2, 2), r"got a Linear \(must be tensors: model\.parameters\(\)"),
        ([{"params": [cr.ones(1, requires_grad=True)], "lr": "high"}], "lr of a group is 'high'"),
        ([3], "got an int among the parameters"),
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


def test_a_step_between_forward_and_backward_is_noticed() -> None:
    leaf = cr.Tensor(np.ones(3), requires_grad=True)
    (leaf * 2).sum().backward()
    pending = (leaf * leaf).sum()
    optim.SGD([leaf], 0.5).step()
    with pytest.raises(cr.GraphError, match="changed"):
        pending.backward()


def test_a_group_keeps_its_ratio_to_the_rate_of_a_schedule() -> None:
    """Of one axis, and so without decay, too."""
    one, other = (cr.Tensor(np.zeros(3, np.float32), requires_grad=True) for _ in range(2))
    optimizer = optim.SGD([{"params": [one]}, {"params": [other], "lr": 0.02}], 0.1)
    (one.sum() + other.sum()).backward()
    optimizer.step(0.05)
    np.testing.assert_allclose(one.data, -0.05)
    np.testing.assert_allclose(other.data, -0.01)
