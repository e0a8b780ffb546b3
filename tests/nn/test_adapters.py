from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn, ops
from chainrule.errors import ConfigError, GraphError, ShapeError
from chainrule.models import GPT, GPTConfig, Llama, LlamaConfig, NeoX, NeoXConfig
from chainrule.optim import Adam
from tests.models import tiny
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


def prefixed(model: Any, length: int = 3) -> Any:
    """A frozen model with keys and values of its own before those of the text in every block."""
    model.freeze()
    for block in model.h if isinstance(model, GPT) else model.layers:
        attention = next(layer for _, layer in block.named_layers() if hasattr(layer, "prefix"))
        heads = getattr(model.config, "n_kv_head", model.config.n_head)
        attention.prefix = nn.KeyValuePrefix(length, heads, model.config.n_embd // model.config.n_head)
    return model


def prompted(model: Any, length: int = 3) -> Any:
    model.freeze()
    name = {GPT: "wte", Llama: "embed_tokens", NeoX: "embed_in"}[type(model)]
    setattr(model, name, nn.SoftPrompt(getattr(model, name), length))
    return model


TINY: dict[Any, Any] = {
    GPT: GPTConfig(2, 2, 8, 9, 11),
    Llama: LlamaConfig(2, 4, 2, 8, 12, 9, 11),
    NeoX: NeoXConfig(2, 2, 8, 9, 11),
}
IDS, TARGETS = np.random.default_rng(5).integers(11, size=(2, 3, 6))


@pytest.mark.requirement("R-404")
@pytest.mark.parametrize("kind", TINY)
@pytest.mark.parametrize(("change", "count"), [(prefixed, 3 * 8 * 2 * 2), (prompted, 3 * 8)])
def test_a_prefix_learns_and_nothing_else_does(kind: Any, change: Any, count: int) -> None:
    cr.seed(4)
    model = tiny.float64(change(kind(TINY[kind])))
    shared = 2 if kind is Llama and change is prefixed else 1  # two heads of queries share one of keys
    assert model.count(trainable=True) == count // shared
    learned = [p for _, p in model.named_parameters() if p.requires_grad]
    assert cr.gradcheck_model(model.parameters(), lambda: model.loss(IDS, TARGETS), step=1e-5) <= 1e-6
    before = model.state()
    optimizer = Adam(model.parameters(), 0.01)
    for _ in range(3):
        optimizer.zero_grad()
        model.loss(IDS, TARGETS).backward()
        optimizer.step()
    changed = {name for name, value in model.state().items() if (value != before[name]).any()}
    assert len(changed) == len(learned) and all("prefix" in name or "prompt" in name for name in changed)


@pytest.mark.parametrize("kind", TINY)
def test_a_soft_prompt_of_embeddings_of_tokens_is_those_tokens(kind: Any) -> None:
    cr.seed(4)
    model = kind(TINY[kind]).eval()
    text = np.array([[7, 2, 5, 1, 3, 4]])
    want = model(text).numpy()[:, 2:]
    prompted(model, 2).embedding.prompt.data[:] = model.embedding.weight.array[[7, 2]]
    np.testing.assert_allclose(model(text[:, 2:]).numpy(), want, rtol=0, atol=1e-6)


def test_a_prefix_of_keys_and_values_of_tokens_is_those_tokens() -> None:
    """In one layer without positions."""
    cr.seed(4)
    attention = nn.MultiHeadAttention(8, 2).eval()
    mask = np.array([True, True, False, True, True])
    for options in ({"causal": True}, {"mask": mask[None, None, None]}):
        attention.prefix = None
        want = attention(X, **options).numpy()[:1, 2:]
        k, v = (f(X[0, :2]).numpy().reshape(2, 2, 4) for f in (attention.k_proj, attention.v_proj))
        attention.prefix = nn.KeyValuePrefix(2, 2, 4)
        attention.prefix.keys.data[:], attention.prefix.values.data[:] = k.swapaxes(0, 1), v.swapaxes(0, 1)
        if "mask" in options:
            options = {"mask": mask[None, None, None, 2:]}
        np.testing.assert_allclose(attention(X[:1, 2:], **options).numpy(), want, rtol=0, atol=1e-6)


def test_a_text_begins_behind_the_prefix_of_a_gpt() -> None:
    """Its keys and values are those of two tokens in every layer: then the text is read as if they stood before it."""
    cr.seed(4)
    model = GPT(TINY[GPT]).eval()
    text = np.array([[7, 2, 5, 1, 3, 4]])
    want = model(text).numpy()[:, 2:]
    with cr.capture("*.c_attn.linear") as seen:
        model(text[:, :2])
    for i, block in enumerate(model.h):
        _, k, v = seen[f"h.{i}.attn.c_attn.linear"].value.reshape(2, 3, 2, 4).transpose(1, 2, 0, 3)
        block.attn.prefix = nn.KeyValuePrefix(2, 2, 4)
        block.attn.prefix.keys.data[:], block.attn.prefix.values.data[:] = k, v
    assert model.context == 9 - 2
    np.testing.assert_allclose(model(text[:, 2:]).numpy(), want, rtol=0, atol=1e-6)
    with pytest.raises(ShapeError, match="T from 1 to 7"):
        model(np.zeros((1, 8), int))


def test_prefixes_that_do_not_fit_are_refused() -> None:
    attention = nn.MultiHeadAttention(8, 2)
    attention.prefix = nn.KeyValuePrefix(2, 4, 4)
    with pytest.raises(
        ShapeError, match=r"keys \(2, 2, 5, 4\), values .* \(must have 4 heads of 4 numbers\)"
    ):
        attention(X)
    with pytest.raises(ConfigError, match="KeyValuePrefix: length 0, heads 2, size 4"):
        nn.KeyValuePrefix(0, 2, 4)
    with pytest.raises(ConfigError, match="SoftPrompt: length is 0"):
        nn.SoftPrompt(nn.Embedding(3, 4), 0)
