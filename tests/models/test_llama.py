"""Llama: right gradients, no look into the future, the promised sizes and names, a turned and grouped attention."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import ops
from chainrule.errors import ConfigError, DataError, ShapeError
from chainrule.models import Llama, LlamaConfig
from chainrule.nn import LinearScaling, Llama3Scaling
from tests.models import tiny
from tests.models.tiny import ids_of

TINY = LlamaConfig(n_layer=2, n_head=6, n_kv_head=2, n_embd=24, n_hidden=20, block_size=7, vocab_size=11)


def model_of(config: LlamaConfig = TINY, seed: int = 0) -> Llama:
    cr.seed(seed)
    return Llama(config)


def float64(config: LlamaConfig = TINY) -> Llama:
    return tiny.float64(model_of(config))


LLAMA3 = Llama3Scaling(
    factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16
)
WIDE = replace(TINY, n_embd=15, head_dim=8, rope_scaling=LLAMA3)  # heads of more numbers than the width has


BIASED = replace(TINY, attention_bias="all")
VARIANTS = [replace(TINY, variant=name) for name in ("qwen3", "gemma", "phi3")]
UNTURNED = replace(TINY, variant="smollm3", n_layer=4, n_embd=12)
CONFIGS = [TINY, replace(TINY, tied=False, n_kv_head=6, n_layer=1), WIDE, BIASED, *VARIANTS, UNTURNED]


@pytest.mark.parametrize("config", CONFIGS)
def test_every_gradient_in_float64(config: LlamaConfig) -> None:
    model, ids = float64(config), ids_of(config)
    targets = np.roll(ids, -1, axis=1)
    assert cr.gradcheck_model(model.parameters(), lambda: model.loss(ids, targets)) <= 1e-6


def test_the_order_of_tokens_matters_through_the_rotation_alone() -> None:
    """Without it the last position could not tell [1, 2, 3, 4] from [2, 1, 3, 4] in the first block."""
    model = float64(replace(TINY, n_layer=1))
    one, two = (model(np.array([ids])).numpy()[0, -1] for ids in ([1, 2, 3, 4], [2, 1, 3, 4]))
    assert np.abs(one - two).max() > 1e-4
    model.layers[0].self_attn.frequencies = np.array([1.0, 0.0])  # every pair but the first stands still
    still = model.layers[0].self_attn
    still.q_proj.weight.data[::4] = still.q_proj.weight.data[2::4] = (
        0  # and the first is silent: heads are 4 wide
    )
    one, two = (model(np.array([ids])).numpy()[0, -1] for ids in ([1, 2, 3, 4], [2, 1, 3, 4]))
    np.testing.assert_allclose(one, two, atol=1e-12)


def test_query_heads_share_key_heads_in_neighboring_groups() -> None:
    """The same as attention with a key and value head for each query head, each key head repeated."""
    model = float64(replace(TINY, n_layer=1))
    full = float64(replace(TINY, n_layer=1, n_kv_head=6))
    state = model.state()
    for name in ("k_proj", "v_proj"):
        key = f"layers.0.self_attn.{name}.weight"
        state[key] = state[key].reshape(2, 4, 24).repeat(3, axis=0).reshape(24, 24)
    full.load(state)
    ids = ids_of(TINY)
    np.testing.assert_allclose(full(ids).numpy(), model(ids).numpy(), atol=1e-12)


def test_a_block_is_its_equations() -> None:
    model = float64(replace(TINY, n_layer=1))
    block, x = model.layers[0], np.random.default_rng(3).normal(size=(1, 5, 24))
    attn = block.self_attn
    normed = ops.rmsnorm(x, block.input_layernorm.weight.data, eps=1e-5)
    q, k, v = (normed @ p.weight.data.T for p in (attn.q_proj, attn.k_proj, attn.v_proj))
    q, k, v = (a.reshape(1, 5, -1, 4).transpose(0, 2, 1, 3) for a in (q, k, v))
    q, k = (ops.rotary(a, positions=np.arange(5)) for a in (q, k))
    mixed = ops.attention(q, k, v, causal=True).transpose(0, 2, 1, 3).reshape(1, 5, 24)
    x1 = x + mixed @ attn.o_proj.weight.data.T
    normed = ops.rmsnorm(x1, block.post_attention_layernorm.weight.data, eps=1e-5)
    gate, up = normed @ block.mlp.gate_proj.weight.data.T, normed @ block.mlp.up_proj.weight.data.T
    want = x1 + (gate / (1 + np.exp(-gate)) * up) @ block.mlp.down_proj.weight.data.T
    np.testing.assert_allclose(block(x).numpy(), want, atol=1e-12)


def test_qwen3_normalizes_each_head_of_queries_and_keys_before_it_turns() -> None:
    model = float64(replace(TINY, n_layer=1, variant="qwen3"))
    attn, x = model.layers[0].self_attn, np.random.default_rng(3).normal(size=(1, 5, 24))
    q, k, v = (x @ p.weight.data.T for p in (attn.q_proj, attn.k_proj, attn.v_proj))
    q, k, v = (a.reshape(1, 5, -1, 4).transpose(0, 2, 1, 3) for a in (q, k, v))
    q, k = (ops.rmsnorm(a, n.weight.data, eps=1e-5) for a, n in ((q, attn.q_norm), (k, attn.k_norm)))
    q, k = (ops.rotary(a, positions=np.arange(5)) for a in (q, k))
    mixed = ops.attention(q, k, v, causal=True).transpose(0, 2, 1, 3).reshape(1, 5, 24)
    np.testing.assert_allclose(attn(x).numpy(), mixed @ attn.o_proj.weight.data.T, atol=1e-12)
    added = model.state().keys() - float64(replace(TINY, n_layer=1)).state().keys()
    assert added == {f"layers.0.self_attn.{name}_norm.weight" for name in "qk"}


def test_gemma_gates_by_gelu_and_scales_its_embedding() -> None:
    model = float64(replace(TINY, n_layer=1, variant="gemma"))
    mlp, x = model.layers[0].mlp, np.random.default_rng(3).normal(size=(1, 5, 24))
    gate, up = x @ mlp.gate_proj.weight.data.T, x @ mlp.up_proj.weight.data.T
    np.testing.assert_allclose(mlp(x).numpy(), ops.gelu_tanh(gate) * up @ mlp.down_proj.weight.data.T)
    ids = ids_of(TINY)
    hidden = model.embed_tokens(ids) * 24**0.5
    np.testing.assert_allclose(model.hidden(ids).numpy(), model.norm(model.layers[0](hidden)).numpy())


def test_smollm3_turns_nothing_in_every_fourth_layer() -> None:
    layers = model_of(replace(UNTURNED, n_layer=9)).layers
    assert [i for i, block in enumerate(layers) if block.self_attn.frequencies is None] == [3, 7]


def test_names_and_shapes_are_those_of_hugging_face_stored_out_in() -> None:
    shapes = {name: value.shape for name, value in model_of().state().items()}
    C, F, kv = 24, 20, 8
    block = {
        "input_layernorm.weight": (C,),
        "self_attn.q_proj.weight": (C, C),
        "self_attn.k_proj.weight": (kv, C),
        "self_attn.v_proj.weight": (kv, C),
        "self_attn.o_proj.weight": (C, C),
        "post_attention_layernorm.weight": (C,),
        "mlp.gate_proj.weight": (F, C),
        "mlp.up_proj.weight": (F, C),
        "mlp.down_proj.weight": (C, F),
    }
    expected = {"embed_tokens.weight": (11, C), "norm.weight": (C,)}
    assert shapes == expected | {f"layers.{i}.{name}": s for i in range(2) for name, s in block.items()}
    untied = model_of(replace(TINY, tied=False)).state()
    assert untied.keys() - shapes.keys() == {"lm_head.weight"} and untied["lm_head.weight"].shape == (11, C)


def test_heads_of_any_size() -> None:
    shapes = {name: value.shape for name, value in model_of(WIDE).state().items()}
    for name, shape in {"q": (48, 15), "k": (16, 15), "v": (16, 15), "o": (15, 48)}.items():
        assert shapes[f"layers.0.self_attn.{name}_proj.weight"] == shape
    same = float64(replace(TINY, head_dim=4))  # what it is without saying so
    np.testing.assert_array_equal(same(ids_of(TINY)).numpy(), float64()(ids_of(TINY)).numpy())


def test_biases_of_attention() -> None:
    plain = model_of().state().keys()
    block = {f"layers.{i}.self_attn.{name}_proj.bias" for i in range(2) for name in "qkv"}
    assert model_of(replace(TINY, attention_bias="qkv")).state().keys() - plain == block
    output = {f"layers.{i}.self_attn.o_proj.bias" for i in range(2)}
    assert model_of(BIASED).state().keys() - plain == block | output


def test_scaled_positions_turn_by_the_slower_frequencies() -> None:
    """Linear by 4: the angles of positions 0, 4, 8, ... are those of 0, 1, 2, ... without it."""
    plain, scaled = float64().layers[0].self_attn, replace(TINY, rope_scaling=LinearScaling(4.0))
    np.testing.assert_allclose(4 * scaled.frequencies, plain.frequencies)
    assert (float64(scaled)(ids_of(TINY)).numpy() != float64()(ids_of(TINY)).numpy()).any()


def test_a_scaling_survives_its_description() -> None:
    for scaling in (LLAMA3, LinearScaling(4.0), None):
        model = model_of(replace(TINY, rope_scaling=scaling))
        said = json.loads(json.dumps(cr.models.describe(model)))
        assert cr.models.rebuild(said).config == model.config


@pytest.mark.parametrize("tied", [True, False])
def test_the_number_of_parameters_follows_the_formula(tied: bool) -> None:
    for n_layer in (1, 3):
        for more in (WIDE, BIASED, replace(WIDE, attention_bias="qkv")):
            assert replace(more, tied=tied).n_params == model_of(replace(more, tied=tied)).count()
        config = replace(TINY, n_layer=n_layer, tied=tied)
        model = model_of(config)
        assert config.n_params == model.count()
        assert model(ids_of(config)).shape == (2, 7, 11)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_embd": 25}, "n_embd is 25, n_head 6"),
        ({"n_kv_head": 4}, "n_head is 6, n_kv_head 4"),
        ({"n_embd": 18}, r"a head of 3 numbers \(must be even"),
        ({"head_dim": 5}, r"a head of 5 numbers \(must be even"),
        ({"head_dim": 0}, "head_dim is 0"),
        ({"attention_bias": "k"}, r"attention_bias is 'k' \(must be one of none, qkv, all\)"),
        ({"variant": "qwen4"}, r"variant is 'qwen4' \(must be one of llama, phi3, qwen3"),
        ({"rope_scaling": "linear"}, "rope_scaling is 'linear'"),
        ({"rope_scaling": {"rope_type": "yarn"}}, "rope_type is 'yarn'"),
        ({"n_hidden": 0}, "n_hidden is 0"),
        ({"rope_base": 0.0}, "rope_base is 0.0"),
        ({"norm_eps": -1.0}, "norm_eps is -1.0"),
    ],
)
def test_impossible_sizes_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(TINY, **change)


def test_inputs_that_do_not_fit_are_refused() -> None:
    model = model_of()
    with pytest.raises(ShapeError, match=r"ids \(1, 8\).*T from 1 to 7"):
        model(np.zeros((1, 8), int))
    with pytest.raises(DataError, match="11"):
        model(np.array([[11]]))
