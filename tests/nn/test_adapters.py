from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn, ops
from chainrule.errors import ConfigError, GraphError
from chainrule.optim import Adam
from tests.vectors import vector

X = np.random.default_rng(0).normal(size=(2, 5, 8)).astype(np.float32)


def train(model: nn.Layer, steps: int = 5) -> None:
    optimizer = Adam(model.parameters(), 0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        ops.mean(model(X) * X).backward()
        optimizer.step()


def lora_of_the_vector() -> nn.LoRALinear:
    v = vector("der-lora").inputs
    base = nn.Linear(2, 3, bias=False)
    layer = nn.LoRALinear(base, v["r"], v["alpha"]).to(np.float64)
    layer.load({"base.weight": np.array(v["W"]), "lora_A": np.array(v["A"]), "lora_B": np.array(v["B"])})
    return layer


@pytest.mark.requirement("R-396")
def test_lora_vector() -> None:
    v = vector("der-lora")
    layer = lora_of_the_vector()
    h = layer(np.array(v.inputs["x"])).numpy()
    layer.merge()
    v.check({"h": h, "W_merged": layer.base.weight.data})


@pytest.mark.requirement("R-151")
def test_lora_starts_at_the_pretrained_function() -> None:
    cr.seed(1)
    model = nn.TransformerBlock(8, 2)
    before = model(X).numpy()
    for name in ("q_proj", "v_proj"):
        setattr(model.attn, name, nn.LoRALinear(getattr(model.attn, name), 2))
    np.testing.assert_array_equal(model(X).numpy(), before)
    wide = nn.LoRALinear(nn.Linear(5000, 16), 16)
    assert wide.lora_A.data.std() == pytest.approx(1 / 4, rel=0.02)  # A ~ N(0, 1/r)
    assert not wide.lora_B.data.any()


@pytest.mark.requirement("R-397")
def test_only_the_small_matrices_learn() -> None:
    layer = nn.LoRALinear(nn.Linear(8, 8), 2)
    before = layer.state()
    train(layer)
    after = layer.state()
    for name in ("base.weight", "base.bias"):
        np.testing.assert_array_equal(after[name], before[name])
    for name in ("lora_A", "lora_B"):
        assert (after[name] != before[name]).any()


@pytest.mark.requirement("R-409")
def test_the_scale_is_alpha_over_rank_and_1_by_default() -> None:
    base = nn.Linear(8, 8)
    assert nn.LoRALinear(base, 4).scale == 1.0
    assert nn.LoRALinear(base, 4, alpha=8).scale == 2.0


def test_merging_changes_nothing_and_unmerging_restores_the_bits() -> None:
    layer = nn.LoRALinear(nn.Linear(8, 8), 2, alpha=3.0).to(np.float64)
    layer.lora_B.data += np.random.default_rng(2).normal(size=(8, 2))
    x = X.astype(np.float64)
    W, before = layer.base.weight.data.copy(), layer(x).numpy()
    layer.merge()
    np.testing.assert_allclose(layer(x).numpy(), before, rtol=0, atol=1e-12)
    with pytest.raises(GraphError, match="already merged"):
        layer.merge()
    layer.unmerge()
    np.testing.assert_array_equal(layer.base.weight.data, W)
    np.testing.assert_array_equal(layer(x).numpy(), before)
    with pytest.raises(GraphError, match="not merged"):
        layer.unmerge()


@pytest.mark.parametrize("rank", [0, 9])
def test_impossible_ranks_are_refused(rank: int) -> None:
    with pytest.raises(ConfigError, match=rf"LoRALinear: rank {rank} for a matrix \(8, 8\)"):
        nn.LoRALinear(nn.Linear(8, 8), rank)


@pytest.mark.requirement("R-152")
def test_inserting_adapters_changes_no_bit_of_the_output() -> None:
    cr.seed(3)
    model = nn.TransformerBlock(8, 2)
    before = model(X).numpy()
    state = model.state()
    model.attn = nn.Adapted(model.attn, nn.Adapter(8, 3))
    model.mlp = nn.Adapted(model.mlp, nn.Adapter(8, 3, activation="gelu"))
    np.testing.assert_array_equal(model(X).numpy(), before)
    train(model)
    assert (model(X).numpy() != before).any()
    for name in ("attn.q_proj.weight", "mlp.fc1.weight"):
        part, rest = name.split(".", 1)
        np.testing.assert_array_equal(model.state()[f"{part}.base.{rest}"], state[name])
