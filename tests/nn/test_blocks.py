"""The parts of a transformer block: the feed-forward map, the residual connection, heads of any size."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn, ops
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from tests.vectors import vector

RNG = np.random.default_rng(0)


def feed_forward(W1: Array, W2: Array, b1: Array | None = None) -> nn.FeedForward:
    """The layer with these matrices, in float64."""
    hidden, dim = np.shape(W1)
    layer = nn.FeedForward(dim, hidden).to(np.float64)
    b1 = np.zeros(hidden) if b1 is None else np.array(b1)
    matrices = {"fc1.weight": np.array(W1), "fc2.weight": np.array(W2)}
    layer.load(matrices | {"fc1.bias": b1, "fc2.bias": np.zeros(dim)})
    return layer


@pytest.mark.requirement("R-321")
def test_the_feed_forward_part_is_four_times_wider_inside_and_sees_one_position_at_a_time() -> None:
    v = vector("002-ffn-shapes")
    layer = nn.FeedForward(v.inputs["m"]).to(np.float64)
    # The document multiplies from the right: its matrices are (in, out).
    v.check({"W1": layer.fc1.weight.shape[::-1], "W2": layer.fc2.weight.shape[::-1]})
    x, order = RNG.normal(size=(2, 7, 32)), RNG.permutation(7)
    np.testing.assert_allclose(layer(x[:, order]).numpy(), layer(x).numpy()[:, order], rtol=1e-12)


@pytest.mark.requirement("R-322")
def test_up_threshold_down_makes_features() -> None:
    for id in ("004-9.8.10-ffn-3-4", "004-9.8.10-ffn-4-2"):
        v = vector(id)
        layer = feed_forward(v.inputs["W1"], v.inputs["W2"])
        with cr.capture("relu") as seen:
            y = layer(np.array(v.inputs["x"], np.float64))
        v.check({"h": seen["relu"].value, "y": y})
    for id in ("004-9.8.13-features-1", "004-9.8.13-features-2.5"):
        v = vector(id)
        layer = feed_forward(v.inputs["W1"], v.inputs["W2"], v.inputs["b1"])
        v.check(layer(np.array(v.inputs["x"], np.float64)))


@pytest.mark.requirement("R-323")
def test_a_residual_connection_adds() -> None:
    v = vector("004-9.9.3-residual")
    v.check(ops.add(np.array(v.inputs["X"]), np.array(v.inputs["O"])))
    block = nn.TransformerBlock(4, 2, norm="pre").to(np.float64)
    x = np.array(v.inputs["X"])[None]
    inside = x + block.attn(block.ln_1(cr.Tensor(x))).numpy()
    want = inside + block.mlp(block.ln_2(cr.Tensor(inside))).numpy()
    np.testing.assert_allclose(block(cr.Tensor(x)).numpy(), want, rtol=1e-12)


@pytest.mark.requirement("R-324")
def test_the_gradient_survives_a_sublayer_that_gives_nothing() -> None:
    block = nn.TransformerBlock(4, 2, norm="pre").to(np.float64)
    for layer in (block.attn.out_proj, block.mlp.fc2):
        for _, param in layer.named_parameters():
            param.data[...] = 0
    x = cr.Tensor(RNG.normal(size=(1, 3, 4)), requires_grad=True)
    for i in range(12):  # every row of the Jacobian
        x.grad = None
        seed = np.eye(12)[i].reshape(1, 3, 4)
        block(x).backward(seed)
        np.testing.assert_array_equal(x.grad, seed)


class TestHeads:
    """A whole layer: 8 input dimensions, 4 heads of size 2."""

    x = RNG.normal(size=(1, 5, 8))

    def gradients(self, layer: nn.MultiHeadAttention, feature: int) -> tuple[Array, Array]:
        """Of output[0, 0, feature]: for the heads (H, T, D), and for the input (T, C)."""
        x = cr.Tensor(self.x, requires_grad=True)
        with cr.capture("attention") as seen:
            layer(x)[0, 0, feature].backward()
        heads = seen["attention"].grad
        assert heads is not None and x.grad is not None
        return heads[0], x.grad[0]

    @pytest.mark.requirement("R-292")
    @pytest.mark.parametrize("head", range(4))
    def test_each_head_sees_the_whole_input(self, head: int) -> None:
        """Without the output projection, two neighboring features come from one head alone."""
        layer = nn.MultiHeadAttention(8, 4, out_proj=False).to(np.float64)
        for feature in (2 * head, 2 * head + 1):
            _, dx = self.gradients(layer, feature)
            assert (dx != 0).all()  # every position, every input dimension

    @pytest.mark.requirement("R-293")
    def test_the_output_projection_mixes_all_heads_into_every_feature(self) -> None:
        apart = nn.MultiHeadAttention(8, 4, out_proj=False).to(np.float64)
        mixed = nn.MultiHeadAttention(8, 4).to(np.float64)
        assert mixed.out_proj is not None
        for feature in range(8):
            heads, _ = self.gradients(apart, feature)  # (H, T, D): block-diagonal
            assert np.flatnonzero(heads[:, 0]).tolist() == [feature]
            heads, _ = self.gradients(mixed, feature)
            assert (heads[:, 0] != 0).all()
            np.testing.assert_allclose(
                heads[:, 0].reshape(-1), mixed.out_proj.weight.data[feature], rtol=1e-12
            )


class TestHeadSizes:
    @pytest.mark.requirement("R-341")
    @pytest.mark.parametrize(("head_size", "value_size"), [(5, None), (3, 4), (None, 2)])
    def test_keys_and_values_of_any_size(self, head_size: int | None, value_size: int | None) -> None:
        layer = nn.MultiHeadAttention(6, 2, head_size=head_size, value_size=value_size).to(np.float64)
        D = head_size or 3
        Dv = value_size or D
        shapes = {name: p.shape for name, p in layer.named_parameters()}
        assert shapes["q_proj.weight"] == shapes["k_proj.weight"] == (2 * D, 6)
        assert shapes["v_proj.weight"] == (2 * Dv, 6) and shapes["out_proj.weight"] == (6, 2 * Dv)
        x = RNG.normal(size=(2, 4, 6))
        assert cr.gradcheck(lambda x: layer(x, causal=True), x) <= 1e-6
        heads = []
        for h in range(2):
            q, k = (x @ p.weight.array[h * D : (h + 1) * D].T for p in (layer.q_proj, layer.k_proj))
            v = x @ layer.v_proj.weight.array[h * Dv : (h + 1) * Dv].T
            scores = q @ k.swapaxes(1, 2) / np.sqrt(D)
            heads.append(ops.softmax(scores) @ v)
        want = np.concatenate(heads, axis=-1) @ layer.out_proj.weight.array.T
        np.testing.assert_allclose(layer(x).numpy(), want, rtol=1e-10)

    @pytest.mark.requirement("R-341")
    def test_a_width_that_the_heads_do_not_divide_needs_a_head_size(self) -> None:
        with pytest.raises(ConfigError, match=r"7 features, 2 heads .*unless head_size is given"):
            nn.MultiHeadAttention(7, 2)
        assert nn.MultiHeadAttention(7, 2, head_size=4)(np.ones((1, 3, 7), np.float32)).shape == (1, 3, 7)
        with pytest.raises(ConfigError, match="value_size 0"):
            nn.MultiHeadAttention(8, 2, value_size=0)
