"""Llama's `config.json`, of old and new versions of transformers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ChainruleWarning, FormatError
from chainrule.io import load_pretrained, safetensors, save_pretrained
from chainrule.models import LlamaConfig, make
from chainrule.nn import LinearScaling, Llama3Scaling
from tests.models.tiny import SIZES


def same(one: cr.models.Model, other: cr.models.Model) -> bool:
    a, b = one.state(), other.state()
    return one.config == other.config and a.keys() == b.keys() and all((a[k] == b[k]).all() for k in a)


def change_config(folder: Path, **values: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_llama_configs_of_both_generations_are_read() -> None:
    from chainrule.io.hf import llama
    from chainrule.io.settings import Settings

    config = LlamaConfig(2, 6, 3, 36, 52, 19, 101, rope_base=500.0)
    written = llama.write_config(config)
    assert llama.read_config(Settings(written)) == config
    base = written.pop("rope_theta")
    newer = written | {"rope_parameters": {"rope_theta": base, "rope_type": "default"}}
    assert llama.read_config(Settings(newer)) == config
    with pytest.raises(FormatError, match="hidden_act is 'gelu'"):
        llama.read_config(Settings(written | {"hidden_act": "gelu"}))


LLAMA3 = {
    "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16,
}  # fmt: skip


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"head_dim": 8}, {"head_dim": 8, "rope_scaling": None, "attention_bias": False}),
        ({"attention_bias": "all"}, {"model_type": "llama", "attention_bias": True}),
        ({"attention_bias": "qkv"}, {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}),
        ({"rope_scaling": LinearScaling(2.0)}, {"rope_scaling": {"factor": 2.0, "rope_type": "linear"}}),
        ({"rope_scaling": Llama3Scaling(**LLAMA3)}, {"rope_scaling": LLAMA3 | {"rope_type": "llama3"}}),
        ({"variant": "qwen3"}, {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}),
        ({"variant": "qwen3", "n_embd": 25, "head_dim": 4}, {"model_type": "qwen3", "head_dim": 4}),
        ({"variant": "qwen3", "attention_bias": "qkv"}, {"model_type": "llama", "architectures": None}),
        ({"variant": "phi3"}, {"model_type": "phi3", "attention_bias": False}),
        ({"variant": "phi3", "rope_scaling": LinearScaling(2.0)}, {"architectures": None}),
        ({"variant": "gemma"}, {"model_type": "gemma", "hidden_act": "gelu_pytorch_tanh"}),
        ({"variant": "smollm3", "n_layer": 5}, {"model_type": "smollm3", "no_rope_layer_interval": 4}),
        (
            {"n_embd": 25, "head_dim": 4},
            {"head_dim": 4, "architectures": None},
        ),  # which their library refuses
    ],
)
def test_every_option_of_llama_comes_back(
    sizes: dict[str, Any], said: dict[str, Any], tmp_path: Path
) -> None:
    model = make("llama", **SIZES["llama"] | sizes, vocab_size=11)
    save_pretrained(model, None, tmp_path / "x")
    config = json.loads((tmp_path / "x" / "config.json").read_text())
    assert {name: config.get(name) for name in said} == said
    assert same(load_pretrained(tmp_path / "x")[0], model)


def test_phi3_stores_fused_matrices(tmp_path: Path) -> None:
    model = make("llama", **SIZES["llama"], vocab_size=11, variant="phi3")
    save_pretrained(model, None, tmp_path / "x")
    arrays = safetensors.read(tmp_path / "x" / "model.safetensors")
    state, before = model.state(), "layers.0."
    for fused, parts in {
        "self_attn.qkv_proj": [f"self_attn.{name}_proj" for name in "qkv"],
        "mlp.gate_up_proj": ["mlp.gate_proj", "mlp.up_proj"],
    }.items():
        whole = np.concatenate([state[f"{before}{part}.weight"] for part in parts])
        np.testing.assert_array_equal(arrays[f"model.{before}{fused}.weight"], whole)
        assert not any(f"model.{before}{part}.weight" in arrays for part in parts)
    wrong = np.concatenate([arrays["model.layers.0.mlp.gate_up_proj.weight"]] * 2)
    content = safetensors.encode(arrays | {"model.layers.0.mlp.gate_up_proj.weight": wrong})
    (tmp_path / "x" / "model.safetensors").write_bytes(content)
    with pytest.raises(FormatError, match=r"gate_up_proj\.weight has shape \(80, 24\) \(must have 40 rows\)"):
        load_pretrained(tmp_path / "x")


def test_a_sliding_window_ends_the_context(tmp_path: Path) -> None:
    model = make("llama", **SIZES["llama"], vocab_size=11)
    save_pretrained(model, None, tmp_path / "x")
    change_config(tmp_path / "x", model_type="mistral", sliding_window=5)
    with pytest.warns(
        ChainruleWarning, match="the context is 5 tokens here, not 7: beyond, this model attends"
    ):
        assert load_pretrained(tmp_path / "x")[0].config == replace(model.config, block_size=5)
    change_config(tmp_path / "x", sliding_window=7)
    assert same(load_pretrained(tmp_path / "x")[0], model)


def test_both_generations_say_how_positions_are_scaled(tmp_path: Path) -> None:
    model = make("llama", **SIZES["llama"], vocab_size=11)
    save_pretrained(model, None, tmp_path / "x")
    wide = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    for values, scaling in [
        ({"rope_scaling": {"type": "linear", "factor": 2}}, LinearScaling(2.0)),
        ({"rope_scaling": {"rope_type": "default"}}, None),
        ({"rope_scaling": wide | {"rope_type": "llama3"}}, Llama3Scaling(**LLAMA3 | {CONTEXT: 7})),
        (
            {"rope_scaling": None, "rope_parameters": LLAMA3 | {"rope_type": "llama3"}},
            Llama3Scaling(**LLAMA3),
        ),
        ({"num_key_value_heads": 2, "rope_parameters": {"rope_theta": 3.0}}, None),
    ]:
        change_config(tmp_path / "x", rope_parameters=None)
        change_config(tmp_path / "x", **values)
        assert load_pretrained(tmp_path / "x")[0].config.rope_scaling == scaling


def test_a_llama_without_key_heads_has_one_for_each_query_head(tmp_path: Path) -> None:
    model = make("llama", **SIZES["llama"] | {"n_kv_head": 6}, vocab_size=11)
    save_pretrained(model, None, tmp_path / "x")
    change_config(tmp_path / "x", num_key_value_heads=None, head_dim=None)
    assert same(load_pretrained(tmp_path / "x")[0], model)


CONTEXT = "original_max_position_embeddings"


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        *(
            (
                {"rope_scaling": {"rope_type": name, "factor": 2.0}},
                rf"rope_type is '{name}' \(must be one of default",
            )
            for name in ("yarn", "dynamic", "longrope")
        ),
        ({"rope_scaling": {"type": "su"}}, r"type is 'su' \(must be one of default, linear, llama3"),
        ({"rope_scaling": {"type": 3}}, "type is 3"),
        ({"rope_scaling": "linear"}, r"rope_scaling is 'linear' \(must be an object"),
        ({"rope_scaling": {"type": "linear"}}, "factor is missing"),
        ({"rope_scaling": {"type": "linear", "factor": 0}}, "factor is 0.0"),
        ({"rope_scaling": {"type": "linear", "factor": "2"}}, "factor is '2'"),
        ({"rope_scaling": LLAMA3 | {"type": "llama3", "high_freq_factor": 1}}, "low_freq_factor is 1.0"),
        ({"rope_scaling": LLAMA3 | {"type": "llama3", CONTEXT: 0}}, f"{CONTEXT} is 0"),
        ({"rope_scaling": LLAMA3 | {"type": "llama3", CONTEXT: 2.5}}, f"{CONTEXT} is 2.5"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor is 0.5"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5"),
        ({"head_dim": 7}, "a head of 7 numbers"),
        ({"head_dim": 8}, "ask for .* parameters"),
        ({"head_dim": 2}, "q_proj.weight has shape"),
        ({"head_dim": 0}, "head_dim is 0"),
        ({"num_attention_heads": 0}, "n_head is 0"),
        ({"num_key_value_heads": None}, "ask for .* parameters"),  # as many as queries
        ({"mlp_bias": True}, "mlp_bias is True"),
        ({"attention_bias": True}, "ask for .* parameters"),
        ({"attention_bias": "qkv"}, r"attention_bias is 'qkv' \(must be true or false\)"),
        ({"model_type": "qwen2", "use_sliding_window": True}, "use_sliding_window is True"),
        ({"model_type": "qwen3"}, "ask for .* parameters"),  # norms of queries and keys
        ({"model_type": "gemma"}, "hidden_act is 'silu'"),
        ({"model_type": "smollm3", "no_rope_layers": [1, 0]}, r"no_rope_layers is \[1, 0\]"),
        ({"model_type": "smollm3", "no_rope_layer_interval": 2}, "no_rope_layer_interval is 2"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types has sliding_attention"),
        ({"model_type": "gemma2"}, "'gemma2' .is not supported: it has soft caps on scores and logits"),
        (
            {"model_type": "mixtral"},
            "'mixtral' .is not supported: it has a mixture of experts; must be one of",
        ),
        ({"model_type": "qwen4"}, "model_type is 'qwen4' .is not known; must be one of gpt2, llama"),
    ],
)
def test_a_llama_that_ours_cannot_be_is_refused(values: dict[str, Any], rule: str, tmp_path: Path) -> None:
    save_pretrained(make("llama", **SIZES["llama"], vocab_size=11), None, tmp_path / "x")
    change_config(tmp_path / "x", **values)
    with pytest.raises(FormatError, match=rule) as error:
        load_pretrained(tmp_path / "x")
    assert "\n" not in str(error.value) and "did you mean" not in str(error.value)
