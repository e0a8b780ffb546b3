"""Layers in a row and in a list, and the names that PyTorch uses."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), cr.ops.relu, nn.Linear(4, 2))


def test_sequential_calls_one_after_the_other() -> None:
    model, x = net(), cr.randn(5, 3)
    want = model[2](cr.ops.relu(model[0](x)))
    assert (model(x) == want).all() and len(model) == 3
    assert list(model.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert (copy.deepcopy(model)(x) == want).all()


def test_module_list_finds_parameters_and_iterates() -> None:
    layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    layers.append(nn.Linear(2, 1))
    assert len(layers) == 4 and layers[-1].weight.shape == (1, 2)
    assert [name for name, _ in layers.named_parameters()][-1] == "3.bias"
    with pytest.raises(cr.ShapeError, match="index 4 of 4"):
        layers[4]
    with pytest.raises(cr.ShapeError, match=r"index slice.* of 4 layers \(must be an integer from -4 to 3\)"):
        layers[1:]  # type: ignore[index]
    with pytest.raises(cr.ConfigError, match="must be a layer"):
        layers.append(3)  # type: ignore[arg-type]


def test_a_module_is_a_layer_and_parameters_are_tensors() -> None:
    assert nn.Module is nn.Layer and nn.Parameter is cr.Param
    model = net()
    assert all(isinstance(p, cr.Tensor) for p in model.parameters())
    assert sum(p.size for p in model.parameters()) == model.count() == 26


def test_the_gradients_of_a_part_are_zeroed_where_they_are() -> None:
    model = net()
    optimizer = cr.optim.SGD(model.parameters(), 0.1)
    model(cr.ones(1, 3)).sum().backward()
    model[0].zero_grad()
    assert not model[0].weight.grad.any() and (model[2].bias.grad == 1).all()
    optimizer.step()
    model.zero_grad()
    assert not model.parameters().grad.any()


def test_state_dict_round_trip() -> None:
    a, b = net(), net()
    b.load_state_dict(a.state_dict())
    x = cr.randn(2, 3)
    assert (a(x) == b(x)).all()


def test_float64_into_a_float32_layer_says_how_to_cast() -> None:
    with pytest.raises(cr.ConfigError, match=r"is float64, the parameter float32 .*x\.astype\(np\.float32\)"):
        net()(cr.Tensor(np.ones((2, 3))))


@pytest.mark.parametrize(
    "name, meant", [("ReLU", "cr.ops.relu"), ("MSELoss", "cr.ops.mse"), ("functional", "cr.ops")]
)
def test_names_that_are_elsewhere(name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=rf"cr\.nn has no '{name}' \(here: {meant}"):
        getattr(nn, name)
    with pytest.raises(AttributeError, match="CPU"):
        net().cuda()  # type: ignore[attr-defined]
    with pytest.raises(cr.ChainruleError, match=r"cr has no 'tensor' \(here: cr\.Tensor\)"):
        cr.tensor  # type: ignore[attr-defined]  # noqa: B018
