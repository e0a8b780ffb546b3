"""Every layer, whole, in float64: parameters and input against central differences."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn, random
from chainrule.autograd import Tensor, gradcheck, gradcheck_model
from chainrule.nn.activation import ACTIVATIONS

MASK = np.array([[[[True, True, False, True]] * 4], [[[True, False, True, True]] * 4]])  # (B, 1, T, S)


class Times(nn.Layer):
    """A layer without inputs, times something."""

    def __init__(self, inner: nn.Layer) -> None:
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return self.inner() * x


class WithState(nn.Layer):
    """A recurrent layer from a given state; outputs and the last state as one row of numbers."""

    def __init__(self, layer: nn.Layer, state: tuple[np.ndarray, ...]) -> None:
        self.layer = layer
        self.state_before = state

    def forward(self, x: Any) -> Tensor:
        outputs, state = self.layer(x, self.state_before)
        return cr.ops.concat(*(cr.ops.reshape(y, shape=(-1,)) for y in (outputs, *flat(state))))


def flat(state: tuple[Any, ...]) -> list[Any]:
    return [y for part in state for y in (flat(part) if isinstance(part, tuple) else [part])]


class Cross(nn.Layer):
    def __init__(self) -> None:
        self.attn = nn.MultiHeadAttention(6, 2, context_dim=3, bias=True)
        self.context = np.random.default_rng(9).normal(size=(2, 5, 3))

    def forward(self, x: Any) -> Tensor:
        return self.attn(x, self.context)


class Prefixed(nn.Layer):
    """Keys and values of x after a learned prefix, added up by position."""

    def __init__(self) -> None:
        self.prefix = disturbed(nn.KeyValuePrefix(2, 2, 3))

    def forward(self, x: Any) -> Tensor:
        k, v = self.prefix(x, x * 2.0)
        return k + v


class Listed(nn.Module):
    def __init__(self) -> None:
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 2)])

    def forward(self, x: Any) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def causal_with_mask() -> nn.Layer:
    class Masked(nn.MultiHeadAttention):
        def forward(self, x: Any, **_: Any) -> Tensor:
            return super().forward(x, causal=True, mask=MASK)

    return Masked(6, 2)


def in_eval_mode() -> nn.Layer:
    layer = nn.BatchNorm(3)
    layer.running_mean[...], layer.running_var[...] = [0.5, -1.0, 2.0], [0.3, 1.0, 4.0]
    return layer.eval()


H = np.random.default_rng(3).normal(size=(2, 2, 4))
IDS = np.array([[2, 0, 2], [4, 2, 1]])
# By name: how to make the layer, and its input: a shape, or ids.
LAYERS: dict[str, tuple[Callable[[], nn.Layer], tuple[int, ...] | np.ndarray]] = {
    "embedding": (lambda: nn.Embedding(5, 3), IDS),
    "linear": (lambda: nn.Linear(3, 4), (2, 5, 3)),
    "sequential": (lambda: nn.Sequential(nn.Linear(3, 4), cr.ops.tanh, nn.Linear(4, 2)), (2, 5, 3)),
    "module list": (Listed, (2, 3)),
    "linear without bias": (lambda: nn.Linear(3, 4, bias=False), (3,)),
    "prelu": (lambda: nn.PReLU(3), (5, 3)),
    "layer norm": (lambda: nn.LayerNorm(3), (2, 4, 3)),
    "layer norm without bias": (lambda: nn.LayerNorm(3, bias=False), (4, 3)),
    "rms norm": (lambda: nn.RMSNorm(3), (2, 4, 3)),
    "rms norm with an offset": (lambda: nn.RMSNorm(3, offset=1.0), (2, 4, 3)),
    "rotary attention": (
        lambda: nn.RotaryAttention(6, 4, 2, 4, np.array([1.0, 0.0]), bias=(True, True), qk_norm=1e-5),
        (2, 5, 6),
    ),
    "batch norm": (lambda: nn.BatchNorm(3), (7, 3)),
    "batch norm over positions": (lambda: nn.BatchNorm(3), (2, 4, 3)),
    "batch norm in evaluation": (in_eval_mode, (4, 3)),
    "group norm": (lambda: nn.GroupNorm(2, 6), (3, 4, 6)),
    "instance norm": (lambda: nn.InstanceNorm(3), (2, 5, 3)),
    "dropout": (lambda: nn.Dropout(0.4), (4, 5)),
    "mlp of one layer": (lambda: nn.MLP([3, 2]), (4, 3)),
    "deep mlp": (lambda: nn.MLP([3, 5, 4, 5, 2], "tanh"), (4, 3)),
    "mlp with batch norm": (lambda: nn.MLP([3, 5, 4, 2], "tanh", norm="batch"), (6, 3)),
    "mlp with layer norm": (lambda: nn.MLP([3, 5, 2], "gelu", norm="layer"), (4, 3)),
    "mlp with rms norm": (lambda: nn.MLP([3, 5, 2], "silu", norm="rms"), (4, 3)),
    "feed-forward": (lambda: nn.FeedForward(3, 7, activation="gelu", dropout=0.3), (2, 4, 3)),
    "gated feed-forward": (lambda: nn.GatedFeedForward(3, 5), (2, 4, 3)),
    "gated by gelu": (lambda: nn.GatedFeedForward(3, 5, activation="gelu_tanh"), (2, 4, 3)),
    "self-attention": (lambda: nn.MultiHeadAttention(6, 3), (2, 4, 6)),
    "attention with biases and dropout": (
        lambda: nn.MultiHeadAttention(6, 2, bias=True, dropout=0.3),
        (2, 4, 6),
    ),
    "attention without output projection": (lambda: nn.MultiHeadAttention(6, 2, out_proj=False), (2, 4, 6)),
    "grouped heads": (lambda: nn.MultiHeadAttention(8, 4, kv_heads=2), (2, 4, 8)),
    "masked attention": (causal_with_mask, (2, 4, 6)),
    "cross-attention": (Cross, (2, 4, 6)),
    "pre-norm block": (
        lambda: nn.TransformerBlock(6, 2, norm="pre", causal=True, activation="gelu"),
        (2, 4, 6),
    ),
    "post-norm block": (
        lambda: nn.TransformerBlock(6, 2, norm="post", causal=True, activation="gelu"),
        (2, 4, 6),
    ),
    "sinusoidal positions": (lambda: nn.SinusoidalPositions(6), (2, 4, 6)),
    "learned positions": (lambda: nn.LearnedPositions(5, 6), (2, 4, 6)),
    "bias by distance": (lambda: Times(nn.DistanceBias(8, 2, 5, farthest=6)), (2, 9)),
    "rnn": (lambda: WithState(nn.RNN(3, 4), (H[0],)), (2, 5, 3)),
    "gru": (lambda: WithState(nn.GRU(3, 4), (H[0],)), (2, 5, 3)),
    "gru, reset after": (lambda: WithState(disturbed(nn.GRU(3, 4, reset_after=True)), (H[0],)), (2, 5, 3)),
    "lstm": (lambda: WithState(nn.LSTM(3, 4), (H[0], H[1])), (2, 5, 3)),
    "stack": (
        lambda: WithState(nn.Stack([nn.GRU(3, 4), nn.LSTM(4, 4)], dropout=0.2), ((H[0],), (H[1], H[0]))),
        (2, 5, 3),
    ),
    "bidirectional": (lambda: nn.Bidirectional(nn.RNN(3, 4), nn.LSTM(3, 4)), (2, 5, 3)),
    "lora": (lambda: trained_lora(), (4, 5)),
    "packed lora": (lambda: trained_packed_lora(), (4, 5)),
    "prefix": (Prefixed, (2, 2, 4, 3)),
    "rows of tokens": (lambda: disturbed(nn.TokenRows(nn.Embedding(5, 3), [4, 1])), IDS),
    "soft prompt": (lambda: disturbed(nn.SoftPrompt(nn.Embedding(5, 3), 2)), IDS),
    "adapter": (lambda: disturbed(nn.Adapter(6, 3, activation="gelu")), (2, 4, 6)),
    "adapted": (
        lambda: nn.Adapted(nn.FeedForward(6), disturbed(nn.Adapter(6, 3, activation="gelu"))),  # type: ignore[arg-type]
        (2, 4, 6),
    ),
}


def disturbed(layer: nn.Layer) -> nn.Layer:
    """Away from a start at zero, where half of the gradients vanish."""
    rng = np.random.default_rng(5)
    for _, param in layer.named_parameters():
        param.data += 0.1 * rng.normal(size=param.shape)
    return layer


def trained_packed_lora() -> nn.Layer:
    layer = nn.PackedLoRALinear(nn.Linear(5, 9), 2, alpha=3.0, rows={"v": (6, 9), "q": (0, 3)})
    for B in layer.lora_B.values():
        B.data += np.random.default_rng(6).normal(size=B.shape)
    return layer


def trained_lora() -> nn.Layer:
    layer = nn.LoRALinear(nn.Linear(5, 4), 2, alpha=3.0)
    layer.lora_B.data += np.random.default_rng(6).normal(size=layer.lora_B.shape)
    return layer


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.requirement("R-039")
def test_gradients(name: str) -> None:
    cr.seed(11)
    make, shape = LAYERS[name]
    layer = make().to(np.float64)
    rng = np.random.default_rng(12)
    ids = isinstance(shape, np.ndarray)
    x: Any = shape if ids else Tensor(rng.normal(size=shape))
    with random.step(0), cr.no_grad():
        weights = rng.normal(size=layer(x).shape)

    def loss(x: Any) -> Tensor:
        with random.step(0):  # the same dropout mask every time
            return (layer(x) * weights).sum()

    if any(p.requires_grad for _, p in layer.named_parameters()):
        gradcheck_model(layer.parameters(), lambda: loss(x))
    if not ids:
        gradcheck(loss, x.numpy())


@pytest.mark.requirement("R-039")
def test_every_layer_is_among_them() -> None:
    """Each class of chainrule.nn that is a layer, found by itself, is part of a layer that is checked above."""
    classes = {
        value
        for module in pkgutil.iter_modules(nn.__path__)
        for value in vars(importlib.import_module(f"chainrule.nn.{module.name}")).values()
        if isinstance(value, type) and issubclass(value, nn.Layer)
    }
    checked = {type(part) for make, _ in LAYERS.values() for _, part in make().named_layers()}
    checked |= {base for kind in checked for base in kind.__mro__}
    assert len(classes) > 20
    assert sorted(kind.__name__ for kind in classes - checked) == []


@pytest.mark.requirement("R-096")
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_mlp_runs_with_every_activation(name: str) -> None:
    cr.seed(13)
    net = nn.MLP([3, 6, 5, 2], name).to(np.float64)
    x = np.random.default_rng(14).normal(size=(4, 3))
    targets = np.array([0, 1, 1, 0])
    gradcheck_model(net.parameters(), lambda: cr.ops.cross_entropy(net(Tensor(x)), targets=targets))
    assert len({id(a) for a in net.activations}) == (
        2 if name == "prelu" else 1
    )  # each layer learns its own α


@pytest.mark.requirement("R-150")
def test_embedding_gradients_add_up_for_repeated_ids() -> None:
    layer = nn.Embedding(5, 3).to(np.float64)
    ids = np.array([[2, 0, 2], [4, 2, 1]])
    weights = np.random.default_rng(0).normal(size=(2, 3, 3))
    gradcheck_model(layer.parameters(), lambda: (layer(ids) * weights).sum())
    np.testing.assert_allclose(layer.weight.grad[2], weights[0, 0] + weights[0, 2] + weights[1, 1])
    assert not layer.weight.grad[3].any()


def test_the_check_can_fail() -> None:
    class Wrong(nn.Linear):
        def forward(self, x: Any) -> Tensor:
            return super().forward(x) + self.weight.detach().sum()

    layer = Wrong(3, 2).to(np.float64)
    with pytest.raises(cr.GradientError, match="gradcheck: weight"):
        gradcheck_model(layer.parameters(), lambda: layer(np.ones((1, 3))).sum())
