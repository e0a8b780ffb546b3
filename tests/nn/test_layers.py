"""What each layer computes, against the plain formula and the worked examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn, ops
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, ShapeError
from chainrule.optim import SGD
from tests.vectors import vector

RNG = np.random.default_rng(0)


def x32(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float32)


class TestLinearAndMLP:
    def test_linear_is_x_w_transposed_plus_b(self) -> None:
        layer = nn.Linear(3, 4)
        layer.bias.data += x32(4)
        x = x32(2, 5, 3)
        np.testing.assert_allclose(
            layer(x).numpy(), x @ layer.weight.data.T + layer.bias.data, rtol=1e-5, atol=1e-6
        )

    @pytest.mark.requirement("R-210")
    def test_mlp_vector(self) -> None:
        v = vector("004-5.2-mlp-forward")
        net = nn.MLP([2, 3, 1], ["relu", "sigmoid"]).to(np.float64)
        parts = {
            "layers.0.weight": "W1",
            "layers.0.bias": "b1",
            "layers.1.weight": "W2",
            "layers.1.bias": "b2",
        }
        net.load({name: np.array(v.inputs[key]) for name, key in parts.items()})
        with cr.capture() as seen:
            y = net(np.array(v.inputs["x"]))
        v.check(
            {
                "W1x": np.array(v.inputs["W1"]) @ v.inputs["x"],
                "z1": seen["layers.0.linear"].value,
                "h1": seen["relu"].value,
                "z2": seen["layers.1.linear"].value[0],
                "y": y.item(),
            }
        )

    @pytest.mark.requirement("R-210")
    @pytest.mark.parametrize(
        "kinds", [[], ["tanh"], ["relu", "tanh", "sigmoid"], ["gelu", "prelu", "linear", "silu", "softplus"]]
    )
    @pytest.mark.parametrize("output", [[], ["sigmoid"]], ids=["plain output", "sigmoid output"])
    def test_any_depth_with_an_activation_of_its_own_for_each_layer(
        self, kinds: list[str], output: list[str]
    ) -> None:
        """z = W h + b, h = σ(z), layer by layer."""
        sizes = [3, *range(4, 4 + len(kinds)), 2]
        net = nn.MLP(sizes, kinds + output).to(np.float64)
        for layer in net.layers:
            layer.bias.data += RNG.normal(size=layer.bias.shape)
        x = RNG.normal(size=(6, 3))
        h = x
        for i, layer in enumerate(net.layers):
            z = h @ layer.weight.data.T + layer.bias.data
            h = z
            if i < len(kinds + output):
                apply = nn.activation((kinds + output)[i])
                h = np.asarray(apply(cr.Tensor(z)).numpy())
        assert len(net.layers) == len(kinds) + 1
        np.testing.assert_allclose(net(x).numpy(), h, rtol=1e-12, atol=1e-14)
        cr.gradcheck_model(net.parameters(), lambda: (net(cr.Tensor(x)) * h).sum())

    def test_a_wrong_number_of_activations_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="MLP: 3 activations, 1 hidden layers"):
            nn.MLP([2, 3, 1], ["relu", "relu", "relu"])

    @pytest.mark.requirement("R-090")
    def test_a_stack_of_linear_layers_is_one_matrix(self) -> None:
        net = nn.MLP([4, 6, 6, 6, 6, 3], "linear").to(np.float64)
        W, b = np.eye(4), np.zeros(4)
        for layer in net.layers:
            W, b = layer.weight.data @ W, layer.weight.data @ b + layer.bias.data
        x = RNG.normal(size=(5, 4))
        np.testing.assert_allclose(net(x).numpy(), x @ W.T + b, rtol=1e-12, atol=1e-14)

    @pytest.mark.requirement("R-083")
    def test_the_slope_of_prelu_moves_in_training(self) -> None:
        net = nn.MLP([2, 4, 1], "prelu")
        before = net.activations[0].alpha.data.copy()
        optimizer = SGD(net.parameters(), 0.1)
        ops.mse(net(x32(16, 2)), x32(16, 1)).backward()
        optimizer.step()
        assert "activations.0.alpha" in net.parameters()
        assert (net.activations[0].alpha.data != before).all()

    @pytest.mark.requirement("R-086")
    def test_softmax_works_in_a_hidden_layer(self) -> None:
        cr.seed(0)
        net = nn.MLP([2, 8, 1], "softmax")
        x = x32(64, 2)
        target = (x[:, :1] * x[:, 1:] > 0).astype(np.float32)
        optimizer = SGD(net.parameters(), 0.5)
        losses = []
        for _ in range(200):
            optimizer.zero_grad()
            loss = ops.mse(net(x), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < 0.6 * losses[0]

    def test_any_callable_is_an_activation(self) -> None:
        net = nn.MLP([2, 3, 1], ops.sin)
        assert net(x32(4, 2)).shape == (4, 1)

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: nn.MLP([3]), r"MLP: sizes \[3\]"),
            (lambda: nn.MLP([3, 0, 1]), r"MLP: sizes \[3, 0, 1\]"),
            (lambda: nn.MLP([3, 1], norm="group"), "MLP: norm 'group'"),
            (lambda: nn.MLP([3, 2, 1], "swish"), "activation: 'swish'"),
            (lambda: nn.Dropout(1.0), r"Dropout: p is 1\.0"),
        ],
    )
    def test_bad_settings_are_refused(self, make: Any, message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            make()


class TestFeedForward:
    def test_is_two_linear_layers_and_an_activation(self) -> None:
        layer = nn.FeedForward(3, activation="tanh")
        x = x32(2, 4, 3)
        inside = np.tanh(x @ layer.fc1.weight.data.T + layer.fc1.bias.data)
        assert inside.shape[-1] == 12
        np.testing.assert_allclose(layer(x).numpy(), inside @ layer.fc2.weight.data.T, rtol=1e-4, atol=1e-5)

    def test_gated(self) -> None:
        layer = nn.GatedFeedForward(3, 5)
        x = x32(4, 3)
        gate, up = x @ layer.gate_proj.weight.data.T, x @ layer.up_proj.weight.data.T
        want = (gate / (1 + np.exp(-gate)) * up) @ layer.down_proj.weight.data.T
        np.testing.assert_allclose(layer(x).numpy(), want, rtol=1e-4, atol=1e-5)


class TestDropout:
    def test_is_random_in_training_and_absent_in_evaluation(self) -> None:
        layer = nn.Dropout(0.5)
        x = np.ones((100, 100), np.float32)
        first, second = layer(x), layer(x)
        assert set(np.unique(first)) == {0.0, 2.0}
        assert (first != second).any()
        assert abs(np.mean(first) - 1) < 0.05
        assert layer.eval()(x) is x

    def test_a_step_repeats_its_masks(self) -> None:
        layer = nn.Dropout(0.5)
        x = np.ones(100, np.float32)
        masks = []
        for step in (3, 4, 3):
            with cr.random.step(step):
                masks.append(layer(x))
        np.testing.assert_array_equal(masks[0], masks[2])
        assert (masks[0] != masks[1]).any()


class TestAttention:
    def heads_of_the_vector(self, out_proj: bool) -> tuple[nn.MultiHeadAttention, Array]:
        v = vector("der-multi-head").inputs
        layer = nn.MultiHeadAttention(4, 2, out_proj=out_proj).to(np.float64)
        state = {
            f"{name}_proj.weight": np.concatenate(
                [np.array(head[f"W{name.upper()}"]).T for head in v["heads"]]
            )
            for name in "qkv"
        }
        layer.load(state | ({"out_proj.weight": np.array(v["WO"]).T} if out_proj else {}))
        return layer, np.array(v["X"])[None]

    @pytest.mark.requirement("R-291")
    def test_multi_head_vector(self) -> None:
        v = vector("der-multi-head")
        got = {}
        for key, out_proj in (("concat", False), ("Z", True)):
            layer, X = self.heads_of_the_vector(out_proj)
            got[key] = layer(X).numpy()[0]
        v.check(got)

    def test_causal_attention_does_not_look_ahead(self) -> None:
        layer = nn.MultiHeadAttention(8, 2)
        x = x32(1, 6, 8)
        changed = x.copy()
        changed[:, 4:] = 0
        before, after = (layer(a, causal=True).numpy() for a in (x, changed))
        np.testing.assert_array_equal(before[:, :4], after[:, :4])
        assert (before[:, 4:] != after[:, 4:]).any()

    def test_masked_keys_do_not_count(self) -> None:
        layer = nn.MultiHeadAttention(8, 2)
        x = x32(2, 5, 8)
        mask = np.ones((2, 1, 1, 5), bool)
        mask[0, ..., 3:] = False
        np.testing.assert_allclose(
            layer(x, mask=mask).numpy()[0, :3], layer(x[:1, :3]).numpy()[0], rtol=1e-4, atol=1e-6
        )

    def test_cross_attention_takes_keys_and_values_from_the_context(self) -> None:
        layer = nn.MultiHeadAttention(8, 2, context_dim=6)
        x, context = x32(2, 3, 8), x32(2, 7, 6)
        assert layer(x, context).shape == (2, 3, 8)
        np.testing.assert_allclose(
            layer(x, context).numpy(), layer(x, context[:, ::-1].copy()).numpy(), rtol=1e-4, atol=1e-6
        )

    def test_shared_key_heads_equal_repeated_ones(self) -> None:
        shared, full = nn.MultiHeadAttention(8, 4, kv_heads=2), nn.MultiHeadAttention(8, 4)
        state = shared.state()
        for name in ("k_proj.weight", "v_proj.weight"):
            state[name] = np.repeat(state[name].reshape(2, 2, 8), 2, axis=0).reshape(8, 8)
        full.load(state)
        x = x32(2, 5, 8)
        np.testing.assert_allclose(shared(x).numpy(), full(x).numpy(), rtol=1e-4, atol=1e-6)

    def test_dropout_acts_in_training_only(self) -> None:
        layer = nn.MultiHeadAttention(8, 2, dropout=0.5)
        x = x32(1, 6, 8)
        assert (layer(x).numpy() != layer(x).numpy()).any()
        layer.eval()
        np.testing.assert_array_equal(layer(x).numpy(), layer(x).numpy())

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"heads": 3}, r"8 features, 3 heads \(must divide, unless head_size is given\)"),
            ({"heads": 4, "kv_heads": 3}, r"4 heads, 3 key/value heads \(must divide\)"),
            ({"heads": 2, "dropout": 1.0}, r"dropout is 1\.0"),
        ],
    )
    def test_bad_settings_are_refused(self, settings: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            nn.MultiHeadAttention(8, **settings)


class TestRecurrent:
    @pytest.mark.requirement("R-233", "R-235")
    def test_rnn_vectors(self) -> None:
        v = vector("der-rnn-bptt")
        layer = nn.RNN(1, 2).to(np.float64)
        layer.load(
            {
                "weight_x": np.array(v.inputs["Wx"])[:, None],
                "weight_h": np.array(v.inputs["Wh"]),
                "bias": np.array(v.inputs["b"]),
            }
        )
        h0 = cr.Tensor(np.array([v.inputs["h0"]], np.float64), requires_grad=True)
        outputs, (last,) = layer(np.array(v.inputs["x"], np.float64).reshape(1, 3, 1), (h0,))
        vector("004-6.3-rnn-h1").check({"h": outputs.numpy()[0, 0]}, keys=["h"])
        vector("004-6.3-rnn-h2").check(outputs.numpy()[0, 1])
        vector("004-6.3-rnn-h3").check(last.numpy()[0])
        last.backward([v.inputs["grad_h3"]])
        v.check(
            {
                "dWh": layer.weight_h.grad,
                "dWx": layer.weight_x.grad[:, 0],
                "db": layer.bias.grad,
                "dh0": h0.grad[0],
            },
            keys=["dWh", "dWx", "db", "dh0"],
        )

    @pytest.mark.requirement("R-234")
    @pytest.mark.parametrize("cls", [nn.RNN, nn.GRU, nn.LSTM])
    def test_any_length_with_the_same_parameters(self, cls: type[nn.Layer]) -> None:
        layer = cls(3, 4)
        count = layer.count()
        for T in (1, 5, 50):
            outputs, state = layer(x32(2, T, 3))
            assert outputs.shape == (2, T, 4)
            np.testing.assert_array_equal(outputs.numpy()[:, -1], state[0].numpy())
        assert layer.count() == count

    @pytest.mark.requirement("R-234")
    def test_a_sequence_is_one_call(self) -> None:
        """One record on the tape whatever the length, and it keeps a fixed number of values per step."""
        layer = nn.LSTM(3, 4)
        sizes = {}
        for T in (64, 256):
            x = cr.Tensor(x32(1, T, 3), requires_grad=True)
            with cr.capture() as seen:
                layer(x)
            assert list(seen) == ["lstm_sequence"]
            sizes[T] = sum(a.size for a in seen["lstm_sequence"].saved if a.ndim == 3)
        assert sizes[256] == 4 * sizes[64]

    @pytest.mark.parametrize("cls", [nn.RNN, nn.GRU, nn.LSTM])
    def test_two_halves_with_the_state_carried_over_equal_the_whole(self, cls: type[nn.Layer]) -> None:
        layer = cls(3, 4)
        x = x32(2, 7, 3)
        whole, _ = layer(x)
        first, state = layer(x[:, :3])
        second, _ = layer(x[:, 3:], state)
        np.testing.assert_allclose(
            np.concatenate([first.numpy(), second.numpy()], 1), whole.numpy(), rtol=1e-5, atol=1e-6
        )

    def test_empty_sequences_are_refused(self) -> None:
        with pytest.raises(
            ShapeError, match=r"RNN: x has shape \(2, 0, 3\) \(must be \(B, T, X\) with T at least 1\)"
        ):
            nn.RNN(3, 4)(np.ones((2, 0, 3), np.float32))
