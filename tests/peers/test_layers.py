"""Every layer of chainrule.nn with the weights of its PyTorch counterpart: outputs and all gradients."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr
from chainrule import nn, random
from tests.battery.checks import distance
from tests.peers.torch_layers import CASES, STEP, Case

TOLERANCE = {"float64": 1e-10, "float32": 1e-5}


def flat(outputs: Any) -> Iterator[Any]:
    """Nested outputs such as (y, (h, c)) one after the other."""
    for part in outputs if isinstance(outputs, tuple) else (outputs,):
        yield from flat(part) if isinstance(part, tuple) else (part,)


def run(case: Case, dtype: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Outputs and gradients by name: ours, PyTorch's."""
    rng = np.random.default_rng(3)
    layer = case.layer().to(dtype)
    for _, param in layer.named_parameters():
        param.data += 0.3 * rng.normal(size=param.shape)  # zero biases and unit gains would hide mistakes
    arrays = [rng.normal(size=x).astype(dtype) if isinstance(x, tuple) else x for x in case.inputs]

    params = layer.parameters()
    ours = [cr.Tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    with random.step(STEP):
        got = list(flat(layer(*(t if t.requires_grad else t.data for t in ours), **case.kwargs)))
    seeds = [rng.normal(size=y.shape).astype(dtype) for y in got]
    total = sum(((y * v).sum() for y, v in zip(got, seeds, strict=True)), cr.Tensor(np.zeros((), dtype)))
    total.backward()

    weights = {n: torch.tensor(p.data, requires_grad=p.requires_grad) for n, p in params.items()}
    theirs = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    want = list(flat(case.peer(weights, *theirs)))
    torch.autograd.backward(want, [torch.tensor(v) for v in seeds])

    return (
        named([y.data for y in got], params, ours),
        named([y.detach().numpy() for y in want], weights, theirs),
    )


def named(outputs: list[np.ndarray], weights: Mapping[str, Any], inputs: list[Any]) -> dict[str, np.ndarray]:
    """Outputs, and the gradients of all that has one."""
    leaves = {f"d{name}": w for name, w in weights.items()} | {f"dx{i}": x for i, x in enumerate(inputs)}
    gradients = {name: np.asarray(leaf.grad) for name, leaf in leaves.items() if leaf.requires_grad}
    return {f"output {i}": y for i, y in enumerate(outputs)} | gradients


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", CASES)
def test_layer(name: str, dtype: str) -> None:
    got, want = run(CASES[name], dtype)
    assert got.keys() == want.keys()
    for part in want:
        assert distance(got[part], want[part]) <= TOLERANCE[dtype], part


def test_no_layer_escapes() -> None:
    classes = {name: getattr(nn, name) for name in nn.__all__ if inspect.isclass(getattr(nn, name))}
    layers = {name for name, kind in classes.items() if issubclass(kind, nn.Layer)} - {
        "Layer",
        "Module",
        "ModuleList",
    }
    assert layers == {name.split()[0] for name in CASES}
    for name, case in CASES.items():
        assert type(case.layer()).__name__ == name.split()[0]


# -- batch norm keeps statistics -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_batchnorm_statistics_and_evaluation(dtype: str) -> None:
    """Our running variance is biased (C-18), PyTorch's n/(n-1) larger, as `unbiased_rows` makes ours."""
    rng = np.random.default_rng(0)
    layer, peer = nn.BatchNorm(6).to(dtype), torch.nn.BatchNorm1d(6, dtype=getattr(torch, dtype))
    mean, biased, unbiased = np.zeros(6), np.ones(6), np.ones(6)
    for _ in range(5):
        x = (2 + 3 * rng.normal(size=(8, 6))).astype(dtype)
        layer(cr.Tensor(x))
        peer(torch.tensor(x))
        _, biased = cr.ops.update_running(mean, biased, x.mean(0), x.var(0))
        mean, unbiased = cr.ops.update_running(mean, unbiased, x.mean(0), x.var(0), unbiased_rows=8)
    assert distance(layer.running_mean, peer.running_mean.numpy()) <= TOLERANCE[dtype]
    assert distance(unbiased, peer.running_var.numpy()) <= TOLERANCE[dtype]
    assert distance(layer.running_var, biased) <= TOLERANCE[dtype]

    copy_state(layer, peer)
    ours, theirs = cr.Tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    y, expected = layer.eval()(ours), peer.eval()(theirs)
    y.sum().backward()
    expected.sum().backward()
    assert distance(y.data, expected.detach().numpy()) <= TOLERANCE[dtype]
    assert distance(ours.grad, theirs.grad.numpy()) <= TOLERANCE[dtype]


def copy_state(layer: nn.Layer, peer: torch.nn.Module) -> None:
    """Not strict: torch's batch norm also counts its batches."""
    peer.load_state_dict({name: torch.tensor(value) for name, value in layer.state().items()}, strict=False)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("bias", [True, False])
def test_batchnorm_folds_into_linear(dtype: str, bias: bool) -> None:
    rng, kind = np.random.default_rng(0), getattr(torch, dtype)
    linear, norm = nn.Linear(5, 6, bias=bias).to(dtype), nn.BatchNorm(6).to(dtype)
    norm.load({name: rng.uniform(0.5, 2.0, size=value.shape) for name, value in norm.state().items()})
    peers = torch.nn.Linear(5, 6, bias=bias, dtype=kind), torch.nn.BatchNorm1d(6, dtype=kind)
    for peer, layer in zip(peers, (linear, norm), strict=True):
        copy_state(layer, peer)
    folded = norm.fold_into(linear)
    fused = torch.nn.utils.fuse_linear_bn_eval(*(peer.eval() for peer in peers))
    for name, want in fused.state_dict().items():
        assert distance(folded.state()[name], want.numpy()) <= TOLERANCE[dtype], name
