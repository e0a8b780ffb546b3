"""GPT against the same model in PyTorch: logits, loss, every gradient, and twenty steps of training."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import chainrule as cr
from chainrule.models import GPT, GPTConfig
from tests.battery.checks import distance
from tests.peers.training import train_both

TOLERANCE = {"float64": 1e-10, "float32": 1e-5}
B, T = 3, 11


class Attention(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.n_head = config.n_head
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (y.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for y in self.c_attn(x).chunk(3, -1))
        return self.c_proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        C = config.n_embd
        self.approximate = "tanh" if config.activation == "gelu_tanh" else "none"
        self.ln_1, self.ln_2 = nn.LayerNorm(C, bias=config.bias), nn.LayerNorm(C, bias=config.bias)
        self.attn = Attention(config)
        self.mlp = nn.ModuleDict(
            {"c_fc": nn.Linear(C, 4 * C, bias=config.bias), "c_proj": nn.Linear(4 * C, C, bias=config.bias)}
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate=self.approximate))


class TorchGPT(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.h = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd, bias=config.bias)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)


def twins(dtype: str, bias: bool) -> tuple[GPT, TorchGPT]:
    """The same weights in both, larger than at the start of training so that every part matters."""
    config = GPTConfig(n_layer=2, n_head=3, n_embd=24, block_size=16, vocab_size=29, bias=bias)
    cr.seed(0)
    model = GPT(config).to(dtype)
    rng = np.random.default_rng(0)
    for _, param in model.named_parameters():
        param.data += 0.2 * rng.normal(size=param.shape)
    peer = TorchGPT(config).to(getattr(torch, dtype))
    peer.load_state_dict({name: torch.tensor(value) for name, value in model.state().items()})
    return model, peer


def batch(step: int) -> tuple[np.ndarray, np.ndarray]:
    ids = np.random.default_rng(step).integers(0, 29, size=(B, T + 1))
    return ids[:, :-1], ids[:, 1:]


def peer_loss(peer: TorchGPT, ids: np.ndarray, targets: np.ndarray) -> Tensor:
    return F.cross_entropy(peer(torch.tensor(ids)).flatten(0, 1), torch.tensor(targets).flatten())


def losses_of(
    model: GPT, peer: TorchGPT, batch: Callable[[int], tuple[np.ndarray, np.ndarray]]
) -> Callable[[int], tuple[cr.Tensor, Tensor]]:
    return lambda step: (model.loss(*batch(step)), peer_loss(peer, *batch(step)))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("bias", [True, False])
def test_logits_loss_and_gradients(bias: bool, dtype: str) -> None:
    model, peer = twins(dtype, bias)
    ids, _ = batch(0)
    with cr.no_grad(), torch.no_grad():
        assert distance(model(ids).data, peer(torch.tensor(ids)).numpy()) <= TOLERANCE[dtype]
    params = model.parameters()
    loss, expected = model.loss(*batch(0)), peer_loss(peer, *batch(0))
    loss.backward()
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=TOLERANCE[dtype])
    assert params.keys() == dict(peer.named_parameters()).keys()
    for name, want in peer.named_parameters():
        assert distance(params[name].grad, want.grad.numpy()) <= TOLERANCE[dtype], name


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_twenty_steps_of_training(dtype: str) -> None:
    """AdamW, clipping, a schedule: each framework with its own gradients, on its own path."""
    model, peer = twins(dtype, bias=True)
    losses, norms = train_both(model, dict(peer.named_parameters()), losses_of(model, peer, batch))
    for pairs in (losses, norms):
        np.testing.assert_allclose(*zip(*pairs, strict=True), rtol=TOLERANCE[dtype])
    params = model.parameters()
    for name, want in peer.named_parameters():
        # A bias of the keys adds the same to all scores of a query: its gradient is 0 but for rounding, and
        # Adam makes full steps of that in float32.
        if dtype == "float64" or not name.endswith("c_attn.bias"):
            assert distance(params[name].data, want.detach().numpy()) <= TOLERANCE[dtype], name


def test_the_speed_comparison_is_of_the_same_work() -> None:
    """Config a of benchmarks/peers/steps.py and its PyTorch peer, from the same weights on the same batches."""
    config = GPTConfig(n_layer=4, n_head=4, n_embd=128, block_size=64, vocab_size=65, activation="gelu_tanh")
    cr.seed(0)
    model, peer = GPT(config), TorchGPT(config)
    peer.load_state_dict({name: torch.tensor(value) for name, value in model.state().items()})

    def windows(step: int) -> tuple[np.ndarray, np.ndarray]:
        ids = np.random.default_rng(step).integers(0, 65, size=(12, 65))
        return ids[:, :-1], ids[:, 1:]

    losses, _ = train_both(model, dict(peer.named_parameters()), losses_of(model, peer, windows))
    np.testing.assert_allclose(*zip(*losses, strict=True), atol=1e-4)
