"""Functions made of ops against PyTorch's of the same name, forward and gradient, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr

CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "var": (lambda x: x.var(dim=1, correction=1), lambda x: x.var(dim=1)),
    "std": (lambda x: x.std(axis=(0, 2)), lambda x: x.std(dim=(0, 2), correction=0)),
    "rsqrt": (lambda x: (x * x + 1).rsqrt(), lambda x: (x * x + 1).rsqrt()),
    "outer": (lambda x: cr.ops.outer(x[0, 0], x[1, 1]), lambda x: torch.outer(x[0, 0], x[1, 1])),
    "stack": (lambda x: cr.ops.stack([x[0], x[1]], dim=-1), lambda x: torch.stack([x[0], x[1]], dim=-1)),
    "split": (lambda x: x.split(2, dim=1)[1], lambda x: x.split(2, dim=1)[1]),
    "split sizes": (lambda x: x.split([1, 3], dim=2)[1], lambda x: x.split([1, 3], dim=2)[1]),
    "chunk": (lambda x: x.chunk(2, dim=1)[1], lambda x: x.chunk(2, dim=1)[1]),
    "squeeze": (lambda x: x[:, :1].squeeze(1), lambda x: x[:, :1].squeeze(1)),
    "unsqueeze": (lambda x: x.unsqueeze(-1), lambda x: x.unsqueeze(-1)),
    "flatten": (lambda x: x.flatten(1), lambda x: x.flatten(1)),
    "permute": (lambda x: x.permute(2, 0, 1), lambda x: x.permute(2, 0, 1)),
    "swapaxes": (lambda x: x.swapaxes(0, -1), lambda x: x.swapaxes(0, -1)),
    "expand": (lambda x: x[:, :1].expand(5, -1, 3, -1), lambda x: x[:, :1].expand(5, -1, 3, -1)),
    "repeat": (lambda x: x.repeat(2, 1, 1, 3), lambda x: x.repeat(2, 1, 1, 3)),
    "pad": (lambda x: x.pad((1, 2, 0, 3), value=7.0), lambda x: torch.nn.functional.pad(x, (1, 2, 0, 3), value=7.0)),
    "masked_fill": (lambda x: x.masked_fill(x > 0, -1.0), lambda x: x.masked_fill(x > 0, -1.0)),
    "tril": (lambda x: x.tril(1), lambda x: x.tril(1)),
    "triu": (lambda x: x.triu(-1), lambda x: x.triu(-1)),
    "sort": (lambda x: x.sort(dim=1, descending=True)[0], lambda x: x.sort(dim=1, descending=True)[0]),
    "sort ids": (lambda x: x * x.sort(dim=1)[1], lambda x: x * x.sort(dim=1)[1]),
    "topk": (lambda x: x.topk(2, dim=-1)[0], lambda x: x.topk(2, dim=-1)[0]),
    "argmax": (lambda x: x.argmax(dim=1) * x.sum(dim=1), lambda x: x.argmax(dim=1) * x.sum(dim=1)),
    "argmin": (lambda x: x.argmin(dim=-1) * x.sum(dim=-1), lambda x: x.argmin(dim=-1) * x.sum(dim=-1)),
    "clone": (lambda x: x.clone(), lambda x: x.clone()),
    "einsum": (lambda x: cr.ops.einsum("bij,bkj->bik", x, x), lambda x: torch.einsum("bij,bkj->bik", x, x)),
    "einsum diagonal": (lambda x: cr.ops.einsum("bii->b", x[:, :, :3]), lambda x: torch.einsum("bii->b", x[:, :, :3])),
    "einsum sums": (lambda x: cr.ops.einsum("abc->c", x), lambda x: torch.einsum("abc->c", x)),
    "einsum three": (
        lambda x: cr.ops.einsum("...ij,...kj,ik->...j", x, x, x[0, :, :3]),
        lambda x: torch.einsum("...ij,...kj,ik->...j", x, x, x[0, :, :3]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_pytorch(name: str) -> None:
    ours, theirs = CASES[name]
    data = np.random.default_rng(0).normal(size=(2, 3, 4))
    x, peer = cr.Tensor(data, requires_grad=True), torch.tensor(data, requires_grad=True)
    y, want = ours(x), theirs(peer)
    assert y.shape == tuple(want.shape)
    np.testing.assert_allclose(y.numpy(), want.detach().numpy(), rtol=1e-12, atol=1e-12)
    seed = np.random.default_rng(1).normal(size=y.shape)
    y.backward(seed)
    want.backward(torch.tensor(seed))
    np.testing.assert_allclose(x.grad, peer.grad.numpy(), rtol=1e-11, atol=1e-12)


def test_layer_norm_of_a_constant_row_is_zero_as_in_pytorch() -> None:
    x = np.full((2, 384), 1e6, np.float32)
    want = torch.nn.functional.layer_norm(torch.tensor(x), (384,)).numpy()
    got = cr.ops.layernorm(x, np.ones(384, np.float32), np.zeros(384, np.float32))
    assert (want == 0).all() and (got == 0).all()
